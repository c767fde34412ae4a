//! Field selectors: what a list or watch requires of a field.

/// A selector that does not parse. The server will refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// The value that `selector` requires `field` to equal, if it does.
///
/// Terms are parted by `,`; each is a field, `=`, `==` or `!=`, and a value in which `\` escapes `\`, `,` and `=`. Of
/// several requirements for the field that of the least term counts, as the reference sorts them.
pub(super) fn required_value(selector: &str, field: &str) -> Result<Option<String>, Malformed> {
    let mut least: Option<(&str, String)> = None;
    for term in terms(selector).filter(|term| !term.is_empty()) {
        let at = term.find(['=', '!']).ok_or(Malformed)?;
        let (name, equal, value) = parted(term, at)?;
        let value = unescaped(value)?;
        if equal && name == field && least.as_ref().is_none_or(|(other, _)| term < *other) {
            least = Some((term, value));
        }
    }
    Ok(least.map(|(_, value)| value))
}

/// Name, whether the operator is one of equality, and value of a term whose operator is at `at` or later.
fn parted(term: &str, at: usize) -> Result<(&str, bool, &str), Malformed> {
    let (name, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        Ok((name, false, value))
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        Ok((name, true, value))
    } else {
        // A lone `!` belongs to the name.
        let next = term[at + 1..].find(['=', '!']).ok_or(Malformed)?;
        parted(term, at + 1 + next)
    }
}

/// Parts a selector at its unescaped commas.
fn terms(selector: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    selector.split(move |c| {
        let parts = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        parts
    })
}

fn unescaped(value: &str) -> Result<String, Malformed> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => chars.next().filter(|c| matches!(c, '\\' | ',' | '=')).ok_or(Malformed)?,
            ',' | '=' => return Err(Malformed),
            c => c,
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn requires(selector: &str, value: Result<Option<&str>, Malformed>) {
        assert_eq!(required_value(selector, "f"), value.map(|value| value.map(str::to_owned)), "{selector}");
    }

    #[test]
    fn only_equality_requires_a_value() {
        requires("", Ok(None));
        requires("g=1", Ok(None));
        requires("f!=1", Ok(None));
        requires("f=1", Ok(Some("1")));
        requires("f==1,g!=2", Ok(Some("1")));
        requires("f=", Ok(Some("")));
        requires(",,f=1,", Ok(Some("1")));
        requires("a!f=1", Ok(None));
    }

    #[test]
    fn the_least_term_counts() {
        requires("f=b,f=a", Ok(Some("a")));
        requires("f=a,f==z", Ok(Some("z")));
    }

    #[test]
    fn escapes_are_undone_in_values() {
        requires(r"f=a\,b\=c\\", Ok(Some(r"a,b=c\")));
        requires(r"f=a\b", Err(Malformed));
        requires(r"f=a\", Err(Malformed));
        requires("f=a=b", Err(Malformed));
    }

    #[test]
    fn a_term_without_an_operator_is_malformed() {
        requires("f", Err(Malformed));
        requires("f!", Err(Malformed));
        requires("f=1,g", Err(Malformed));
    }
}
