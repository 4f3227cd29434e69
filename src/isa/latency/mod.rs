//! Instruction latencies: core cycles from an operand to a result, each with its source.
//!
//! | file | concern |
//! |---|---|
//! | `form`, `twins` | instruction forms: the keys of latencies; encodings that share one |
//! | `model` | inputs, outputs, latencies and sources as data |
//! | `latencies` | latency lookup |
//! | `table`, `table_file` | the shipped tables in `events/latency/` and their format |
//! | `source_name` | names of sources in the tables |
//! | `deferred_add` | extra latency after additions done at renaming |
//! | `assumed` | assumptions for instructions that no table lists |
//! | `calibration` | latencies measured on a machine, and the calibration file |
//! | `invalid` | errors in a table or calibration file |
//!
//! # Definition
//!
//! Core cycles from the time that an input is available to the time that a dependent instruction can
//! use the output. Bypass delays between execution domains are not included.
//!
//! A value that passes through memory takes [`Latencies::forwarding`] from the store's data register
//! to the destination register of a plain load of the same bytes. Therefore [`Input::Memory`] of a
//! plain load and [`Output::Memory`] of a plain store count 0, and for `add rax,[m]` or `add [m],rax`
//! they count only the addition. From [`Input::Address`] the load is included: `add rax,[rbx]` counts
//! load and addition.
//!
//! Between register files (`movq`, `kmovq`) only round trips can be measured. Each way counts half of
//! `movq` there and back, in tables and calibrations alike: a cycle of dependencies that leaves a
//! register file comes back to it, so its sum is that of the measurements however they divide.
//!
//! # Sources
//!
//! In order of precedence: a measurement on this machine ([`Latencies::with`] a [`Calibration`]); the
//! shipped table of the microarchitecture, which names its source; an assumption by the kind of
//! instruction. This module reads no files: the caller passes the calibration.

mod assumed;
mod calibration;
mod deferred_add;
mod form;
mod invalid;
mod latencies;
mod model;
mod source_name;
mod table;
mod table_file;
#[cfg(test)]
mod tests;
mod twins;

pub use calibration::{Calibration, Identity};
pub(crate) use form::code_named;
pub use form::{Address, Form, Mask};
pub use latencies::Latencies;
pub use model::{Forward, Input, Latency, Output, Source, Value};
