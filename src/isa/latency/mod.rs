//! How long a value takes from an operand to a result, and who says so.
//!
//! | file | concern |
//! |---|---|
//! | `form` | the key of a latency: an instruction form |
//! | `model` | what a latency is between, and who says so |
//! | `latencies` | looking one up |
//! | `table` | the files in `events/latency/` |
//! | `pending` | what additions done by renaming leave to those that use the sum |
//! | `assumed` | what instructions of a kind take where no table has them |
//! | `calibration` | what was measured on a machine, as a file |
//!
//! # What is counted
//!
//! Cycles of the core's clock from the moment that an input is there to the moment that a
//! dependent instruction can use the output; a bypass between execution domains is not added.
//!
//! A value that goes through memory from one instruction to another takes
//! [`Latencies::forwarding`] from the store's data register to the register that a plain load of
//! the same bytes writes. So [`Input::Memory`] of a plain load and [`Output::Memory`] of a plain
//! store count 0, and of `add rax,[m]` or `add [m],rax` they count the addition alone. From
//! [`Input::Address`] the load itself is included: `add rax,[rbx]` is load and addition.
//!
//! # Who says so
//!
//! In this order: measured on this machine ([`Latencies::with`] a [`Calibration`]); the shipped
//! table of the microarchitecture, with its source; an assumption by the kind of instruction.
//! Nothing is read from the environment here: who has a calibration hands it over.

mod assumed;
mod calibration;
mod form;
mod latencies;
mod model;
mod pending;
mod source_name;
mod table;
#[cfg(test)]
mod tests;

pub use calibration::{Calibration, Identity};
pub use form::{Address, Form, Mask};
pub use latencies::Latencies;
pub use model::{Forward, Input, Latency, Output, Source, Value};
