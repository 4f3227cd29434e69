//! The one error type of the engine: what failed, why, and what to do about it.
//!
//! The program renders it as three lines, `error:` / `cause:` / `try:`. Nothing in here prints.

use crate::files::name;
use crate::shell::quoted;
use std::fmt;
use std::io::{self, ErrorKind as IoKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Class of a failure; the program derives its exit status from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Something outside could not be read, parsed, opened or started (exit status 1).
    Failed,
    /// The request itself makes no sense: unknown name, contradictory options (exit status 2).
    Usage,
    /// The request is sound but this machine cannot measure it (exit status 3 where demanded).
    NotPossible,
    /// The command to measure was not found (exit status 127, as a shell has it).
    CommandNotFound,
    /// The command to measure exists but cannot be executed (exit status 126).
    CommandNotExecutable,
}

/// An error with its cause and a remedy.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    cause: Option<String>,
    hint: Option<String>,
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An input or system failure.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, what)
    }

    /// A request that makes no sense as asked.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, what)
    }

    /// A measurement this machine cannot make.
    pub fn not_possible(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotPossible, what)
    }

    /// Changes the class of failure.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), cause: None, hint: None }
    }

    /// Adds why it failed, without the number that the standard library adds to an error of the system.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        let mut cause = cause.to_string();
        if let Some(number) = cause.rfind(" (os error ").filter(|_| cause.ends_with(')')) {
            cause.truncate(number);
        }
        self.cause = Some(cause);
        self
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The class of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The failure, in one sentence without a full stop.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Why, when it is known.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The remedy, if there is one.
    pub fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// An error of the system or of another library as the cause of one of ours: it can be stored and copied. Two are equal
/// if their texts are.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use tma::Cause;
///
/// let of = |kind: ErrorKind| Cause::from(Error::from(kind));
/// assert_eq!(of(ErrorKind::NotFound), of(ErrorKind::NotFound));
/// assert_ne!(of(ErrorKind::NotFound), of(ErrorKind::PermissionDenied));
/// assert_eq!(of(ErrorKind::NotFound).kind(), ErrorKind::NotFound);
/// ```
#[derive(Debug)]
pub struct Cause<E>(Arc<E>);

impl<E> Clone for Cause<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: fmt::Display> PartialEq for Cause<E> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.to_string() == other.0.to_string()
    }
}

impl<E: fmt::Display> Eq for Cause<E> {}

impl<E> From<E> for Cause<E> {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl<E> Deref for Cause<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The entry of `known` nearest to `name` by edit distance, if it is near enough to be a typing error.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names of up to three letters may have one wrong; longer ones a third, and one more for swapped letters.
    let length = name.chars().count();
    let limit = if length <= 3 { 1 } else { length / 3 + 1 };
    known
        .into_iter()
        .map(|k| (strsim::levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, k)| k)
}

/// The error of a file that could not be opened or read, with what helps against this cause.
///
/// ```
/// let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
/// let error = tma::error::unreadable("counts.csv".as_ref(), &refused);
/// assert_eq!(error.what(), "cannot read counts.csv");
/// assert_eq!(error.remedy(), Some("run as its owner or as root, or ask for permission to read it"));
/// ```
pub fn unreadable(path: &Path, cause: &io::Error) -> Error {
    let error = Error::failed(format!("cannot read {}", name(path)));
    match cause.kind() {
        IoKind::NotFound => absent(path, error),
        IoKind::PermissionDenied => error
            .because(cause)
            .hint("run as its owner or as root, or ask for permission to read it"),
        IoKind::InvalidInput | IoKind::IsADirectory => {
            error.because(cause).hint("give a regular file")
        }
        _ => error.because(cause),
    }
}

fn absent(path: &Path, error: Error) -> Error {
    let error = error.because("there is no such file");
    match near(path) {
        Some(near) => error.hint(format!("did you mean {}?", quoted(&[near]))),
        None if path.is_relative() => {
            error.hint("check the path, which starts at the current folder")
        }
        None => error.hint("check the path"),
    }
}

/// The file of the same folder whose name is nearly this one.
pub fn near(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let all = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.flatten();
    let all = all.filter_map(|entry| entry.file_name().into_string().ok());
    // A link to nothing is there itself.
    let names: Vec<String> = all.filter(|other| other != name).collect();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(folder.map_or_else(|| near.into(), |folder| folder.join(near)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_neighbour_and_nonsense_does_not() {
        assert_eq!(nearest("skylak", ["skylake", "zen4"]), Some("skylake"));
        assert_eq!(nearest("SPR", ["skx", "spr"]), Some("spr"));
        assert_eq!(nearest("cuont", ["count"]), Some("count"));
        assert_eq!(nearest("Foo", ["Cor"]), None);
        assert_eq!(nearest("qqqqqq", ["skx", "spr"]), None);
    }
}
