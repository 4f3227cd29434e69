//! Text that reaches people: shows names from files and programs so that they cannot drive a terminal or forge
//! lines; writes dates, and addresses as documents and texts have them: `0x401000`.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::SystemTime;

/// A name on one line: control characters, line ends and characters that change the direction of
/// writing are shown as escapes.
///
/// ```
/// assert_eq!(tma::text::name("a\x1b]0;x\x07b\nc"), "a\\u001b]0;x\\u0007b\\u000ac");
/// assert_eq!(tma::text::name("größe<int>"), "größe<int>");
/// ```
pub fn name(text: &str) -> Cow<'_, str> {
    match all_bytes(text, |b| matches!(b, b' '..=b'~')) {
        true => Cow::Borrowed(text),
        false => escaped(text, is_unsafe),
    }
}

/// Text of several lines: as [`name`], but with its line ends and tabs.
///
/// ```
/// assert_eq!(tma::text::lines("a\tb\n\x1b[2J"), "a\tb\n\\u001b[2J");
/// ```
pub fn lines(text: &str) -> Cow<'_, str> {
    match all_bytes(text, |b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) {
        true => Cow::Borrowed(text),
        false => escaped(text, |c| is_unsafe(c) && c != '\n' && c != '\t'),
    }
}

/// Whether all bytes are plain: most text is, and this takes no decoding.
fn all_bytes(text: &str, is_plain: impl Fn(u8) -> bool) -> bool {
    // Without branches within a chunk, so that many bytes are compared at once.
    text.as_bytes().chunks(64).all(|c| c.iter().fold(true, |all, b| all & is_plain(*b)))
}

/// As [`lines`], but with the colours that a renderer gave it: `ESC [ digits ; digits m`.
pub fn coloured(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('\x1b');
    let mut out = lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        out.push_str(if is_colour(part) { "\x1b" } else { "\\u001b" });
        out.push_str(&lines(part));
    }
    Cow::Owned(out)
}

fn is_colour(after_escape: &str) -> bool {
    let Some(rest) = after_escape.strip_prefix('[') else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
}

/// Characters shown as an escape: C0, C1 and delete; the marks of Unicode's bidirectional algorithm (UAX #9, section
/// 2), by which a name can look like another one.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number of things: `1 batch`, `3 batches`, `2 entries`.
///
/// ```
/// use tma::text::several;
///
/// assert_eq!([several(1, "batch"), several(3, "batch")], ["1 batch", "3 batches"]);
/// assert_eq!([several(0, "entry"), several(2, "array")], ["0 entries", "2 arrays"]);
/// ```
pub fn several<N: Copy + PartialEq + From<u8> + fmt::Display>(count: N, thing: &str) -> String {
    if count == N::from(1) {
        return format!("1 {thing}");
    }
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| thing.ends_with(end));
    match thing.strip_suffix('y').filter(|rest| !rest.ends_with(['a', 'e', 'o', 'u'])) {
        Some(rest) => format!("{count} {rest}ies"),
        None if hisses => format!("{count} {thing}es"),
        None => format!("{count} {thing}s"),
    }
}

/// A number of things that are named by their numbers, in words.
///
/// ```
/// assert_eq!(tma::text::numbered(0, "loop"), "no loops");
/// assert_eq!(tma::text::numbered(1, "loop"), "1 loop, number 0");
/// assert_eq!(tma::text::numbered(3, "loop"), "3 loops, numbered from 0");
/// ```
pub fn numbered(count: usize, thing: &str) -> String {
    match count {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}, number 0"),
        _ => format!("{}, numbered from 0", several(count, thing)),
    }
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_unsafe(c) {
            // The form of JSON: valid in the documents too.
            true => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Now, UTC, as RFC 3339 has it: `2026-11-29T07:42:05Z`.
pub fn now() -> String {
    let seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date(seconds)
}

/// The civil date of seconds since 1970, in the proleptic Gregorian calendar.
///
/// ```
/// assert_eq!(tma::text::date(1_796_083_200), "2026-12-01T00:00:00Z");
/// ```
pub fn date(seconds: u64) -> String {
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // 400 years have 146,097 days.
    let mut year = 1970 + 400 * (days / 146_097);
    days %= 146_097;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

/// An address of code or data; written `0x…`.
///
/// ```
/// let address: tma::Address = "0x401000".parse().unwrap();
/// assert_eq!((address.0, address.to_string().as_str()), (0x401000, "0x401000"));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl From<u64> for Address {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// Width and alignment are those of a text.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (f.width(), f.precision()) {
            (None, None) => write!(f, "{:#x}", self.0),
            _ => f.pad(&format!("{:#x}", self.0)),
        }
    }
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAddress {
    /// It does not begin with `0x`.
    Prefix(String),
    /// No digit follows that.
    Empty,
    /// It has this character.
    Digit(String, char),
    /// It has more than 64 bits.
    Long(String),
}

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(text) => write!(f, "the address `{text}` does not begin with 0x"),
            Self::Empty => f.write_str("the address `0x` has no digits"),
            Self::Digit(text, digit) => {
                write!(f, "the address `{text}` has `{digit}`, which is no hexadecimal digit")
            }
            Self::Long(text) => write!(f, "the address `{text}` has more than 64 bits"),
        }
    }
}

impl std::error::Error for NoAddress {}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let digits = text.strip_prefix("0x").ok_or_else(|| NoAddress::Prefix(text.to_owned()))?;
        match digits.chars().find(|c| !c.is_ascii_hexdigit()) {
            Some(other) => Err(NoAddress::Digit(text.to_owned(), other)),
            None if digits.is_empty() => Err(NoAddress::Empty),
            None => u64::from_str_radix(digits, 16)
                .map(Self)
                .map_err(|_| NoAddress::Long(text.to_owned())),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string};

    #[test]
    fn only_colours_pass() {
        let text = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \u{9b}2J \u{202e}x\x7f\r\n";
        let shown = "\x1b[1;31mred\x1b[0m \\u001b]0;title\\u0007 \\u001b[2J \\u009b2J \\u202ex\\u007f\\u000d\n";
        assert_eq!(coloured(text), shown);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @N`
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn what_is_written_is_read() {
        for number in [0, 0x10, u64::MAX] {
            let json = to_string(&Address(number)).unwrap();
            assert_eq!(json, format!("\"{number:#x}\""));
            assert_eq!(from_str::<Address>(&json).unwrap(), Address(number));
        }
        assert_eq!(format!("{:>6}|{:<6}|", Address(0x10), Address(0x10)), "  0x10|0x10  |");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, why) in [
            ("", "the address `` does not begin with 0x"),
            ("401000", "the address `401000` does not begin with 0x"),
            ("0x", "the address `0x` has no digits"),
            ("0x+1", "the address `0x+1` has `+`, which is no hexadecimal digit"),
            ("0x0x1", "the address `0x0x1` has `x`, which is no hexadecimal digit"),
            ("0x10000000000000000", "the address `0x10000000000000000` has more than 64 bits"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap_err().to_string(), why);
            let error = from_str::<Address>(&format!("\"{text}\"")).unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
        }
    }
}
