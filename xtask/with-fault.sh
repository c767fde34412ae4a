#!/bin/sh
# Compiles a crate of the workspace with the planted fault that MAITRED_FAULT names; cargo calls it as the wrapper of rustc.
exec "$@" --cfg "maitred_mutant=\"$MAITRED_FAULT\""
