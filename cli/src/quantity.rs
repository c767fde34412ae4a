//! Quantities on the command line: spans of time, factors, objects stored.

use std::str::FromStr;

/// Nanoseconds of a span such as `15s`, `3ms` or `1m30s`.
pub fn parse_span(text: &str) -> Result<u64, String> {
    maitred_replay::span(text).ok_or_else(|| "not a span of time: write 15s, 3ms or 1m30s".to_owned())
}

/// A factor above 0.
pub fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor.is_finite() => Ok(factor),
        _ => Err("not a number above 0".to_owned()),
    }
}

/// Objects stored of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// Empty for the core group.
    pub api_group: String,
    /// The resource, in the plural.
    pub resource: String,
    /// How many objects there are.
    pub count: u64,
    /// Bytes of one, on average; 0 when not known.
    pub average_bytes: u64,
}

impl FromStr for Stock {
    type Err = String;

    fn from_str(text: &str) -> Result<Stock, String> {
        let expected =
            || "write RESOURCE=COUNT or RESOURCE.GROUP=COUNTxBYTES, as in pods=5000x2048".to_owned();
        let (resource, amount) = text.split_once('=').ok_or_else(expected)?;
        let (resource, api_group) = resource.split_once('.').unwrap_or((resource, ""));
        let (count, bytes) = amount.split_once('x').unwrap_or((amount, "0"));
        if resource.is_empty() {
            return Err(expected());
        }
        Ok(Stock {
            api_group: api_group.to_owned(),
            resource: resource.to_owned(),
            count: count.parse().map_err(|_| expected())?,
            average_bytes: bytes.parse().map_err(|_| expected())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_objects_are_read_with_group_and_size() {
        let stock = |api_group: &str, resource: &str, count, average_bytes| Stock {
            api_group: api_group.into(),
            resource: resource.into(),
            count,
            average_bytes,
        };
        assert_eq!("pods=5000".parse(), Ok(stock("", "pods", 5000, 0)));
        assert_eq!("deployments.apps=300x4096".parse(), Ok(stock("apps", "deployments", 300, 4096)));
        for bad in ["pods", "=5", "pods=", "pods=5x", "pods=-1"] {
            assert!(bad.parse::<Stock>().is_err(), "{bad}");
        }
    }
}
