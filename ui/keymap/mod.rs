//! The keys of the drill-down. One table gives their meaning, the footer, the `?` screen and the keys
//! page of the documentation; a config file may bind other keys.
//!
//! | file | concern |
//! |---|---|
//! | `command` | what a key can mean, and the screens of the drill-down |
//! | `table` | the keys as they come, also as documentation and as a config file |
//! | `bindings` | the keys as configured, looked up by key or command |
//! | `key` | a key as terminals send it and as people write it; keys in a prompt |

mod bindings;
mod command;
mod key;
mod table;

pub use bindings::{Bound, Keymap};
pub use command::{Command, Screen};
pub use key::{Edit, edit};
pub use table::{markdown, template};

#[cfg(test)]
pub use table::KEYMAP;
