//! Counter constraints; events → groups.
//!
//! A group is a set of events that the kernel counts at the same time. The planner serves the
//! chosen nodes with as few groups as it can: a node's events in one group wherever they fit,
//! all of level 1 in one group, and a node that fits nowhere split along its formula
//! (`needs`). What fits is decided by an exact matching of events to counters
//! (`counters`); what shares a group by a bounded, deterministic search (`pack`).
//!
//! ```
//! use tma::schedule::{Budget, plan, to_level};
//! use tma::tables::Table;
//!
//! let text = std::fs::read_to_string("../../events/amd/zen4.toml")?;
//! let table = Table::parse(&text, "zen4.toml")?;
//! let budget = Budget::of(&table, false, false);
//!
//! // Cycles, front-end bubbles, dispatched and retired ops, back-end stalls and slots lost to the
//! // other thread: level 1 fits into the six counters of a Zen 4 (AMD PPR for family 19h).
//! let level_1 = plan(&table, &to_level(&table, 1), false, &budget);
//! assert_eq!(level_1.groups.len(), 1);
//!
//! // With three counters it is multiplexed, and every group still fits.
//! let few = plan(&table, &to_level(&table, 1), false, &budget.with_general(3));
//! assert!(few.groups.len() > 1);
//! assert!(few.groups.iter().all(|group| group.events.len() <= 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allowed;
mod bits;
mod budget;
mod counters;
mod matching;
mod needs;
mod pack;
mod plan;
mod weak;

pub use allowed::NoCounter;
pub use budget::Budget;
pub use counters::Counter;
pub use plan::{
    Group, Placement, Plan, USUAL_EFFORT, assign, deepest_without_multiplexing, plan, plan_with,
    to_level,
};
pub use weak::split;
