//! What an instruction reads and writes: registers with partial writes, flag groups, memory,
//! implicit operands. Dependencies, latencies, renaming and kernels all stand on this one view.
//!
//! iced-x86 gives most of it; what it leaves out or has wrong is added here, per
//! microarchitecture where processors differ.

//!
//! | file | concern |
//! |---|---|
//! | `place` | registers and flag groups as numbers and sets |
//! | `model` | the effects of an instruction, as data: [`Effects`] |
//! | `finder` | instruction → [`Effects`]: the order of the steps |
//! | `registers` | registers read and written, and what for |
//! | `flags` | groups of flags read and written |
//! | `memory` | memory operands, gathers lane by lane |
//! | `idioms` | what breaks dependencies, what is done by renaming |
//! | `corrections` | the list of what is corrected, as data |

mod corrections;
mod finder;
mod flags;
mod idioms;
mod memory;
mod model;
mod place;
mod registers;
#[cfg(test)]
mod tests;

pub use corrections::{CORRECTIONS, Correction, Evidence};
pub use finder::Finder;
pub use model::{Access, Effects, Paths, Read, Role, Write};
pub use place::{Place, Places};
