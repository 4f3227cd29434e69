//! Generates the code of a run: set-up, copies of the block, loop, time stamps.
//!
//! | file | concern |
//! |---|---|
//! | `emitter` | encodes instructions at offsets of the region |
//! | `required_state`, `loop_counter` | state to restore before the copies; how the loop form counts |
//! | `unlocked_exchange` | `xchg` without its lock, for traces |
//! | `slots` | the registers that are traced |
//! | `builder`, `forms`, `program` | parts of the code, the forms built from them, the result |
//! | `region`, `relaid` | code with its own jumps, moved to another address, or laid out anew |
//! | `immovable` | why code cannot be moved |
//! | `entry_counter` | counter of the entries into `region` code |
//! | `skeleton` | the front-end skeleton: instructions of the same lengths that only take slots |

pub(crate) mod builder;
pub(crate) mod emitter;
pub(crate) mod entry_counter;
pub(crate) mod forms;
pub(crate) mod immovable;
pub(crate) mod loop_counter;
pub(crate) mod program;
pub(crate) mod region;
pub(crate) mod relaid;
pub(crate) mod required_state;
pub(crate) mod skeleton;
pub(crate) mod slots;
pub(crate) mod unlocked_exchange;
