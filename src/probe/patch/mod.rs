//! Probes of any kind in the files that a command or a live process maps.
//!
//! | file | concern |
//! |---|---|
//! | `target` | files with wanted functions, and their analysis |
//! | `probes` | a kind of probe: planning, encoding, events |
//! | `prepared` | probes for one file of one process, ready to be written |
//! | `work` | progress of the analysis |
//! | `unprobed` | why something is not probed |
//! | `leftovers` | probes of a run that was killed |
//! | `tasks` | copies of the counters for tasks that run at the same time |
//! | `instance` | one file in one process: mapped, patched, its shared memory |
//! | `mapped` | memory mapped in a process for results and trampolines |
//! | `written` | trampolines and jumps before they are written |
//! | `observed` | observers as trampolines and jumps |
//! | `patched` | the code of a process: patched, checked, restored |
//! | `origins` | addresses in trampolines → original code |
//! | `patcher` | reactions to the events of a command |
//! | `watching` | changes of a live process before and after a window |
//! | `live` | probes in a window of a live process |

mod instance;
mod leftovers;
mod live;
mod mapped;
mod observed;
mod origins;
mod patched;
mod patcher;
mod prepared;
mod probes;
mod target;
mod tasks;
mod unprobed;
mod watching;
mod work;
mod written;

pub use live::{Progress, Window, notes, watched};
pub use mapped::Shared;
pub use observed::{most_of, refusal, write_observers};
pub use origins::Trampolines;
pub use patcher::Patcher;
pub use probes::{Probed, Probes};
pub use target::{Member, Target, Wanted, targets};
pub use tasks::Copies;
pub use unprobed::Unprobed;
pub use written::{Code, WORD, Written};
