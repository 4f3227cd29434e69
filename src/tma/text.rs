//! Text that reaches people: names from files and programs cannot drive a terminal or forge lines; dates.

use std::borrow::Cow;
use std::fmt::Write as _;
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
        _ => format!("{count} {thing}s, numbered from 0"),
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
fn date(seconds: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
