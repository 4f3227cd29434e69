//! Tree, evaluation, thresholds, bottleneck, advice.
//!
//! [`Evaluator`] turns [`crate::counts::Counts`] into one [`NodeResult`] per node of a table;
//! [`Flags`] says which nodes are flagged and which one is the bottleneck. Pure arithmetic:
//! nothing here measures or formats.
//!
//! ```
//! use tma::counts::{Counts, GroupCounts};
//! use tma::tables::Table;
//! use tma::tree::{Evaluator, Flags};
//!
//! // The tree of Yasin's paper (ISPASS 2014); 1000 cycles of 4 slots.
//! let text = std::fs::read_to_string("../../events/abstract/paper.toml")?;
//! let table = Table::parse(&text, "paper.toml")?;
//! let counted = [
//!     ("TotalSlots", 4000.0),
//!     ("FetchBubbles", 400.0),
//!     ("SlotsIssued", 1300.0),
//!     ("SlotsRetired", 1200.0),
//!     ("RecoveryBubbles", 100.0),
//! ];
//! let event = |(name, count)| (table.event(name).expect("an event of the paper"), Ok(count));
//! let events = counted.map(event).to_vec();
//! let group = GroupCounts::Imported { events, running: None, intervals: Vec::new() };
//! let evaluation =
//!     Evaluator::new(&table).values(&Counts { groups: vec![group], ..Counts::default() });
//!
//! // Front end 400 / 4000, bad speculation (1300 - 1200 + 100) / 4000, retiring 1200 / 4000; the
//! // back end is the rest, 0.55, over its threshold of 0.2.
//! let node = |id| &evaluation.nodes[usize::from(table.node(id).expect("a node of the paper"))];
//! assert_eq!(node("Frontend_Bound").quantity.get(), Some(0.1));
//! assert!((node("Backend_Bound").quantity.get().unwrap() - 0.55).abs() < 1e-9);
//! assert_eq!(node("Memory_Bound").quantity.get(), None, "its events are not among the counts");
//! assert_eq!(Flags::new(&table, &evaluation).bottleneck(), table.node("Backend_Bound"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod evaluate;
mod flags;
mod jackknife;
mod layout;
mod readings;
mod scratch;
#[cfg(test)]
mod tests;

pub use evaluate::Evaluator;
pub use flags::{Evaluation, Flags, MISMEASURED, NodeResult, UNDECIDED_WITHOUT_ERROR, Undecided};
pub use jackknife::student_t95;
pub use readings::MIN_READINGS;
