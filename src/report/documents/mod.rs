//! The documents: one serde type per question. Renderers compute nothing.
//!
//! | file | concern |
//! |---|---|
//! | [`report`] | the top-down report, `tdtool.report/1`, and what it comes to |
//! | [`report_code`] | its part about hot functions and blocks, and the source of one function |
//! | [`report_parts`] | its parts about the tree of each function, phases, and samples with their times |
//! | [`build`] | evaluations → rows and findings of it |
//! | [`estimate`], [`evidence`] | its estimated top-down; what that was computed from, `tdtool.evidence/1` |
//! | [`report_file`] | a report read back from JSON, or of what a screen shows; texts on its nodes |
//! | [`wall_time`] | what the wall time of a program goes to |
//! | [`series`] | what intervals show over time; names of software counts |
//! | [`command`] | the command that was measured, what its runs were for, how it ended |
//! | [`diff`] | two reports compared |
//! | [`flame`] | call stacks as a flame graph and as costs for callgrind's format |
//! | [`count`] | exact counts of functions, `tdtool.count/1` |
//! | [`branches`] | recorded branch stacks, `tdtool.branches/1` |
//! | [`loads`] | recorded samples of loads and stores, `tdtool.loads/1` |
//! | [`prefetch`], [`applied`] | prefetch advice, `tdtool.prefetch/1`, and plans of it; what came of it in the source |
//! | [`pgo`] | a profile for optimisers, `tdtool.pgo/1` |
//! | [`trial`] | a program against its optimised copy, `tdtool.pgo-try/1` |
//! | [`regions`] | regions that a program marks, `tdtool.regions/1` |
//! | [`block`] | measured blocks with predictions, compared, as judges of cost models; functions to choose from |
//! | [`deps`] | dependencies of a block, `tdtool.deps/1`; unmodelled instructions of a batch |
//! | [`microbench`] | throughput and latency of instructions; built-in programs |
//! | [`tables`] | plans, defects and values of event tables |
//! | [`doctor`] | this machine: what it can measure, its processor, facts measured on it |

/// `Display` of types that texts show by their words in documents.
macro_rules! shown_as_written {
    ($of:ty) => {
        impl std::fmt::Display for $of {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    };
}

pub mod applied;
pub mod block;
pub mod branches;
pub mod build;
pub mod command;
pub mod count;
pub mod deps;
pub mod diff;
pub mod doctor;
pub mod estimate;
pub mod evidence;
pub mod flame;
pub mod loads;
pub mod microbench;
pub mod pgo;
pub mod prefetch;
pub mod regions;
pub mod report;
pub mod report_code;
pub mod report_file;
pub mod report_parts;
pub mod series;
pub mod tables;
pub mod trial;
pub mod wall_time;
#[cfg(test)]
mod words;

pub use build::{Part, Selection, part};
pub use command::{Exit, Purpose};
pub use report::{Finding, FindingKind, InfoRow, NodeRow, Report, SCHEMA, Source};

/// One of a fixed set of words, or an address, in JSON, or an empty text for none: `#[serde(with = "or_empty")]`.
mod or_empty {
    use serde::de::IntoDeserializer as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        of: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match of {
            Some(of) => of.serialize(to),
            None => to.serialize_str(""),
        }
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let text = String::deserialize(from)?;
        (!text.is_empty()).then(|| T::deserialize(text.into_deserializer())).transpose()
    }
}
