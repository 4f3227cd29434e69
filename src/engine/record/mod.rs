//! A live measurement whose counts and samples go to a session file while it runs.
//!
//! | file | concern |
//! |---|---|
//! | `sample_ask` | [`SampleAsk`]: what a user asks to be sampled |
//! | `sample` | what is sampled: that, what locates nodes, else cycles or the CPU clock |
//! | `chooser` | events as the kernel takes them |
//! | `why_not` | why something cannot be sampled |
//! | `note` | notes on what is sampled |
//! | `names`, `by_name` | events that a user has named |
//! | `locating` | events that locate nodes |
//! | `hardware` | records of branches and loads |
//! | `per_function` | counts of level 1 at samples |
//! | `session`, `shared_file` | the session file |
//! | `kept_programs` | copies of programs that no path leads to afterwards |
//! | `alone` | samples of a command that something else starts |

mod alone;
mod by_name;
mod chooser;
mod hardware;
mod kept_programs;
mod locating;
mod names;
mod note;
mod per_function;
pub(crate) mod sample;
mod sample_ask;
mod session;
mod shared_file;
mod why_not;

pub(crate) use alone::Alone;
pub use note::Note;
pub(crate) use note::words;
pub use sample_ask::SampleAsk;
pub use session::{Recorded, Sampled, record};
