//! Probes in the files that a running command or a live process maps, whatever they are for.
//!
//! | file | concern |
//! |---|---|
//! | `target` | the files of the wanted functions, and their facts |
//! | `probes` | what differs between kinds of runs |
//! | `prepared` | what is to be put into one file of one process |
//! | `work` | how far that is |
//! | `unprobed` | why something is not probed |
//! | `leftovers` | probes of a run that was killed |
//! | `tasks` | copies of the counters for tasks that run at the same time |
//! | `instance` | one file in one process: mapped, patched, its shared memory |
//! | `mapped` | memory of the program's own for results and trampolines |
//! | `written` | trampolines and jumps before they are written |
//! | `observed` | observers as such trampolines and jumps |
//! | `patched` | the code of that process: written over, checked, put back |
//! | `origins` | from trampolines to the original code |
//! | `patcher` | what is done at the events of the command |
//! | `watching` | what is done to a live process before and after |
//! | `live` | all that in a window of a live process |

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
