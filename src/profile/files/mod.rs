//! Files of modules: where they are, their layout, and whether they are the recorded ones.
//!
//! | file | concern |
//! |---|---|
//! | `search` | [`SearchPaths`]: folders to search |
//! | `gap` | [`Gap`]: why a module is unavailable |
//! | `build_id` | comparing build-ids |
//! | `layout` | program headers: file offset ↔ address |
//! | `locate` | the file of a module |
//! | `placed` | the mappings of a program at a known address |

mod build_id;
mod gap;
mod layout;
mod locate;
mod placed;
mod search;

pub(crate) use build_id::{hexadecimal, same_id};
pub use gap::Gap;
pub(crate) use layout::{Layout, Segment};
pub(crate) use locate::{locate, read};
pub use placed::Program;
pub use search::SearchPaths;
