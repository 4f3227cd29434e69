//! The keys of the drill-down. One table gives their meaning, the footer, the `?` screen and the keys
//! page of the documentation; a config file may bind other keys.
//!
//! | file | concern |
//! |---|---|
//! | `command` | what a key can mean |
//! | `screen` | the screens of the drill-down |
//! | `screens` | sets of them on which a key does the same |
//! | `table` | the keys as they come |
//! | `bindings` | the keys as configured, looked up by key or command |
//! | `key` | a key as terminals send it and as people write it |
//! | `prompt` | keys in a prompt |
//! | `docs` | the table as documentation and as a config file |

mod bindings;
mod command;
mod docs;
mod key;
mod prompt;
mod screen;
mod screens;
mod table;

pub use bindings::{Bound, Keymap};
pub use command::Command;
pub use docs::{markdown, template};
pub use prompt::{Edit, edit};
pub use screen::Screen;
#[cfg(test)]
pub use table::KEYMAP;
