//! The user's folders: <https://specifications.freedesktop.org/basedir-spec/latest/>.

use std::path::PathBuf;

/// `$XDG_CACHE_HOME`, else `~/.cache`.
pub fn cache() -> Option<PathBuf> {
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
}

/// `$XDG_CONFIG_HOME`, else `~/.config`.
pub fn config() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}

/// The folder in an environment variable; the specification ignores relative paths.
fn absolute(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    path.is_absolute().then_some(path)
}
