//! Commands and live processes under ptrace(2).
//!
//! | file | concern |
//! |---|---|
//! | `traced` | a traced command: its processes and threads, their stops, hits of the breakpoint |
//! | `stepping` | stopping all threads, stepping one of them |
//! | `ending` | killing the command, or letting it continue |
//! | `resuming` | breakpoints and signals of a thread that continues |
//! | `calls` | limits for tracing system calls |
//! | `followed` | a command followed through all its threads and children, without breakpoints |
//! | `living` | a live process before it is traced |
//! | `attached` | a live process, watched in a time window |
//! | `threads` | all threads of a process, and tasks that share its memory: traced, stopped, detached |
//! | `halting`, `pauses` | stopping and resuming all threads; pauses between tries |
//! | `vacating`, `held` | unmapping our memory, unless contexts may return to it |
//! | `obstacle` | reasons why a live process cannot be stopped or changed |
//! | `restart` | restarting system calls that a stop interrupted |
//! | `seize` | the beginning of tracing, and why it is refused |
//! | `sharing` | processes with the same memory (`unsafe`) |
//! | `tracee` | a process that makes system calls for us |
//! | `inject`, `map_many` | system calls in a stopped thread, many mappings at once |
//! | `signals` | blocked signals of a stopped thread (`unsafe`) |
//! | `vacant` | unmapped addresses |
//! | `task` | traced processes and threads as data |
//! | `breakpoints` | breakpoints in debug registers or as `int3` |
//! | `thread` | one stopped thread: registers, steps, debug registers |
//! | `xstate` | vector, mask and x87 registers (`unsafe`) |
//! | `memory`, `maps` | memory and mappings of a process |
//! | `loader` | the hook of the dynamic loader for mapped files |

mod attached;
mod breakpoints;
mod calls;
mod ending;
mod followed;
mod halting;
mod held;
mod inject;
mod living;
mod loader;
mod map_many;
mod maps;
mod memory;
mod obstacle;
mod pauses;
mod restart;
mod resuming;
mod seize;
mod sharing;
mod signals;
mod stepping;
mod task;
mod thread;
mod threads;
mod traced;
mod tracee;
mod vacant;
mod vacating;
mod xstate;

pub use attached::{Watched, watch};
pub use breakpoints::Kind;
pub use calls::{MOST_APART, MOST_CALLS};
pub use followed::{Created, Followed, Follower, follow, set_gs_base};
pub use halting::Watcher;
pub use living::Living;
pub use maps::{Image, Mapping, mappings};
pub use memory::{Memory, PAGE};
pub use sharing::shares;
pub use thread::{Registers, registers};
pub use traced::{Event, Traced};
pub use tracee::{Tracee, seccomp};
pub use vacant::{near, vacant, vacant_yet};
pub use xstate::{Vectors, vectors};
