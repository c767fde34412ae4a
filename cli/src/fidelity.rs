//! `--fidelity`: whose rules decide where the reference implementation has a fault.

use clap::ValueEnum;
use maitred::fidelity::Fidelity;
use serde::Serialize;

/// The value of `--fidelity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FidelityArg {
    /// Those of Kubernetes, to the letter: what a cluster will do.
    Kubernetes,
    /// Those of Kubernetes without its faults: what a server with this library does.
    Corrected,
}

impl From<FidelityArg> for Fidelity {
    fn from(arg: FidelityArg) -> Fidelity {
        match arg {
            FidelityArg::Kubernetes => Fidelity::Kubernetes,
            FidelityArg::Corrected => Fidelity::Corrected,
        }
    }
}
