//! Counting and sampling through perf_event_open, with every fallback.
//!
//! | file | concern |
//! |---|---|
//! | `measure` | a measurement: one or several runs, merged |
//! | `place` | which groups are counted in which run; tasks, CPUs and scopes to count; events with their encodings |
//! | `open` | opening groups, with every fallback; an event or a group at one place |
//! | `opened` | open groups, their state, their random order; what could not be opened |
//! | `fit` | splitting groups that do not fit or get no counters; counting them whole again |
//! | `run` | one run: start, multiplexing in a random order; [`RunHooks`]: actions of others, as for sampling |
//! | `watch` | the readings of a run |
//! | `end` | the end of a run: readings → [`tma::counts::Counts`] |
//! | `ending` | ends measurements from other threads |
//! | `controlled` | counting that a control pipe switches on and off |
//! | `outcome` | results of a run, with a bounded number of readings; counts of several runs → one |
//! | `software` | software events, wait4 |
//! | `proc_stat` | CPU time and context switches in `/proc` |
//! | `trace` | traced threads: their stops, and how they are resumed (`unsafe`) |
//! | `sampled` | events that write records, and their ring buffers (`unsafe`) |
//! | `events`, `live`, `child`, `signals`, `clock` | the real kernel; with the two above the only `unsafe` |

mod child;
mod clock;
mod controlled;
mod end;
mod ending;
mod events;
mod fit;
mod live;
mod measure;
mod open;
mod opened;
mod outcome;
mod place;
mod proc_stat;
mod run;
mod sampled;
mod signals;
mod software;
mod trace;
mod watch;

pub use child::{Child, cannot_start};
pub use clock::{ticks_and_monotonic, tsc_hz, tsc_hz_here};
pub use ending::Ending;
#[cfg(target_arch = "x86_64")]
pub use events::Events;
pub(crate) use live::raise_file_limit;
pub use live::{Live, find_cgroup, probe};
pub use measure::{blocked, check, measure, measure_through, measure_with, measure_with_hooks};
pub use place::code;
pub use run::{Attachment, NoHooks, RunHooks};
pub use sampled::{FORMAT_LOST, Opening, Rate, Ring, Sampled, SampledTasks};
pub use signals::{HeldSignals, Signals};
pub use software::{DUMMY, software};
pub use trace::{Resume, Stop, release, resume, seize, stop};
