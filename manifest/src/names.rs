//! What was probably meant by a field that the API does not have.

/// Fields of the API, wherever they belong.
const FIELDS: &[&str] = &[
    "annotations",
    "apiGroups",
    "borrowingLimitPercent",
    "clusterScope",
    "distinguisherMethod",
    "exempt",
    "group",
    "handSize",
    "kind",
    "labels",
    "lendablePercent",
    "limitResponse",
    "limited",
    "matchingPrecedence",
    "metadata",
    "name",
    "namespace",
    "namespaces",
    "nominalConcurrencyShares",
    "nonResourceRules",
    "nonResourceURLs",
    "priorityLevelConfiguration",
    "queueLengthLimit",
    "queues",
    "queuing",
    "resourceRules",
    "resources",
    "rules",
    "serviceAccount",
    "spec",
    "status",
    "subjects",
    "type",
    "user",
    "verbs",
];

/// Slips of the finger that are forgiven.
const SLIPS: usize = 2;

/// What to say about the unknown field at `path`; empty where nothing like it is known.
pub(crate) fn advice(path: &str) -> String {
    let field = path.rsplit(['.', ']']).next().unwrap_or(path);
    match field {
        "assuredConcurrencyShares" => {
            return "v1beta2 has it, later versions call it nominalConcurrencyShares".into();
        }
        "nominalConcurrencyShares" => return "v1beta2 calls it assuredConcurrencyShares".into(),
        _ => {}
    }
    let lower = field.to_lowercase();
    let near = FIELDS.iter().map(|known| (strsim::osa_distance(&known.to_lowercase(), &lower), known));
    // Of short words nearly everything is near.
    let near = near.filter(|(slips, known)| *slips <= SLIPS && slips * 3 < known.len());
    near.min().map(|(_, known)| format!("did you mean \"{known}\"?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(advice("spec.matchingPrecedance"), "did you mean \"matchingPrecedence\"?");
        assert_eq!(
            advice("spec.rules[0].nonResourceRules[1].nonResourceUrls"),
            "did you mean \"nonResourceURLs\"?"
        );
        assert_eq!(advice("spec.rules[0].subject"), "did you mean \"subjects\"?");
        assert_eq!(
            advice("spec.limited.assuredConcurrencyShares"),
            "v1beta2 has it, later versions call it nominalConcurrencyShares"
        );
        assert_eq!(advice("spec.priority"), "");
        assert_eq!(advice("spec.x"), "");
    }
}
