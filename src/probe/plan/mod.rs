//! Chooses places for probes in a function: pure, from its analysis and the room around its module.
//!
//! | file | concern |
//! |---|---|
//! | `site` | one count as data; why there is no probe or no trampoline |
//! | `room` | free addresses, from which trampolines take theirs; use of the bytes of a function |
//! | `conservation` | flow conservation: derived counts, checks, hot blocks that need no probe |
//! | `choose` | instructions that can be patched → [`Placement`]s of the counts of blocks |
//! | `request` | a request: an instruction, and what to observe of it; branches, loads and entries of a function |
//! | `observe` | requests → [`Observer`]s |

mod choose;
mod conservation;
mod observe;
mod request;
mod room;
mod site;
#[cfg(test)]
mod tests;

pub use choose::{Chosen, LONGEST, Placement, Planned, derive, plan, plan_live};
pub use conservation::{Solved, solve};
pub use observe::{Observation, Observer, observe, observe_live};
pub use request::{
    AtEntry, LiveRegister, Load, Request, Unrecorded, What, at_entries, branches, loads, stores,
};
pub use room::{PAGE, Room};
pub use site::{JUMP, Kind, NoPlace, NoTrampoline, PREFIX, Site, Then};
