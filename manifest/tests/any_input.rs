//! Whatever the input, reading ends with documents or an error, and every place lies within the file.

use maitred_manifest::{Document, read_bytes, read_str};
use proptest::collection::vec;
use proptest::prelude::*;

fn check(text: &str, documents: &[Document]) {
    let lines = text.split('\n').count() as u32;
    for document in documents {
        let remarks = document.problems.iter().chain(&document.warnings);
        for remark in remarks.chain(document.items.iter().flat_map(|item| &item.warnings)) {
            // An error at the very end may stand in the line behind the last.
            assert!((1..=lines + 1).contains(&remark.at.line), "{remark:?} of {lines} lines in {text:?}");
            assert!(!remark.message.is_empty());
        }
        for item in &document.items {
            assert!(!item.kind.is_empty() && !item.api_version.is_empty());
            for path in ["spec.rules[0].verbs", "metadata.name", "", "a[b].c]["] {
                assert!((1..=lines).contains(&item.place_of(path).line));
                item.surprise_at(path);
            }
        }
    }
}

fn wild() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wild");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

const SNIPPETS: &[&str] = &[
    "a: 1\n",
    "- ",
    "  ",
    "\n",
    "'",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "? ",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!str ",
    "!!int ",
    "# c\n",
    "---\n",
    "...\n",
    "0144",
    "~",
    "no",
    "\t",
    "\r\n",
    "kind: List\n",
    "apiVersion: v1\n",
    "items:\n",
    "é",
    "\\",
    "\\u0041",
    "%",
    "@",
    "-",
    "\u{feff}",
    "\u{2028}",
    "\0",
    "!",
    "{\"a\":",
    "\"kind\":\"X\"",
];

proptest! {
    #[test]
    fn random_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(documents) = read_bytes("f", &bytes) {
            check(std::str::from_utf8(&bytes).unwrap(), &documents);
        }
    }

    #[test]
    fn random_yaml_is_read_or_refused(parts in vec(proptest::sample::select(SNIPPETS), 0..40)) {
        let text = parts.concat();
        check(&text, &read_str("f", &text));
    }

    #[test]
    fn damaged_manifests_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        cuts in vec((any::<prop::sample::Index>(), 0_usize..8, proptest::sample::select(SNIPPETS)), 1..5),
    ) {
        let wild = wild();
        let mut text: Vec<char> = which.get(&wild).chars().collect();
        for (place, length, snippet) in cuts {
            let place = place.index(text.len() + 1);
            text.splice(place..(place + length).min(text.len()), snippet.chars());
        }
        let text: String = text.into_iter().collect();
        check(&text, &read_str("f", &text));
    }
}
