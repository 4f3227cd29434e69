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
pub(crate) mod copies;
pub(crate) mod emitter;
pub(crate) mod forms;
pub(crate) mod loop_counter;
pub(crate) mod program;
pub(crate) mod required_state;
pub(crate) mod skeleton;
pub(crate) mod unlocked_exchange;
