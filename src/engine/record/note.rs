//! Notes on what is sampled. A session keeps them as words, which are read again here.

use std::fmt;

/// Why no hardware event can be counted or sampled.
pub(super) const NO_PMU: &str = "no core PMU";

const SAMPLED: &str = "sampled on ";
const NO_TREE: &str = "no tree per function: ";

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The CPU clock is sampled, as there is no core PMU.
    NoPmu,
    /// Another event than was asked for is sampled: which, and why.
    Sampled(String),
    /// Why there is no tree per function.
    NoTree(String),
    /// Any other.
    Other(String),
}

impl Note {
    /// The note that a session has as `text`.
    pub fn parse(text: &str) -> Self {
        let sampled = || text.strip_prefix(SAMPLED).map(|of| Self::Sampled(of.to_owned()));
        let no_tree = || text.strip_prefix(NO_TREE).map(|why| Self::NoTree(why.to_owned()));
        if text == Self::NoPmu.to_string() {
            return Self::NoPmu;
        }
        sampled().or_else(no_tree).unwrap_or_else(|| Self::Other(text.to_owned()))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPmu => write!(f, "{SAMPLED}cpu-clock: {NO_PMU}"),
            Self::Sampled(of) => write!(f, "{SAMPLED}{of}"),
            Self::NoTree(why) => write!(f, "{NO_TREE}{why}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

/// Notes as words, for a session or a report.
pub(crate) fn words(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for note in [
            Note::NoPmu,
            Note::Sampled("cycles: no event locates Memory_Bound here".to_owned()),
            Note::NoTree("the samples hold no counts".to_owned()),
            Note::Other("kernel mode is not sampled: perf_event_paranoid is 2".to_owned()),
        ] {
            assert_eq!(Note::parse(&note.to_string()), note);
        }
        // Sessions are read by later versions.
        assert_eq!(Note::NoPmu.to_string(), "sampled on cpu-clock: no core PMU");
        let tree = Note::parse("no tree per function: level 1 of zen3 needs 2 groups of counters");
        assert_eq!(tree, Note::NoTree("level 1 of zen3 needs 2 groups of counters".to_owned()));
    }
}
