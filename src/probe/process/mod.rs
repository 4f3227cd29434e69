//! The process side: a command under ptrace(2).
//!
//! | file | concern |
//! |---|---|
//! | `traced` | a traced command: its processes and threads, their stops, hits of the breakpoint |
//! | `stepping` | stopping all threads, moving one of them on |
//! | `ending` | killing the command, or letting it continue |
//! | `resuming` | breakpoints and signals of a thread that continues |
//! | `calls` | how long system calls are traced for files that are mapped |
//! | `followed` | a command followed through all its threads and children, without breakpoints |
//! | `living` | a live process before it is traced |
//! | `attached` | a live process, watched for a while |
//! | `threads` | all its threads, and of what has the same memory: traced, stopped, let go |
//! | `halting`, `pauses` | its threads stopped together, and let go; for how long |
//! | `vacating`, `held` | memory of ours taken away, unless something may come back there |
//! | `obstacle` | what is in the way of all that |
//! | `restart` | system calls that a stop has interrupted |
//! | `seize` | the beginning of tracing, and why it is refused |
//! | `sharing` | processes with the same memory (`unsafe`) |
//! | `tracee` | a process that makes system calls for us |
//! | `inject`, `map_many` | system calls in a stopped thread, many mappings at once |
//! | `signals` | its blocked signals (`unsafe`) |
//! | `vacant` | addresses at which nothing is mapped |
//! | `task` | traced processes and threads as data |
//! | `breakpoints` | breakpoints in debug registers, or as `int3` where those are refused |
//! | `thread` | one stopped thread: registers, steps, debug registers |
//! | `xstate` | vector, mask and x87 registers (`unsafe`) |
//! | `memory`, `maps` | memory and mappings of a process |
//! | `loader` | where the dynamic loader announces that it has mapped a file |

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
