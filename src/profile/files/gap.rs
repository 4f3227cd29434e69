//! Reasons why the code or symbols of a module are unavailable.

use super::unreadable::Unreadable;
use std::fmt;

/// Why the code or symbols of a module are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// There is no such file: its path.
    NoFile(String),
    /// The file has changed since the recording: build-ids recorded and found.
    Changed(String, String),
    /// Two recorded files have its path, and another one is here.
    OtherFile,
    /// Another kernel runs here: releases recorded and running.
    OtherKernel(String, String),
    /// The file here is for another processor: the recorded architecture.
    OtherProcessor(String),
    /// It cannot be read.
    Unreadable(Unreadable),
    /// It has no code at the address.
    NoCode,
    /// No function of it is known at the address.
    NoFunction,
    /// No module is mapped at the address.
    NoMapping,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile(path) => write!(f, "{path} is not here"),
            Self::Changed(recorded, found) => {
                let (recorded, found) = (shortened(recorded), shortened(found));
                write!(f, "it has changed since: build-id {recorded} recorded, {found} found")
            }
            Self::OtherFile => {
                f.write_str("two recorded files have its path, and another one is here")
            }
            Self::OtherKernel(recorded, found) => {
                write!(f, "it is kernel {recorded}; {found} runs here")
            }
            Self::OtherProcessor(recorded) => {
                write!(f, "the file here is for another processor than the recorded {recorded}")
            }
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::NoCode => f.write_str("it has no code there"),
            Self::NoFunction => f.write_str("no function is known at this address"),
            Self::NoMapping => f.write_str("no mapping is known at this address"),
        }
    }
}

/// The first digits of a build-id, enough to compare by eye.
pub(super) fn shortened(id: &str) -> String {
    let head: String = id.chars().take(12).collect();
    if head.len() < id.len() { head + "\u{2026}" } else { head }
}
