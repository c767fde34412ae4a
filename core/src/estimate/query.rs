//! The query of a request's URL, read as the reference's server reads it, without allocating.
//!
//! Pairs are parted by `&`, key and value by the first `=`, both in the form encoding (`+` is a space). A pair with a
//! `;` or with a broken escape is passed over; of several pairs with one key the first counts.

/// An encoded text that is known to decode.
#[derive(Clone, Copy, Default)]
pub(super) struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn new(encoded: &'a [u8]) -> Option<Text<'a>> {
        let mut rest = encoded;
        while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
            let digits = rest.get(at + 1..at + 3)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            rest = &rest[at + 3..];
        }
        Some(Text(encoded))
    }

    /// The decoded bytes.
    pub(super) fn bytes(self) -> impl Iterator<Item = u8> {
        let mut rest = self.0.iter().copied();
        std::iter::from_fn(move || {
            Some(match rest.next()? {
                b'+' => b' ',
                b'%' => hex(rest.next()?) << 4 | hex(rest.next()?),
                byte => byte,
            })
        })
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is(self, text: &str) -> bool {
        self.bytes().eq(text.bytes())
    }

    /// As a flag: everything but `0` and `false`, in letters of any case, is true.
    pub(super) fn as_flag(self) -> bool {
        !self.is("0") && !self.bytes().map(|byte| byte.to_ascii_lowercase()).eq(*b"false")
    }

    /// As a decimal number with an optional sign.
    pub(super) fn as_number(self) -> Result<i64, Unreadable> {
        let mut bytes = self.bytes().peekable();
        let negative = bytes.peek() == Some(&b'-');
        bytes.next_if(|byte| matches!(byte, b'+' | b'-'));
        bytes.peek().ok_or(Unreadable)?;
        bytes.try_fold(0_i64, |number, byte| {
            let digit = char::from(byte).to_digit(10).map(i64::from).ok_or(Unreadable)?;
            // Negative numbers are built downwards, as the least of them has no positive counterpart.
            let digit = if negative { -digit } else { digit };
            number.checked_mul(10).and_then(|number| number.checked_add(digit)).ok_or(Unreadable)
        })
    }

    /// The decoded text; bytes that are not UTF-8 are replaced. Allocates.
    pub(super) fn to_text(self) -> String {
        String::from_utf8_lossy(&self.bytes().collect::<Vec<u8>>()).into_owned()
    }
}

/// Value of a digit that was checked to be one.
fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value as u8)
}

/// A number in the query that is none. The server will refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The pairs of a query, in order.
pub(super) fn pairs(query: &[u8]) -> impl Iterator<Item = (Text<'_>, Text<'_>)> {
    query.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty() && !pair.contains(&b';')).filter_map(
        |pair| {
            let parted = pair.iter().position(|&byte| byte == b'=');
            let (key, value) = parted.map_or((pair, &pair[..0]), |at| (&pair[..at], &pair[at + 1..]));
            Some((Text::new(key)?, Text::new(value)?))
        },
    )
}

/// The value of the first pair with this key.
pub(super) fn first<'a>(query: &'a [u8], key: &str) -> Option<Text<'a>> {
    pairs(query).find(|(name, _)| name.is(key)).map(|(_, value)| value)
}
