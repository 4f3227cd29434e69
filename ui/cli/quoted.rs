//! Words of a command line, to be shown.

use std::ffi::OsStr;

/// Words as a shell takes them.
pub fn quoted(words: &[impl AsRef<OsStr>]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    let quote =
        |word: std::borrow::Cow<'_, str>| match !word.is_empty() && word.chars().all(is_plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        };
    words.iter().map(|word| quote(word.as_ref().to_string_lossy())).collect::<Vec<_>>().join(" ")
}
