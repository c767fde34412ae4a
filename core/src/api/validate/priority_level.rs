//! Checks of a priority level's `spec`.

use serde_json::json;

use super::{Check, Reference};
use crate::api::v1beta3::PRESERVE_ZERO;
use crate::api::{Version, builtin, v1};
use crate::shuffle;

const MAX_QUEUES: i32 = 10_000_000;

impl Check {
    pub(super) fn priority_level(&mut self, level: &v1::PriorityLevelConfiguration) {
        if level.metadata.annotations.contains_key(PRESERVE_ZERO) {
            // Reading v1beta3 takes it away: whoever still has it wrote it into another version.
            self.forbidden("metadata.annotations", &format!("annotation '{PRESERVE_ZERO}' is forbidden"));
        }
        let (name, spec) = (level.metadata.name.as_str(), &level.spec);
        self.level_spec(name, spec);
        let Some(fixed) = builtin::mandatory_priority_level(name) else { return };
        let detail = if name == "exempt" {
            let same =
                v1::PriorityLevelConfigurationSpec { exempt: fixed.spec.exempt.clone(), ..spec.clone() };
            (same != fixed.spec).then(|| {
                "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value".to_owned()
            })
        } else {
            (*spec != fixed.spec).then(|| format!("spec of '{name}' must equal the fixed value"))
        };
        if let Some(detail) = detail {
            self.invalid("spec", json!(spec), detail);
        }
    }

    fn level_spec(&mut self, name: &str, spec: &v1::PriorityLevelConfigurationSpec) {
        let old = self.reference == Reference::Server1_31;
        if (name == "exempt") != (spec.type_ == "Exempt") {
            let detail = if old {
                "type must be 'Exempt' if and only if name is 'exempt'"
            } else {
                "must be 'Exempt' if and only if `name` is 'exempt'"
            };
            self.invalid("spec.type", spec.type_.as_str(), detail);
        }
        match spec.type_.as_str() {
            "Exempt" => {
                if spec.limited.is_some() {
                    self.of_union(|check| {
                        check.forbidden("spec.limited", "must be nil if the type is not Limited");
                    });
                }
                if let Some(exempt) = &spec.exempt {
                    self.exempt(exempt);
                }
            }
            "Limited" => {
                if spec.exempt.is_some() {
                    self.of_union(|check| {
                        check.forbidden("spec.exempt", "must be nil if the type is Limited")
                    });
                }
                match &spec.limited {
                    Some(limited) => self.limited(limited),
                    None => self.of_union(|check| {
                        check.required("spec.limited", "must not be empty when type is Limited");
                    }),
                }
            }
            "" if !old => self.of_union(|check| check.required("spec.type", "")),
            other => self.not_supported("spec.type", other, &["Exempt", "Limited"]),
        }
    }

    /// Adds a fault that the generated checks find as well; where these run, their words replace it.
    fn of_union(&mut self, add: impl FnOnce(&mut Check)) {
        if self.reference == Reference::Server1_37 {
            self.union_faults = true;
        } else {
            add(self);
        }
    }

    fn exempt(&mut self, exempt: &v1::ExemptPriorityLevelConfiguration) {
        if let Some(shares) = exempt.nominal_concurrency_shares.filter(|shares| *shares < 0) {
            self.invalid("spec.exempt.nominalConcurrencyShares", shares, "must be a non-negative integer");
        }
        self.lendable("spec.exempt.lendablePercent", exempt.lendable_percent);
    }

    fn limited(&mut self, limited: &v1::LimitedPriorityLevelConfiguration) {
        if let Some(shares) = limited.nominal_concurrency_shares.filter(|shares| *shares < 0) {
            let path = match self.version {
                Version::V1Beta2 => "spec.limited.assuredConcurrencyShares",
                Version::V1 | Version::V1Beta3 => "spec.limited.nominalConcurrencyShares",
            };
            self.invalid(path, shares, "must be a non-negative integer");
        }
        self.limit_response(&limited.limit_response);
        self.lendable("spec.limited.lendablePercent", limited.lendable_percent);
        if let Some(percent) = limited.borrowing_limit_percent.filter(|percent| *percent < 0) {
            let detail = "if specified, must be a non-negative integer";
            self.invalid("spec.limited.borrowingLimitPercent", percent, detail);
        }
    }

    fn lendable(&mut self, path: &str, percent: Option<i32>) {
        if let Some(percent) = percent.filter(|percent| !(0..=100).contains(percent)) {
            self.invalid(path, percent, "must be between 0 and 100, inclusive");
        }
    }

    fn limit_response(&mut self, response: &v1::LimitResponse) {
        let (type_path, queuing_path) =
            ("spec.limited.limitResponse.type", "spec.limited.limitResponse.queuing");
        match (response.type_.as_str(), &response.queuing) {
            ("Reject", None) => {}
            ("Reject", Some(_)) => self.of_union(|check| {
                check.forbidden(queuing_path, "must be nil if limited.limitResponse.type is not Limited");
            }),
            ("Queue", Some(queuing)) => self.queuing(queuing),
            ("Queue", None) => self.of_union(|check| {
                check.required(queuing_path, "must not be empty if limited.limitResponse.type is Limited");
            }),
            ("", _) if self.reference != Reference::Server1_31 => {
                self.of_union(|check| check.required(type_path, ""));
            }
            (other, _) => self.not_supported(type_path, other, &["Queue", "Reject"]),
        }
    }

    fn queuing(&mut self, queuing: &v1::QueuingConfiguration) {
        let path = |field: &str| format!("spec.limited.limitResponse.queuing.{field}");
        let (queues, hand) = (queuing.queues, queuing.hand_size);
        if queuing.queue_length_limit <= 0 {
            self.invalid(&path("queueLengthLimit"), queuing.queue_length_limit, "must be positive");
        }
        if queues <= 0 {
            self.invalid(&path("queues"), queues, "must be positive");
        } else if queues > MAX_QUEUES {
            self.invalid(&path("queues"), queues, format!("must not be greater than {MAX_QUEUES}"));
        }
        if hand <= 0 {
            self.invalid(&path("handSize"), hand, "must be positive");
        } else if hand > queues {
            let detail = format!("should not be greater than queues ({queues})");
            self.invalid(&path("handSize"), hand, detail);
        } else if shuffle::entropy_bits(queues.into(), hand.into()) > Some(shuffle::MAX_HASH_BITS) {
            let limit = shuffle::MAX_HASH_BITS;
            let detail = format!(
                "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {limit}"
            );
            self.invalid(&path("handSize"), hand, detail);
        }
    }

    /// The generated checks: which member of a union may, must or must not be there.
    pub(super) fn unions(&mut self, spec: &v1::PriorityLevelConfigurationSpec) {
        if spec.exempt.is_some() && spec.type_ != "Exempt" {
            self.forbidden("spec.exempt", "");
        }
        self.member("spec.limited", spec.limited.is_some(), spec.type_ == "Limited");
        if spec.type_.is_empty() {
            self.required("spec.type", "");
        }
        if let Some(limited) = &spec.limited {
            let response = &limited.limit_response;
            let path = "spec.limited.limitResponse";
            self.member(&format!("{path}.queuing"), response.queuing.is_some(), response.type_ == "Queue");
            if response.type_.is_empty() {
                self.required(&format!("{path}.type"), "");
            }
        }
    }

    fn member(&mut self, path: &str, given: bool, chosen: bool) {
        match (given, chosen) {
            (true, false) => self.forbidden(path, ""),
            (false, true) => self.required(path, ""),
            _ => {}
        }
    }
}
