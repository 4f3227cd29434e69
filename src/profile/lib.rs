//! Recordings: samples and counts from ring buffers, sessions, perf.data files and other tools, and
//! the code that samples are in.
//!
//! | module | concern |
//! |---|---|
//! | [`event`] | a sampled event |
//! | [`sample`] | one sample; the only decoder, for ring buffers and files alike |
//! | [`record`] | the records of a ring buffer or file: mappings, names, forks, losses, samples |
//! | [`recording`] | a recording: its events and limits; its records, one by one or all |
//! | [`input`] | bytes of a file or in memory, read a part at a time |
//! | [`kept`] | inputs that are read once or compressed, saved as files |
//! | [`perfdata`] | perf.data files |
//! | [`session`] | the session file of `tdtool record` |
//! | [`text`] | branches in text of other tools: `perf script`, traces, counts |
//! | [`counts`] | recorded counts: `perf stat`, toplev, CSV, sessions |
//! | `jitdump` | code that just-in-time compilers wrote down as they made it |
//! | [`module`](mod@module) | modules: files and other memory that code is mapped from |
//! | [`files`] | files of modules: location, layout, build-id |
//! | `ranges` | address ranges that replace what they overlap |
//! | [`address_space`] | the file mapped at an address of a process at a time |
//! | `unwind` | one caller by unwind tables and a copy of the stack |
//! | [`symbols`] | functions, lines and inlined functions of a module, lazily |
//! | [`code`] | instructions and control flow around an address, lazily |
//! | [`hot`] | samples per function, block and instruction |
//!
//! Nothing here prints or measures. Input from outside ends in an error or a stated gap.

pub mod address_space;
pub mod code;
pub mod counts;
pub mod event;
pub mod files;
pub mod hot;
pub mod input;
mod jitdump;
pub mod kept;
pub mod module;
pub mod perfdata;
mod ranges;
pub mod record;
pub mod recording;
pub mod sample;
pub mod session;
pub mod symbols;
pub mod text;
mod unwind;
