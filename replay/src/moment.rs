//! Moments and spans as an audit log writes them.
//!
//! Moments are RFC 3339 with up to nine digits of a second; spans are what Go prints (`1m2.5s`, `498.076786ms`, `32µs`).
//! Both become whole nanoseconds.

const SECOND: i64 = 1_000_000_000;

/// Nanoseconds from the start of 1970 (UTC) to the moment that `text` tells; `None` if it tells none, or one that 64
/// bits cannot hold (before 1678 or after 2261).
pub fn moment(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let fixed = bytes.get(..19)?;
    let separators = [(4, b"-"), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")] as [(usize, &[u8]); 5];
    if separators.iter().any(|(at, allowed)| !allowed.contains(&fixed[*at])) {
        return None;
    }
    let year = digits(&fixed[..4])?;
    let (month, day) = (digits(&fixed[5..7])?, digits(&fixed[8..10])?);
    let (hour, minute, second) = (digits(&fixed[11..13])?, digits(&fixed[14..16])?, digits(&fixed[17..])?);
    // A leap second is written as 60; it is taken as the second after it.
    if !(1..=12).contains(&month)
        || day < 1
        || day > days_in(year, month)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let (nanoseconds, zone) = fraction(&bytes[19..])?;
    let seconds =
        days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    seconds.checked_mul(SECOND)?.checked_add(nanoseconds)
}

/// Nanoseconds of a span in Go's notation; `None` if it is not one, is negative or does not fit.
pub fn span(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_end);
        let unit = match unit {
            "h" => 3_600_000_000_000,
            "m" => 60_000_000_000,
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            // Micro sign and Greek mu: Go writes the first and reads both.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1000,
            "ns" => 1,
            _ => return None,
        };
        sum = sum.checked_add(scaled(number, unit)?)?;
        rest = after;
    }
    if text.is_empty() { None } else { Some(sum) }
}

/// `number` (digits with at most one point) times `unit`, cut to whole nanoseconds.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut sum = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.checked_mul(unit)? };
    let mut place = unit;
    for digit in part.bytes() {
        if !digit.is_ascii_digit() {
            return None;
        }
        place /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(sum)
}

/// The moment as RFC 3339 text in UTC, to the microsecond as audit logs have it.
pub fn to_text(moment: i64) -> String {
    let (seconds, nanoseconds) = (moment.div_euclid(SECOND), moment.rem_euclid(SECOND));
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The inverse of `days_since_1970`: days counted from a March first, in cycles of 400 years.
    let shifted = days + 719_468;
    let (cycle, day_of_cycle) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", nanoseconds / 1000)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// Splits `.123456Z` into nanoseconds and the zone.
fn fraction(tail: &[u8]) -> Option<(i64, &[u8])> {
    let Some(after) = tail.strip_prefix(b".") else { return Some((0, tail)) };
    let count = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return None;
    }
    let (number, zone) = after.split_at(count);
    Some((digits(number)? * 10_i64.pow(9 - u32::try_from(count).ok()?), zone))
}

/// Seconds that a zone is ahead of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
            let (hours, minutes) = (digits(&[*a, *b])?, digits(&[*c, *d])?);
            let ahead = hours * 3600 + minutes * 60;
            (hours < 24 && minutes < 60).then_some(if *sign == b'-' { -ahead } else { ahead })
        }
        _ => None,
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the Gregorian calendar, counted in years that begin with March so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_nanoseconds_since_1970() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(moment("2026-12-01T05:42:01.909566Z"), Some(1_796_103_721_909_566_000));
        assert_eq!(moment("2024-02-29T23:59:59.5+01:00"), Some(1_709_247_599_500_000_000));
        assert_eq!(moment("1969-12-31T23:59:59.999999999Z"), Some(-1));
    }

    #[test]
    fn a_moment_is_written_as_it_was_read() {
        for text in [
            "1970-01-01T00:00:00.000000Z",
            "2026-12-01T05:42:01.909566Z",
            "2024-02-29T23:59:59.999999Z",
            "2000-03-01T00:00:00.000000Z",
            "1999-12-31T12:00:00.000001Z",
            "1900-02-28T00:00:00.000000Z",
        ] {
            assert_eq!(to_text(moment(text).unwrap()), text);
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2026-12-01",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-12-01T00:00:00",
            "2026-12-01T24:00:00Z",
            "2026-12-01T00:00:00.Z",
            "2026-12-01T00:00:00.1234567890Z",
            "9999-12-01T00:00:00Z",
            "2026-12-01T00:00:00+1:00",
            "2026-12-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn spans_are_read_as_go_prints_them() {
        assert_eq!(span("498.076786ms"), Some(498_076_786));
        assert_eq!(span("1m2.5s"), Some(62_500_000_000));
        assert_eq!(span("32.13µs"), Some(32_130));
        assert_eq!(span("218ns"), Some(218));
        assert_eq!(span("0s"), Some(0));
        for text in ["", "5", "-1s", "1.2.3s", "s", "1 s", "99999999999h"] {
            assert_eq!(span(text), None, "{text}");
        }
    }
}
