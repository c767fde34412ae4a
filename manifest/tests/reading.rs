//! Files are read as kubectl reads them. Every expectation here was taken from the libraries that kubectl 1.37 uses.

use maitred_manifest::{Document, read_bytes, read_str};
use serde_json::{Value, json};

const HEAD: &str = "apiVersion: v1\nkind: X\n";

/// The documents of `text`, of which one item is expected each.
fn read(text: &str) -> Vec<Document> {
    read_str("test.yaml", text)
}

/// The value under `v` in an object that ends with `text`.
fn value(text: &str) -> Value {
    let documents = read(&format!("{HEAD}{text}"));
    assert_eq!(documents.len(), 1, "{text}");
    assert!(documents[0].problems.is_empty(), "{text}: {:?}", documents[0].problems);
    documents[0].items[0].value["v"].clone()
}

/// The one problem of `text`, as `line:column message`.
fn problem(text: &str) -> String {
    let documents = read(&format!("{HEAD}{text}"));
    let problems: Vec<_> = documents.iter().flat_map(|document| &document.problems).collect();
    let [problem] = problems[..] else { panic!("{text}: {problems:?}") };
    format!("{}:{} {}", problem.at.line, problem.at.column, problem.message)
}

fn warnings(text: &str) -> Vec<String> {
    let documents = read(&format!("{HEAD}{text}"));
    let all = documents.iter().flat_map(|document| {
        document.warnings.iter().chain(document.items.iter().flat_map(|item| &item.warnings))
    });
    all.map(|warning| format!("{}:{} {}", warning.at.line, warning.at.column, warning.message)).collect()
}

#[test]
fn plain_scalars_mean_what_yaml_1_1_says_and_quoted_ones_are_text() {
    assert_eq!(
        value("v: [no, 0144, 1_000, ~, 1e2, 50.0, 12.5]"),
        json!([false, 100, 1000, null, 100, 50, 12.5])
    );
    assert_eq!(value("v: ['no', \"0144\", '~']"), json!(["no", "0144", "~"]));
    assert_eq!(value("v: |\n  no\n"), json!("no\n"));
    assert_eq!(value("v:"), json!(null));
    assert_eq!(value("v: 2001-01-01"), json!("2001-01-01"));
}

#[test]
fn tags_decide_and_unknown_ones_leave_text() {
    assert_eq!(
        value("v: [!!str 5, !!int '12', !!binary aGVsbG8=, !own 5, ! 5, !!str]"),
        json!(["5", 12, "hello", "5", "5", ""])
    );
    assert!(problem("v: !!int 12.5").starts_with("3:"));
}

#[test]
fn the_last_of_two_equal_keys_counts_with_a_warning() {
    assert_eq!(value("v: {a: 1, a: 2}"), json!({"a": 2}));
    assert_eq!(value("v: {1: a, '1': b}"), json!({"1": "b"}));
    assert_eq!(
        warnings("v:\n  a: 1\n  a: 2"),
        ["5:3 \"a\" is given twice, first in line 4: the last one counts"]
    );
}

#[test]
fn keys_that_are_no_strings_become_strings() {
    assert_eq!(
        value("v: {1: a, 1.5: c, on: d, 0x10: e}"),
        json!({"1": "a", "1.5": "c", "true": "d", "16": "e"})
    );
    assert_eq!(problem("v: {~: a}"), "3:5 a key must not be empty or null");
    assert_eq!(problem("v: {[a]: b}"), "3:5 a key must be a scalar, not a list or a mapping");
}

#[test]
fn merge_keys_and_aliases_work_in_the_order_of_the_file() {
    assert_eq!(value("a: &a {x: 1, z: 2}\nv: {<<: *a, x: 3}"), json!({"x": 3, "z": 2}));
    assert_eq!(value("a: &a {x: 1, z: 2}\nv: {x: 3, <<: *a}"), json!({"x": 1, "z": 2}));
    assert_eq!(value("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nv: {<<: [*a, *b]}"), json!({"x": 1, "z": 3}));
    assert_eq!(value("a: &a {x: 1}\nv: {'<<': *a}"), json!({"<<": {"x": 1}}));
    assert_eq!(
        warnings("a: &a {x: 1}\nv: {x: 3, <<: *a}"),
        ["4:11 `<<` overrides the \"x\" that stands before it: put `<<` first"]
    );
    assert_eq!(warnings("a: &a {x: 1}\nv: {<<: *a, x: 3}"), [""; 0]);
    assert_eq!(problem("v: {<<: 5}"), "3:5 `<<` takes a mapping or a list of mappings");
    assert_eq!(problem("v: &a [*a]"), "3:8 an anchor's value must not contain the anchor itself");
}

#[test]
fn an_alias_bomb_is_refused_with_the_bound_in_the_message() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(problem(&bomb).ends_with("anchors and aliases blow the document up by more than 250000 values"));
}

#[test]
fn deep_nesting_is_refused_with_a_place() {
    let deep = |levels: usize| format!("v: {}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(value(&deep(90)).is_array());
    assert!(problem(&deep(120)).starts_with("3:"));
    assert!(problem(&deep(100_000)).starts_with("3:"));
    let mut nested = String::from("a0: &a0 [x]\n");
    for level in 1..120 {
        nested.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(problem(&nested).contains("nested more than 100 deep"));
}

#[test]
fn documents_are_cut_where_kubectl_cuts_them() {
    let kinds = |text: &str| -> Vec<String> {
        read(text).iter().flat_map(|document| document.items.iter().map(|item| item.kind.clone())).collect()
    };
    assert_eq!(kinds("kind: A\napiVersion: v1\n--- # next\nkind: B\napiVersion: v1\n"), ["A", "B"]);
    assert_eq!(
        kinds("\u{feff}kind: A\r\napiVersion: v1\r\n---\r\nkind: B\r\napiVersion: v1\r\n"),
        ["A", "B"]
    );
    assert_eq!(kinds("---\n---\n# nothing\n---\nkind: A\napiVersion: v1\n---\nnull\n"), ["A"]);
    assert_eq!(
        kinds("{\"kind\":\"A\",\"apiVersion\":\"v1\"}{\"kind\":\"B\",\"apiVersion\":\"v1\"}"),
        ["A", "B"]
    );
    assert_eq!(kinds("{\"kind\":\"A\",\"apiVersion\":\"v1\"}\n---\nkind: B\napiVersion: v1"), ["A", "B"]);
    assert_eq!(kinds("{kind: A, apiVersion: v1}"), ["A"]);
}

#[test]
fn what_kubectl_would_ignore_or_refuse_at_a_separator_is_told() {
    assert_eq!(
        warnings("v: 1\n...\nkind: Y\n"),
        ["5:1 what follows `...` is ignored by kubectl: put `---` on a line of its own"]
    );
    assert_eq!(
        problem("v: 1\n--- {kind: Y}\n"),
        "4:1 only a comment may stand behind `---`, not `{kind: Y}`: put it on the next line"
    );
}

#[test]
fn one_bad_document_does_not_hide_the_others() {
    let documents = read("kind: A\napiVersion: v1\n---\nbad: [\n---\nkind: B\napiVersion: v1\n");
    assert_eq!(documents.len(), 3);
    assert_eq!(documents[1].problems[0].at.line, 4);
    assert_eq!(documents[2].items[0].kind, "B");
    assert_eq!(documents[2].index, 2);
}

#[test]
fn documents_have_a_bound_with_the_number_in_the_message() {
    let documents = read(&"---\n{a: 1}\n".repeat(20_000));
    let last = documents.last().unwrap();
    assert_eq!(documents.len(), 10_001);
    assert_eq!(last.problems[0].message, "the file has more than 10000 documents: split it");
}

#[test]
fn lists_are_opened_and_typed_ones_lend_their_kind() {
    let text =
        "kind: FlowSchemaList\napiVersion: g/v1\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n- 5\n";
    let documents = read(text);
    let items = &documents[0].items;
    assert_eq!(items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((items[1].kind.as_str(), items[1].api_version.as_str()), ("FlowSchema", "g/v1"));
    assert_eq!(items[1].value["kind"], "FlowSchema");
    assert_eq!(items[1].place_of("metadata.name").line, 5);
    assert_eq!(documents[0].problems[0].at.line, 6);
    assert_eq!(
        problem("---\nkind: List\napiVersion: v1\nitems: 5\n"),
        "6:1 `items` must be a list of objects"
    );
}

#[test]
fn a_warning_belongs_to_its_item() {
    let documents = read(
        "kind: List\napiVersion: v1\nitems:\n- {kind: A, apiVersion: v1, a: 1, a: 2}\n- {kind: B, apiVersion: v1, b: 010}\n",
    );
    let counts: Vec<_> = documents[0].items.iter().map(|item| item.warnings.len()).collect();
    assert_eq!(counts, [1, 1]);
    assert!(documents[0].items[1].warnings[0].message.contains("octal"));
}

#[test]
fn an_object_without_kind_is_a_problem_that_says_why() {
    let only = |text: &str| read(text)[0].problems[0].message.clone();
    assert_eq!(only("apiVersion: v1\n"), "kind is missing: every object names its apiVersion and kind");
    assert_eq!(only("kind: A\n"), "apiVersion is missing: every object names its apiVersion and kind");
    assert_eq!(
        only("kind: Y\napiVersion: v1\n"),
        "kind must be a string that is not empty (YAML 1.1 reads Y as a boolean: quote it to have text)"
    );
    assert_eq!(only("- a\n"), "an object begins with apiVersion and kind, but this is a list");
}

#[test]
fn places_are_those_of_the_keys_and_of_the_nearest_parent_of_what_is_absent() {
    let text = "apiVersion: v1\nkind: X\nmetadata:\n  labels: {a.b/c: d}\nspec:\n  rules:\n  - verbs:\n    - get\n    - list\n";
    let documents = read(text);
    let place = |path: &str| {
        let mark = documents[0].items[0].place_of(path);
        (mark.line, mark.column)
    };
    assert_eq!(place("spec.rules"), (6, 3));
    assert_eq!(place("spec.rules[0]"), (7, 5));
    assert_eq!(place("spec.rules[0].verbs[1]"), (9, 7));
    assert_eq!(place("metadata.labels[a.b/c]"), (4, 12));
    assert_eq!(place("spec.rules[0].resources"), (7, 5));
    assert_eq!(place("spec.rules[7].verbs"), (6, 3));
    assert_eq!(place("status.conditions"), (1, 1));
}

#[test]
fn tabs_that_indent_are_refused_and_others_are_not() {
    assert!(problem("v:\n\t- a").starts_with("4:"));
    assert_eq!(problem("\t\n"), "3:1 kubectl takes no tab here: indent with spaces");
    assert_eq!(value("v: [a,\n\tb]"), json!(["a", "b"]));
    assert_eq!(value("v: |\n  a\n  \tb\n"), json!("a\n\tb\n"));
}

#[test]
fn a_missing_bracket_is_found() {
    assert_eq!(
        problem("v: {a: b, c\nd: {e: f}}\n"),
        "3:11 a key must end in the line that it begins in: is a bracket or a comma missing before it?"
    );
}

#[test]
fn an_asterisk_that_is_not_quoted_gets_advice() {
    for text in ["v: [*]", "v:\n  - *\n", "v: *", "v: [*, a]"] {
        assert!(problem(text).ends_with("(an asterisk must be quoted: '*')"), "{text}: {}", problem(text));
    }
}

#[test]
fn a_template_is_recognised() {
    assert!(problem("v: {{ .Values.v }}: x\n").ends_with("(this looks like a template: render it first)"));
}

#[test]
fn escapes_are_those_of_the_notation() {
    assert_eq!(
        read("{\"kind\":\"A\",\"apiVersion\":\"v1\",\"v\":\"\\ud83d\\ude00\\/\"}")[0].items[0].value["v"],
        "😀/"
    );
    assert!(problem("v: \"\\ud83d\\ude00\"").contains("surrogate"));
    assert!(problem("v: \"a\\/b\"").contains("escape"));
    assert_eq!(value("v: \"\\\\/\""), json!("\\/"));
}

#[test]
fn files_that_are_not_utf_8_or_too_large_are_refused_with_a_reason() {
    let message = |bytes: &[u8]| read_bytes("f", bytes).unwrap_err().message;
    assert!(message(&[0xff, 0xfe, b'a', 0]).contains("UTF-16"));
    assert_eq!(message(b"a: 1\nb: \xff\n"), "line 2 is not UTF-8: is this a manifest? Save it as UTF-8");
    assert_eq!(message(&vec![b' '; (16 << 20) + 1]), "larger than 16777216 bytes (16 MiB): split it");
}
