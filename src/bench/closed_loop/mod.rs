//! A loop body run as the program runs it: its own back edge taken, addresses advancing, every
//! array apart from the others, nothing restored between iterations.
//!
//! | file | concern |
//! |---|---|
//! | `pointers` | which register of an address is the pointer, which are offsets |
//! | `arrays` | extent and place of the array behind each pointer |
//! | `exit` | values with which the loop runs a chosen number of iterations |
//! | `content` | what arrays hold where it decides addresses or the exit |
//! | `known` | register values planned so far |
//! | `plan` | initial registers and memory, from the above |
//! | `traced` | the plan run once: how many iterations it really takes, and which lines it touches |
//! | `captured` | the same with the code, registers and memory of a running program |
//! | `overlapping` | its executions back to back |
//! | `executions` | several executions of such a loop |
//! | `bounded` | ways to leave such a loop earlier than in the program |
//! | `leave_early` | the register that is set for that |
//! | `only_read_by_exit` | the same of several blocks |
//! | `timing` | long against short runs of the loop |
//! | `outcome` | what that gives |
//! | `front_end` | the front end of the loop in isolation |
//! | `headline` | the loop's time in the document |
//!
//! A plan is a guess from the code of one iteration. What is measured follows from the traced run,
//! never from the plan.

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
