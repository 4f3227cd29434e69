//! Words of a command line, as a shell takes them: what is printed runs when it is pasted.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The words on one line, each quoted where a shell would change it.
///
/// ```
/// assert_eq!(tma::shell::quoted(&["sh", "-c", "it's; echo", ""]), r"sh -c 'it'\''s; echo' ''");
/// assert_eq!(tma::shell::quoted(&["python3", "-c", "for i in x:\n\tprint(i)"]), r"python3 -c $'for i in x:\n\tprint(i)'");
/// ```
pub fn quoted(words: &[impl AsRef<OsStr>]) -> String {
    words.iter().map(|word| quoted_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The words of a line as a shell divides them, with `'…'`, `"…"` and `\\`; nothing of a quote that stays open. Variables and
/// patterns are not expanded.
///
/// ```
/// use tma::shell::words;
/// assert_eq!(words(r#"./a 'b c' "d\"e" f\ g '' "#).unwrap(), ["./a", "b c", "d\"e", "f g", ""]);
/// assert_eq!(words("it's"), None);
/// ```
pub fn words(line: &str) -> Option<Vec<OsString>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if quote.is_none() && letter.is_whitespace() {
            all.extend(word.take().map(OsString::from));
            continue;
        }
        let own = word.get_or_insert_default();
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"'), '\\') => match letters.next()? {
                next @ ('"' | '\\' | '$' | '`') => own.push(next),
                next => own.extend(['\\', next]),
            },
            (None, '\\') => own.push(letters.next()?),
            (None, '\'' | '"') => quote = Some(letter),
            _ => own.push(letter),
        }
    }
    all.extend(word.map(OsString::from));
    quote.is_none().then_some(all)
}

/// A file as a word of a command that takes options too; nothing of what no later command can read: standard input and
/// pipes that the user's shell opened.
///
/// ```
/// use std::path::Path;
/// assert_eq!(tma::shell::file(Path::new("-a b.gz")).as_deref(), Some("'./-a b.gz'"));
/// assert_eq!(tma::shell::file(Path::new("/dev/fd/63")), None);
/// ```
pub fn file(path: &Path) -> Option<String> {
    if path == Path::new("-") || crate::files::is_open_already(path) {
        return None;
    }
    let is_like_an_option = path.as_os_str().as_bytes().starts_with(b"-");
    Some(match is_like_an_option {
        true => quoted(&[Path::new(".").join(path)]),
        false => quoted(&[path]),
    })
}

fn quoted_word(word: &OsStr) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:,+@%=".contains(&byte);
    let bytes = word.as_bytes();
    match word.to_str() {
        // zsh expands a leading `=`.
        Some(text)
            if !text.is_empty() && !text.starts_with('=') && bytes.iter().all(|b| is_plain(*b)) =>
        {
            text.to_owned()
        }
        Some(text) if !text.chars().any(crate::text::is_unsafe) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => escaped(bytes),
    }
}

/// As `$'…'` (bash, zsh, ksh; POSIX.1-2024): line ends and other control characters stay within the line.
/// Octal digits end after the third, where shells differ in how many follow `\x`.
fn escaped(bytes: &[u8]) -> String {
    let mut out = "$'".to_owned();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = match byte {
            b'\n' => write!(out, "\\n"),
            b'\t' => write!(out, "\\t"),
            b'\\' | b'\'' => write!(out, "\\{}", char::from(*byte)),
            b' '..=b'~' => write!(out, "{}", char::from(*byte)),
            other => write!(out, "\\{other:03o}"),
        };
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_run_into_what_follows() {
        assert_eq!(quoted(&["\u{1b}31m"]), r"$'\03331m'");
        assert_eq!(quoted(&[OsStr::from_bytes(b"\xffab")]), r"$'\377ab'");
        assert_eq!(quoted(&["a\n\t\\'"]), r"$'a\n\t\\\''");
    }

    #[test]
    fn files_are_no_options_and_can_be_read_again() {
        let file = |path| file(Path::new(path));
        assert_eq!(file("a b.csv.gz").as_deref(), Some("'a b.csv.gz'"));
        assert_eq!(file("-i.data").as_deref(), Some("./-i.data"));
        assert_eq!(file("runs/-i.data").as_deref(), Some("runs/-i.data"));
        for read_once in ["-", "/dev/stdin", "/dev/fd/63", "/proc/self/fd/3"] {
            assert_eq!(file(read_once), None, "{read_once}");
        }
    }
}
