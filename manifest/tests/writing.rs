//! What is written as YAML is read back unchanged.

use maitred_manifest::{read_str, to_yaml};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn written(value: Value) -> String {
    to_yaml(&value)
}

#[test]
fn objects_look_as_kubectl_prints_them() {
    let value =
        json!({"kind": "X", "rules": [{"verbs": ["*", "get"], "names": []}], "spec": {"a": {}, "b": null}});
    let text = "kind: X\nrules:\n- verbs:\n  - \"*\"\n  - get\n  names: []\nspec:\n  a: {}\n  b: null\n";
    assert_eq!(written(value), text);
}

#[test]
fn strings_that_somebody_would_take_for_something_else_are_quoted() {
    for text in [
        "no",
        "y",
        "0144",
        "1e2",
        "~",
        "",
        "null",
        "a: b",
        "a #b",
        "- a",
        "*",
        "1_000",
        "a:",
        "?",
        "é",
        "2001-01-01 x",
    ] {
        assert_eq!(written(json!(text)), format!("\"{text}\"\n"));
    }
    for text in ["get", "system:serviceaccounts:a", "/healthz", "apps/v1", "pods/log"] {
        assert_eq!(written(json!(text)), format!("{text}\n"));
    }
    assert_eq!(written(json!("a\nb\u{2028}")), "\"a\\nb\\u2028\"\n");
}

fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![any::<String>(), "[-:#?*&!|>'\"%@ \n\ta0]{0,6}", "(no|0[0-7]{2}|1e[0-9]|~|<<)"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // A whole double comes back as an integer.
        (-1e9..1e9_f64).prop_filter("whole", |number| number.fract() != 0.0).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((text.clone(), inner), 0..5).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_survives_writing_and_reading(value in values()) {
        let object = json!({"apiVersion": "v1", "kind": "X", "v": value});
        let documents = read_str("f", &to_yaml(&object));
        prop_assert_eq!(&documents[0].items[0].value, &object);
        prop_assert!(documents[0].items[0].warnings.is_empty());
    }
}
