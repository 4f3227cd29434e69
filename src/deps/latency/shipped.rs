//! The tables in `events/latency/`.

use super::{Form, Forward, Input, Latency, Output};
use crate::code::effects::Effects;
use iced_x86::Instruction;

/// One of them, resolved to forms.
#[derive(Debug)]
pub(super) struct Table {}

/// That of the processors of the event table `uarch`.
pub(super) fn table(uarch: &str) -> Option<&'static Table> {
    let _ = uarch;
    None
}

impl Table {
    /// Where the table has the whole way.
    pub fn between(&self, form: Form, input: Input, output: Output) -> Option<Latency> {
        let _ = (form, input, output);
        None
    }

    /// From operands to results, memory left out.
    pub fn execution(&self, form: Form, input: Input, output: Output) -> Option<Latency> {
        let _ = (form, input, output);
        None
    }

    /// From an address to the loaded value.
    pub fn load(&self, instruction: &Instruction, effects: &Effects) -> Option<Latency> {
        let _ = (instruction, effects);
        None
    }

    /// From a store's data to its load's result.
    pub fn forwarding(&self, forward: Forward) -> Option<Latency> {
        let _ = forward;
        None
    }
}
