//! From every version to the hub and back.
//!
//! Only the shares of a Limited level differ: see [`v1beta3`] and [`v1beta2`]. An object that has been to another
//! version and back is what it was, but for shares of zero in v1beta2, which that version cannot say: see [`loss`].

use super::v1beta3::PRESERVE_ZERO;
use super::{Object, Version, v1, v1beta2, v1beta3};
use crate::error::{Fault, FaultKind};

/// What `object` would lose if it were written in `version`.
pub fn loss(object: &Object, version: Version) -> Option<Fault> {
    let Object::PriorityLevelConfiguration(level) = object else { return None };
    let shares = level.spec.limited.as_ref()?.nominal_concurrency_shares?;
    (version == Version::V1Beta2 && shares == 0).then(|| {
        let detail = "v1beta2 cannot say zero: it reads it as absent, which becomes 30";
        let fault = Fault::new(FaultKind::Invalid, "spec.limited.assuredConcurrencyShares", detail);
        fault.with_value(0).of(object.kind().name(), &level.metadata.name)
    })
}

/// Before defaults: zero shares without the annotation are absent.
impl From<v1beta3::PriorityLevelConfiguration> for v1::PriorityLevelConfiguration {
    fn from(level: v1beta3::PriorityLevelConfiguration) -> Self {
        let v1beta3::PriorityLevelConfiguration { mut metadata, spec, status } = level;
        let zero_is_meant = metadata.annotations.remove(PRESERVE_ZERO).is_some();
        let limited = spec.limited.map(|limited| v1::LimitedPriorityLevelConfiguration {
            nominal_concurrency_shares: Some(limited.nominal_concurrency_shares)
                .filter(|shares| *shares != 0 || zero_is_meant),
            limit_response: limited.limit_response,
            lendable_percent: limited.lendable_percent,
            borrowing_limit_percent: limited.borrowing_limit_percent,
        });
        let spec = v1::PriorityLevelConfigurationSpec { type_: spec.type_, limited, exempt: spec.exempt };
        v1::PriorityLevelConfiguration { metadata, spec, status }
    }
}

impl From<v1::PriorityLevelConfiguration> for v1beta3::PriorityLevelConfiguration {
    fn from(level: v1::PriorityLevelConfiguration) -> Self {
        let v1::PriorityLevelConfiguration { mut metadata, spec, status } = level;
        let limited = spec.limited.map(|limited| {
            if limited.nominal_concurrency_shares == Some(0) {
                metadata.annotations.entry(PRESERVE_ZERO.to_owned()).or_default();
            }
            v1beta3::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: limited.nominal_concurrency_shares.unwrap_or(0),
                limit_response: limited.limit_response,
                lendable_percent: limited.lendable_percent,
                borrowing_limit_percent: limited.borrowing_limit_percent,
            }
        });
        let spec =
            v1beta3::PriorityLevelConfigurationSpec { type_: spec.type_, limited, exempt: spec.exempt };
        v1beta3::PriorityLevelConfiguration { metadata, spec, status }
    }
}

/// Before defaults: zero shares are absent.
impl From<v1beta2::PriorityLevelConfiguration> for v1::PriorityLevelConfiguration {
    fn from(level: v1beta2::PriorityLevelConfiguration) -> Self {
        let v1beta2::PriorityLevelConfiguration { metadata, spec, status } = level;
        let limited = spec.limited.map(|limited| v1::LimitedPriorityLevelConfiguration {
            nominal_concurrency_shares: Some(limited.assured_concurrency_shares)
                .filter(|shares| *shares != 0),
            limit_response: limited.limit_response,
            lendable_percent: limited.lendable_percent,
            borrowing_limit_percent: limited.borrowing_limit_percent,
        });
        let spec = v1::PriorityLevelConfigurationSpec { type_: spec.type_, limited, exempt: spec.exempt };
        v1::PriorityLevelConfiguration { metadata, spec, status }
    }
}

/// Shares of zero become absent on the next reading: see [`loss`].
impl From<v1::PriorityLevelConfiguration> for v1beta2::PriorityLevelConfiguration {
    fn from(level: v1::PriorityLevelConfiguration) -> Self {
        let v1::PriorityLevelConfiguration { metadata, spec, status } = level;
        let limited = spec.limited.map(|limited| v1beta2::LimitedPriorityLevelConfiguration {
            assured_concurrency_shares: limited.nominal_concurrency_shares.unwrap_or(0),
            limit_response: limited.limit_response,
            lendable_percent: limited.lendable_percent,
            borrowing_limit_percent: limited.borrowing_limit_percent,
        });
        let spec =
            v1beta2::PriorityLevelConfigurationSpec { type_: spec.type_, limited, exempt: spec.exempt };
        v1beta2::PriorityLevelConfiguration { metadata, spec, status }
    }
}
