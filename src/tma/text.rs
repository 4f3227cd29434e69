//! Text that reaches people: names from files and programs cannot drive a terminal or forge lines.

use std::borrow::Cow;
use std::fmt::Write as _;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_pass() {
        let text = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \u{9b}2J \u{202e}x\x7f\r\n";
        let shown = "\x1b[1;31mred\x1b[0m \\u001b]0;title\\u0007 \\u001b[2J \\u009b2J \\u202ex\\u007f\\u000d\n";
        assert_eq!(coloured(text), shown);
    }
}
