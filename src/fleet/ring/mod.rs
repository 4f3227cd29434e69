//! The windows of one host in a folder of bounded size: one file each, the oldest make room.
//!
//! | file | concern |
//! |---|---|
//! | `name` | names of files, which sort in the order of their windows |
//! | `defect` | what can be wrong with a file |
//! | `document` | a window as the bytes of a file, and back |
//! | `folder` | the folder itself: its lock, its files and their sizes |
//! | `write` | [`Ring`]: a window more, which is there whole or not at all |
//! | `read` | [`read()`]: all windows in order, or what is wrong with a file |
//!
//! A file is gzip of one JSON document ([`Window`](crate::window::Window)), so that `zcat` and `jq` read it. Its
//! name has the number of the window, which goes on from boot to boot: no clock decides which window is older, and
//! none can make one replace another.

mod defect;
mod document;
mod folder;
mod name;
mod read;
mod write;

pub use defect::Defect;
pub use document::LARGEST;
pub use folder::LEAST;
pub use read::{Damaged, Windows, read};
pub use write::{Dropped, Ring};
