//! Reads manifests as kubectl does, with places.
