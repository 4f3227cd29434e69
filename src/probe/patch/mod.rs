//! Probes in the files that a running command maps, whatever they are for.
//!
//! | file | concern |
//! |---|---|
//! | `target` | the files of the wanted functions, and their facts |
//! | `probes` | what differs between kinds of runs |
//! | `instance` | one file in one process: mapped, patched, its shared memory |
//! | `mapped` | memory of the program's own for results and trampolines |
//! | `written` | trampolines and jumps before they are written |
//! | `patcher` | what is done at the events of the command |

mod instance;
mod mapped;
mod patcher;
mod probes;
mod target;
mod written;

pub use instance::Instance;
pub use mapped::Shared;
pub use patcher::Patcher;
pub use probes::Probes;
pub use target::{Member, Target, Wanted, targets};
pub use written::{Code, Written};
