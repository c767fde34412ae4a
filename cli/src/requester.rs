//! Who sends requests.

const ACCOUNT: &str = "system:serviceaccount:";

/// The groups that a server gives to a user by itself.
pub fn implied_groups(user: &str) -> Vec<String> {
    if user == "system:anonymous" {
        return vec!["system:unauthenticated".to_owned()];
    }
    let mut groups = Vec::new();
    if let Some((namespace, _)) = user.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':')) {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups.push("system:authenticated".to_owned());
    groups
}
