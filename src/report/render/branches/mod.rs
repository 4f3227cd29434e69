//! Recorded branches as text, CSV, and inputs of other tools.
//!
//! | file | concern |
//! |---|---|
//! | `text` | text |
//! | `table` | CSV |
//! | `counted` | counts of a module: llvm-profgen, AutoFDO, BOLT |
//! | `pprof` | pprof's profile.proto |

mod counted;
mod pprof;
mod table;
mod text;

pub use counted::{autofdo, bolt, unsymbolized};
pub use pprof::pprof;
pub use table::csv;
pub use text::text;
