//! `flowcontrol.apiserver.k8s.io/v1beta2`: where it differs from [`v1`](super::v1).
//!
//! The shares of a Limited level are called assured, and zero always stands for absent. Everything else, flow schemas
//! included, has the shape of v1. Served by Kubernetes 1.23 to 1.28.

use serde::Serialize;

use super::decode::decode_fields;
use super::meta::ObjectMeta;
pub use super::v1::{
    ExemptPriorityLevelConfiguration, FlowSchema, LimitResponse, PriorityLevelConfigurationStatus,
};

/// A named pool of seats.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriorityLevelConfiguration {
    /// Name and the like.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: PriorityLevelConfigurationSpec,
    /// What a controller has found.
    pub status: PriorityLevelConfigurationStatus,
}

decode_fields!(PriorityLevelConfiguration {
    "metadata" => metadata,
    "spec" => spec,
    "status" => status,
} ignoring "apiVersion", "kind");

/// What a level is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriorityLevelConfigurationSpec {
    /// `Limited` or `Exempt`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Given when `type` is `Limited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<LimitedPriorityLevelConfiguration>,
    /// May be given when `type` is `Exempt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exempt: Option<ExemptPriorityLevelConfiguration>,
}

decode_fields!(PriorityLevelConfigurationSpec {
    "type" => type_,
    "limited" => limited,
    "exempt" => exempt,
});

/// A level whose requests need seats.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitedPriorityLevelConfiguration {
    /// Share of the server's seats; 0 is absent and becomes 30.
    pub assured_concurrency_shares: i32,
    /// What happens to a request that finds no seat.
    pub limit_response: LimitResponse,
    /// Percent of the level's seats that others may use while it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lendable_percent: Option<i32>,
    /// Percent of the level's seats that it may borrow besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowing_limit_percent: Option<i32>,
}

decode_fields!(LimitedPriorityLevelConfiguration {
    "assuredConcurrencyShares" => assured_concurrency_shares,
    "limitResponse" => limit_response,
    "lendablePercent" => lendable_percent,
    "borrowingLimitPercent" => borrowing_limit_percent,
});
