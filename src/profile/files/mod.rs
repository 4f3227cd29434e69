//! Files of modules: where they are, their layout, and whether they are the recorded ones.
//!
//! | file | concern |
//! |---|---|
//! | `search` | [`SearchPaths`]: folders to search, and caches of files by build-id |
//! | `debuginfod`, `request`, `http` | files from servers |
//! | `gap`, `unreadable` | [`Gap`]: why a module is unavailable |
//! | `build_id` | comparing build-ids |
//! | `layout` | program headers: file offset ↔ address |
//! | `locate` | the file of a module |
//! | `missing` | why it was not found, in words |
//! | `part` | the files that belong to a build-id |
//! | `place` | a path here, or below a folder that stands for the root |
//! | `reading` | reading them within limits |
//! | `placed` | the mappings of a program at a known address |

mod build_id;
mod debuginfod;
mod gap;
#[cfg(feature = "debuginfod")]
mod http;
mod layout;
mod locate;
mod missing;
mod part;
mod place;
mod placed;
mod reading;
mod request;
mod search;
mod unreadable;

pub(crate) use build_id::{hexadecimal, same_id};
pub use debuginfod::Debuginfod;
pub use gap::Gap;
pub(crate) use layout::{Layout, Segment};
pub(crate) use locate::locate;
pub use missing::missing;
pub(crate) use part::Part;
pub(crate) use place::Place;
pub use placed::Program;
pub(crate) use reading::Files;
pub use request::Limits;
pub use search::{Cache, SearchPaths};
pub use unreadable::Unreadable;
