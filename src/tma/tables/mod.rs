//! Typed event tables: what a microarchitecture counts and how that becomes a tree.
//!
//! Files are parsed ([`schema`]) and compiled ([`Table`]) one at a time; start-up touches only
//! the one it needs. [`validate`] finds everything wrong with a file, [`texts`] says what a node
//! means, [`select()`] reads `--nodes`. Nothing here measures, schedules or prints.

mod compile;
mod embedded;
pub mod facts;
mod library;
pub mod schema;
pub mod select;
mod shared;
mod table;
pub mod texts;
pub mod validate;

pub use compile::{Invalid, NodeText};
pub use embedded::{Bundle, Embedded, Packed, Rule, pack, plain_name};
pub use facts::Facts;
pub use library::{Head, Library};
pub use schema::{CoreKind, EventSpec, ExtraRegister, PmuKind, Ring, Signature};
pub use select::select;
pub use shared::{ReorderBuffer, Shared};
pub use table::{Const, Event, EventId, Level1, Node, NodeId, NodeKind, Table};
