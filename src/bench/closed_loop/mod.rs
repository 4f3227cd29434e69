//! A loop body run as the program runs it: its own back edge taken, addresses advancing, every
//! array apart from the others, nothing restored between iterations.
//!
//! | file | concern |
//! |---|---|
//! | `pointers` | which register of an address is the pointer, which are offsets |
//! | `arrays` | extent and place of the array behind each pointer |
//! | `exit` | values with which the loop runs a chosen number of iterations |
//! | `content` | array contents that decide addresses or the exit |
//! | `known` | register values planned so far |
//! | `plan` | initial registers and memory |
//! | `traced` | one traced run of the plan: its iterations and cache lines |
//! | `captured` | the loop with the code, registers and memory of a running program |
//! | `overlapping` | executions of a captured loop back to back |
//! | `executions` | combining several executions of a captured loop |
//! | `bounded` | ways to leave a captured loop earlier than in the program |
//! | `leave_early` | the register or counter set to leave early |
//! | `only_read_by_exit` | finding that register in a loop of several blocks |
//! | `timing` | long against short runs of the loop |
//! | `outcome` | the result of timing a loop as a loop |
//! | `front_end` | the front end of the loop in isolation |
//! | `headline` | the loop's time in the document |
//!
//! A plan is a guess from the code of one iteration. Results follow from the traced run, never from the plan.

mod arrays;
mod bounded;
mod captured;
mod content;
mod executions;
mod exit;
mod front_end;
mod headline;
mod known;
mod leave_early;
mod only_read_by_exit;
mod outcome;
mod overlapping;
mod plan;
mod pointers;
mod timing;
mod traced;

pub use captured::can_be_moved;
pub(crate) use outcome::ClosedLoop;
