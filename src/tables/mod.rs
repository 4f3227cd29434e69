//! Typed event tables: what a microarchitecture counts and how that becomes a tree.
//!
//! Files are parsed ([`schema`]) and compiled ([`Table`]) one at a time; start-up touches only
//! the one it needs. Nothing here measures, schedules or prints.

pub mod formula;
pub mod library;
pub mod schema;
mod table;

pub use library::Library;
pub use schema::{CoreKind, EventSpec, ExtraRegister, PmuKind, Ring};
pub use table::{Const, Event, EventId, Node, NodeId, NodeKind, Table};
