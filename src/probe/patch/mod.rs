//! Probes of any kind in the files that a command or a live process maps.
//!
//! | file | concern |
//! |---|---|
//! | `target` | files with wanted functions, and their analysis |
//! | `probes` | a kind of probe: planning, encoding, events; its trampolines and jumps |
//! | `unprobed` | why something is not probed |
//! | `prepared` | probes for one file of one process, ready to be written |
//! | `leftovers` | probes of a run that was killed |
//! | `tasks` | copies of the counters for tasks that run at the same time |
//! | `instance` | one file in one process: mapped, patched, its shared memory |
//! | `mapped` | memory mapped in a process for results and trampolines |
//! | `patched` | the code of a process: patched, checked, restored |
//! | `patcher` | reactions to the events of a command |
//! | `live` | probes in a window of a live process |

mod instance;
mod leftovers;
mod live;
mod mapped;
mod patched;
mod patcher;
mod prepared;
mod probes;
mod target;
mod tasks;
mod unprobed;

pub use instance::Trampolines;
pub use live::{Progress, Window, notes, watched, watched_again};
pub use mapped::Shared;
pub use patcher::Patcher;
pub use probes::{Code, Probed, Probes, WORD, Written, most_of, refusal, write_observers};
pub use target::{Blocks, Member, Target, Wanted, targets};
pub use tasks::Copies;
pub use unprobed::Unprobed;
