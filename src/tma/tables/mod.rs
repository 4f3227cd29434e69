//! Typed event tables: what a microarchitecture counts and how that becomes a tree.
//!
//! Files are parsed ([`schema`]) and compiled ([`Table`]) one at a time; start-up touches only
//! the one it needs. [`validate`] finds everything wrong with a file, [`texts`] says what a node
//! means, [`select()`] reads `--nodes`. Nothing here measures, schedules or prints.

mod compile;
mod embedded;
pub mod facts;
mod invalid;
mod level1;
mod library;
mod packed;
pub mod schema;
pub mod select;
mod shared;
pub mod signature;
mod table;
pub mod texts;
mod titles;
pub mod validate;

pub use embedded::{Bundle, Embedded, Rule, plain_name};
pub use facts::Facts;
pub use invalid::{Invalid, NodeText};
pub use level1::Level1;
pub use library::{Head, Library};
pub use packed::{Packed, pack};
pub use schema::{CoreKind, EventSpec, ExtraRegister, PmuKind, Ring};
pub use select::select;
pub use shared::{ReorderBuffer, Shared};
pub use signature::Signature;
pub use table::{Const, Event, EventId, Node, NodeId, NodeKind, Table};
