//! Commands and live processes under ptrace(2).
//!
//! | file | concern |
//! |---|---|
//! | `traced` | a traced command: its processes and threads, their stops, hits of the breakpoint, its end |
//! | `stepping` | stopping all threads, stepping one of them, resuming it |
//! | `thread` | processes and threads as data; a stopped thread: registers, breakpoints |
//! | `xstate` | vector, mask and x87 registers (`unsafe`) |
//! | `memory` | memory, mappings and unmapped addresses of a process; the hook of the dynamic loader |
//! | `followed` | a command followed through all its threads and children, without breakpoints |
//! | `seize` | a live process before it is traced, those with the same memory (`unsafe`); the beginning of tracing |
//! | `attached` | a live process, watched in a time window: all its threads traced, stopped, detached |
//! | `halting` | stopping and resuming all threads, and why that fails |
//! | `vacating` | unmapping our memory, unless contexts may return to it |
//! | `untraced` | a command that runs untraced between windows |
//! | `inject` | system calls in a stopped thread, restarted calls, blocked signals (`unsafe`) |
//! | `tracee` | a process that makes system calls for us, many mappings at once |

mod attached;
mod followed;
mod halting;
mod inject;
mod memory;
mod seize;
mod stepping;
mod thread;
mod traced;
mod tracee;
mod untraced;
mod vacating;
mod xstate;

pub use attached::{Watched, watch};
pub use followed::{Created, Followed, Follower, MOST_APART, MOST_CALLS, follow};
pub use halting::Watcher;
pub use memory::{Image, Mapping, Memory, PAGE, mappings, near, vacant, vacant_yet};
pub use seize::{Living, shares};
pub use thread::{Kind, Registers, change, registers};
pub use traced::{Event, Traced};
pub use tracee::{Tracee, seccomp};
pub use untraced::Untraced;
pub use xstate::{Vectors, vectors};
