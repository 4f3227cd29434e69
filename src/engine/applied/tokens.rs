//! The tokens of C and C++: names, numbers, literals and marks, without comments and lines of the preprocessor.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Number,
    /// A string or a character.
    Literal,
    /// An operator or a bracket.
    Mark,
}

impl Kind {
    pub fn is_value(self) -> bool {
        matches!(self, Self::Name | Self::Number)
    }
}

/// A token, by its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub bytes: Range<usize>,
}

/// Marks of more than one character, the longest first.
const MARKS: [&str; 23] = [
    "<<=", ">>=", "...", "->*", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
];

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let (kind, length) = if let Some(length) = skipped(text, at) {
            (None, length)
        } else if first.is_alphabetic() || first == '_' {
            (Some(Kind::Name), length(rest, |c| c.is_alphanumeric() || c == '_'))
        } else if first.is_ascii_digit() {
            (Some(Kind::Number), length(rest, |c| c.is_alphanumeric() || c == '.' || c == '\''))
        } else if first == '"' || first == '\'' {
            (Some(Kind::Literal), literal(rest, first))
        } else {
            let known = MARKS.iter().find(|mark| rest.starts_with(**mark));
            (Some(Kind::Mark), known.map_or(first.len_utf8(), |mark| mark.len()))
        };
        all.extend(kind.map(|kind| Token { kind, bytes: at..at + length }));
        at += length;
    }
    all
}

fn length(rest: &str, is_in: impl Fn(char) -> bool) -> usize {
    rest.find(|c: char| !is_in(c)).unwrap_or(rest.len())
}

/// Bytes of white space, a comment or a line of the preprocessor.
fn skipped(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let is_first = || text[..at].lines().next_back().is_none_or(|line| line.trim().is_empty());
    if rest.starts_with(char::is_whitespace) {
        return Some(length(rest, char::is_whitespace));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    if rest.starts_with("//")
        || (rest.starts_with('#') && (is_first() || text[..at].ends_with('\n')))
    {
        return Some(line(rest));
    }
    None
}

/// Bytes to the end of a line that a backslash may go on.
fn line(rest: &str) -> usize {
    let ends = rest.match_indices('\n').map(|(end, _)| end);
    let mut last = ends.filter(|end| !rest[..*end].trim_end_matches('\r').ends_with('\\'));
    last.next().unwrap_or(rest.len())
}

/// Bytes of a literal: to its second quote, or the end of the line.
fn literal(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' => return at,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| &text[token.bytes.clone()]).collect()
    }

    #[test]
    fn comments_and_the_preprocessor_are_no_tokens() {
        let text =
            "#define A(x) \\\n  (x)\na->b /* c */ += '\\'' // d\n  # if E\n\"f\\\"\" 0x1fULL";
        assert_eq!(words(text), ["a", "->", "b", "+=", "'\\''", "\"f\\\"\"", "0x1fULL"]);
    }
}
