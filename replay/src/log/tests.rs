use super::*;
use std::io::Cursor;

/// An event of the request `id`, which came at second `received`; the times are seconds of one minute.
fn event(id: &str, stage: &str, verb: &str, received: u32, at: u32, more: &str) -> String {
    format!(
        r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"{id}","stage":"{stage}","requestURI":"/api","verb":"{verb}","user":{{"username":"u"}},"requestReceivedTimestamp":"2026-12-01T05:00:{received:02}.000000Z","stageTimestamp":"2026-12-01T05:00:{at:02}.000000Z"{more}}}"#
    )
}

type Found = (String, Option<u64>, bool);

fn read_all(log: &[String], reading: &Reading) -> Result<(Vec<Found>, Seen), LogError> {
    let mut lines = Lines::new(Cursor::new(log.join("\n").into_bytes())).unwrap();
    let mut found = Vec::new();
    let mut log = Log::new(reading);
    let receive = |ended: &Ended<'_>| {
        let seconds = ended.total_ns.map(|ns| ns / 1_000_000_000);
        found.push((ended.attributes.verb.to_owned(), seconds, ended.refused));
        Ok(())
    };
    log.read("log", &mut lines, receive, |_| ())?;
    Ok((found, log.finish()))
}

fn ended(log: &[String]) -> (Vec<Found>, Seen) {
    read_all(log, &Reading::default()).unwrap()
}

#[test]
fn a_request_is_counted_once_whatever_stages_are_logged() {
    let complete = event("a", "ResponseComplete", "get", 1, 3, "");
    let found = vec![("get".to_owned(), Some(2), false)];
    assert_eq!(ended(std::slice::from_ref(&complete)).0, found);
    assert_eq!(ended(&[event("a", "RequestReceived", "get", 1, 1, ""), complete]).0, found);
}

#[test]
fn a_watch_holds_seats_until_its_response_starts() {
    let complete = event("w", "ResponseComplete", "watch", 1, 50, "");
    let (found, seen) = ended(&[event("w", "ResponseStarted", "watch", 1, 2, ""), complete.clone()]);
    assert_eq!((found, seen.watches_without_start), (vec![("watch".into(), Some(1), false)], 0));
    let (found, seen) = ended(&[complete]);
    assert_eq!((found, seen.watches_without_start), (vec![("watch".into(), None, false)], 1));
}

#[test]
fn a_watch_that_the_log_leaves_open_is_told_and_not_counted() {
    let (found, seen) = ended(&[event("w", "ResponseStarted", "watch", 1, 2, "")]);
    assert_eq!((found.len(), seen.open_watches), (0, 1));
}

#[test]
fn one_audit_id_may_serve_two_requests() {
    let (found, _) = ended(&[
        event("a", "ResponseComplete", "get", 1, 2, ""),
        event("a", "ResponseComplete", "get", 3, 4, ""),
    ]);
    assert_eq!(found.len(), 2);
}

#[test]
fn a_panic_ends_a_request_once() {
    let (found, seen) =
        ended(&[event("a", "Panic", "get", 1, 2, ""), event("a", "ResponseComplete", "get", 1, 2, "")]);
    assert_eq!((found.len(), seen.panicked), (1, 1));
}

#[test]
fn a_401_is_no_request_of_flow_control() {
    let refused = event("a", "ResponseStarted", "get", 1, 1, r#","responseStatus":{"code":401}"#)
        .replace(r#"{"username":"u"}"#, "{}");
    let (found, seen) = ended(&[refused.clone(), refused.replace("ResponseStarted", "ResponseComplete")]);
    assert_eq!((found.len(), seen.unauthenticated), (0, 1));
}

#[test]
fn a_429_is_a_refusal_unless_the_handler_tells_why() {
    let refusal = event("a", "ResponseComplete", "get", 1, 1, r#","responseStatus":{"code":429}"#);
    let eviction = event(
        "b",
        "ResponseComplete",
        "create",
        1,
        1,
        r#","responseStatus":{"code":429,"message":"would violate"}"#,
    );
    let (found, _) = ended(&[refusal, eviction]);
    assert_eq!(found.iter().map(|found| found.2).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn who_may_not_impersonate_never_came_to_flow_control() {
    let (found, seen) = ended(&[event(
        "a",
        "ResponseComplete",
        "get",
        1,
        1,
        r#","responseStatus":{"code":403,"message":"users \"x\" is forbidden: User \"u\" cannot impersonate resource \"users\""}"#,
    )]);
    assert_eq!((found.len(), seen.impersonation_refused), (0, 1));
}

#[test]
fn bad_lines_are_counted_and_shown_and_the_rest_stands() {
    let log: Vec<String> = vec![
        r#"{"kind":"Event","#.into(),
        r#"{"kind":"Pod"}"#.into(),
        String::new(),
        event("a", "ResponseComplete", "get", 1, 2, ""),
        event("a", "ResponseDone", "get", 1, 2, ""),
        event("a", "ResponseComplete", "get", 1, 2, "").replace("05:00:01", "05:99:01"),
    ];
    let (found, seen) = ended(&log);
    assert_eq!((found.len(), seen.bad), (1, 4));
    assert_eq!(seen.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [1, 2, 5, 6]);
    assert!(seen.bad_lines[3].why.contains("requestReceivedTimestamp"), "{}", seen.bad_lines[3]);
    let strict = Reading { strict: true, ..Reading::default() };
    assert!(matches!(read_all(&log, &strict), Err(LogError::BadLine(BadLine { line: 1, .. }))));
}

#[test]
fn an_arrival_beyond_the_horizon_is_flagged_and_still_counts() {
    let log =
        [event("a", "ResponseComplete", "get", 30, 31, ""), event("b", "ResponseComplete", "get", 1, 32, "")];
    let late = |seconds: u64| {
        let reading = Reading { horizon_ns: seconds * 1_000_000_000, ..Reading::default() };
        let (found, seen) = read_all(&log, &reading).unwrap();
        (found.len(), seen.late)
    };
    assert_eq!(late(29), (2, 0));
    assert_eq!(late(28), (2, 1));
}
