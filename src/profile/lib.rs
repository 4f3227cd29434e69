//! Profiles: samples, whom they belong to, and what they say about the code.
//!
//! | file | concern |
//! |---|---|
//! | [`sample`] | one sample: its body decoded; the only decoder, for rings and files alike |
//! | [`record`] | the records of a ring or file: mappings, names, forks, losses, samples |
//! | [`perfdata`] | perf.data files, as the container |
//! | [`recording`] | a whole recording: its events, records, and what is wrong with it |
//! | [`space`] | address spaces: which file lies at an address of a process at a time |
//! | `ranges` | address ranges that replace what they overlap |
//! | [`module`](mod@module) | files, by path and build-id: addresses ↔ file offsets |
//! | [`symbols`] | functions, lines and inlined functions of a module, lazily |
//! | [`hot`] | samples on functions, blocks and instructions |
//!
//! Data flows down this table. Nothing here prints or measures; input from outside ends in an error
//! or a marked gap.

pub mod address_space;
pub mod counts;
pub mod event;
pub mod files;
pub mod hot;
pub mod module;
pub mod perfdata;
mod ranges;
pub mod record;
pub mod recording;
pub mod sample;
pub mod session;
pub mod symbols;
