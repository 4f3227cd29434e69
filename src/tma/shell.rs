//! Words of a command line, as a shell takes them: what is printed runs when it is pasted.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

/// The words on one line, each quoted where a shell would change it.
///
/// ```
/// assert_eq!(tma::shell::quoted(&["sh", "-c", "it's; echo", ""]), r"sh -c 'it'\''s; echo' ''");
/// assert_eq!(tma::shell::quoted(&["python3", "-c", "for i in x:\n\tprint(i)"]), r"python3 -c $'for i in x:\n\tprint(i)'");
/// ```
pub fn quoted(words: &[impl AsRef<OsStr>]) -> String {
    words.iter().map(|word| quoted_word(word.as_ref())).collect::<Vec<_>>().join(" ")
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
fn escaped(bytes: &[u8]) -> String {
    let mut out = "$'".to_owned();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = match byte {
            b'\n' => write!(out, "\\n"),
            b'\t' => write!(out, "\\t"),
            b'\\' | b'\'' => write!(out, "\\{}", char::from(*byte)),
            b' '..=b'~' => write!(out, "{}", char::from(*byte)),
            other => write!(out, "\\x{other:02x}"),
        };
    }
    out + "'"
}
