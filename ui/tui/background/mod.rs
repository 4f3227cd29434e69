//! Background threads: measuring, reading, profiling. Results come back through the queue.
//!
//! | file | concern |
//! |---|---|
//! | `threads` | everything that runs, and what it is asked to do |
//! | `live` | a live measurement |
//! | `watch` | the functions while it runs |
//! | `recording` | a file's report, functions, and their code; `file`: reading it; `source`: its source lines |
//! | `estimate` | top-down of a sampled command, estimated |
//! | `comparison` | two files compared |
//! | `blocks` | blocks, measured one after the other |
//! | `queue` | the way back; `request`: what the profile is asked for |

mod blocks;
mod comparison;
mod estimate;
mod file;
mod live;
mod queue;
mod recording;
mod request;
mod source;
mod threads;
mod watch;

pub use threads::Background;
