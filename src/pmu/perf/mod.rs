//! Counting and sampling through perf_event_open, with every fallback.
//!
//! | file | concern |
//! |---|---|
//! | `measure` | a measurement: one or several runs, merged |
//! | `parts` | which groups are counted in which run |
//! | `place` | tasks, CPUs and scopes to count |
//! | `coded` | events with their encodings |
//! | `open`, `one` | opening groups, with every fallback; an event or a group at one place |
//! | `opened` | open groups, and what could not be opened |
//! | `fit`, `starved`, `whole` | splitting groups that do not fit or get no counters; counting them whole again |
//! | `run`, `watch`, `end` | one run: start; the readings; end |
//! | `run_hooks` | [`RunHooks`]: actions of others in each run, as for sampling |
//! | `switched`, `controlled` | counting that a control pipe switches on and off |
//! | `rotation`, `deck` | many groups, multiplexed in a random order |
//! | `state` | state of groups while they are opened and counted |
//! | `outcome`, `refused` | results of a run; why nothing can be counted |
//! | `read` | one reading of all open groups |
//! | `frames` | a bounded number of readings |
//! | `result`, `merge` | readings → [`tma::counts::Counts`]; counts of several runs → one |
//! | `software`, `software_event`, `proc_stat` | software events, wait4 and `/proc` |
//! | `trace` | traced threads: their stops, and how they are resumed |
//! | `sampled`, `ring` | events that write records, and their ring buffers |
//! | `control` | the control pipe |
//! | `events`, `live`, `child`, `signals`, `clock` | the real kernel; with the four above the only `unsafe` |

mod child;
mod clock;
mod coded;
mod control;
mod controlled;
mod deck;
mod end;
mod events;
mod fit;
mod frames;
mod live;
mod measure;
mod merge;
mod one;
mod open;
mod opened;
mod outcome;
mod parts;
mod place;
mod proc_stat;
mod read;
mod refused;
mod result;
mod ring;
mod rotation;
mod run;
mod run_hooks;
mod sampled;
mod signals;
mod software;
mod software_event;
mod starved;
mod state;
mod switched;
mod trace;
mod watch;
mod whole;

pub use child::{Child, cannot_start};
pub use clock::{ticks_and_monotonic, tsc_hz, tsc_hz_here};
pub use coded::code;
#[cfg(target_arch = "x86_64")]
pub use events::Events;
pub use live::{Live, probe};
pub(crate) use live::{find_cgroup, raise_file_limit};
pub use measure::{blocked, check, measure, measure_with, measure_with_hooks};
pub use ring::Ring;
pub use run_hooks::{Attachment, NoHooks, RunHooks};
pub use sampled::{FORMAT_LOST, Opening, Rate, Sampled, SampledTasks};
pub use signals::Signals;
pub use software_event::{DUMMY, software};
pub use trace::{Resume, Stop, release, resume, seize, stop};
