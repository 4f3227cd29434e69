//! The code around the block: set-up, copies, loop, time stamps.
//!
//! | file | concern |
//! |---|---|
//! | `emit` | bytes at a known place of the region |
//! | `needs`, `counter`, `exchange` | what must be restored; how the loop form counts; `xchg` in traces |
//! | `shape` | how many copies, how they repeat, where they start |
//! | `builder`, `program` | the parts, and the forms made of them |
//! | `skeleton` | the front-end skeleton: nops of the same lengths |

pub(crate) mod builder;
pub(crate) mod code;
pub(crate) mod counter;
pub(crate) mod emit;
pub(crate) mod exchange;
pub(crate) mod needs;
pub(crate) mod program;
pub(crate) mod shape;
pub(crate) mod skeleton;
