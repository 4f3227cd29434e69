//! Why a share is not known, or what it may be instead.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Why a share or a part of the evidence is not known, or what the share may be instead. A text in documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Reason {
    /// The caller's, for what it could not measure.
    Given(Given),
    /// It has no time.
    NoTime,
    /// It was not measured in isolation, for this reason.
    NotIsolated(Box<Reason>),
    /// In isolation it takes this many times as long as in the program: that was other work.
    OtherWork(f64),
    /// Its bound in isolation is not known.
    Unbounded,
    /// Its mispredictions are not known, for this reason.
    Mispredictions(Box<Reason>),
    /// Its loads were not recorded, for this reason.
    Loads(Box<Reason>),
    /// Some of its loads were not measured.
    SomeLoads,
    /// Its divisions were measured with other values than the program's.
    Values,
    /// The remainder could be fetching as well as waiting.
    Either,
    /// The remainder may be this, where no evidence is missing.
    NotApart,
    /// Nothing accounts for what is left.
    Nothing,
    /// This share of the time is of dependent instructions, by their latencies.
    Dependencies(f64),
}

impl Reason {
    /// A reason of the caller's.
    pub fn given(why: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self::Given(Given(Arc::new(why)))
    }
}

impl From<Reason> for String {
    fn from(of: Reason) -> Self {
        of.to_string()
    }
}

impl From<String> for Reason {
    fn from(why: String) -> Self {
        Self::given(why)
    }
}

impl From<&str> for Reason {
    fn from(why: &str) -> Self {
        Self::given(why.to_owned())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given(why) => return why.fmt(f),
            Self::NotIsolated(why) => return write!(f, "not measured in isolation: {why}"),
            Self::OtherWork(times) => {
                return write!(f, "it takes {times:.1} times as long there as in the program");
            }
            Self::Mispredictions(why) => {
                return write!(f, "its mispredictions are not known: {why}");
            }
            Self::Loads(why) => return write!(f, "its loads were not recorded: {why}"),
            Self::Dependencies(share) => {
                let share = 100.0 * share;
                return write!(f, "{share:.0} % of the time by the latencies of dependent instructions");
            }
            Self::NoTime => "it has no time",
            Self::Unbounded => "its bound in isolation is undecided",
            Self::SomeLoads => {
                "some of its loads were not measured, as where no probe fits: this may be why"
            }
            Self::Values => {
                "divisions take as long as their values ask for, and those of the program are not known: this may be why"
            }
            Self::Either => {
                "fetching code, or waiting for loads or results: either could take it"
            }
            Self::NotApart => "what is left may be this, or something else",
            Self::Nothing => "neither loads, nor stores, nor dependencies, nor code account for it",
        })
    }
}

/// A reason of the caller's: it is shown, and nothing here depends on it.
#[derive(Clone)]
pub struct Given(Arc<dyn fmt::Display + Send + Sync>);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.to_string())
    }
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}
