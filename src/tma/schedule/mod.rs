//! Counter constraints; events → groups.
//!
//! A group is a set of events that the kernel counts at the same time. The planner serves the
//! chosen nodes with as few groups as it can: a node's events in one group wherever they fit,
//! all of level 1 in one group, and a node that fits nowhere split along its formula
//! (`needs`). What fits is decided by an exact matching of events to counters
//! (`counters`); what shares a group by a bounded, deterministic search (`pack`).

mod bits;
mod budget;
mod counters;
mod needs;
mod pack;
mod plan;
mod weak;

pub use budget::Budget;
pub use counters::Counter;
pub use plan::{
    Group, Placement, Plan, USUAL_EFFORT, assign, deepest_without_multiplexing, plan, plan_with,
    to_level,
};
pub use weak::split;
