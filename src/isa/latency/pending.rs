//! What renaming leaves to be added: Golden Cove takes additions of small constants off the
//! execution units and adds the constant where the value is used. Most instructions do that in no
//! time; shifts and conditional moves do not, and a store needs the sum made first.
//!
//! Measured in chains of four (tests/figures/native_chains.py). That shifts are slow where their count was made
//! so is known ("The Alder Lake SHLX anomaly", tavianator.com, 2025).

use super::model::{Latency, Output, Source};
use super::source_name::Name;
use iced_x86::{ConditionCode, Instruction, Mnemonic};
use serde::Deserialize;

/// Cycles beyond those of the instruction itself, by what uses the value.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pending {
    store: f64,
    shift: f64,
    cmov: f64,
    /// Who says so.
    pub source: Name,
}

impl Pending {
    /// What `instruction` takes longer if a value that it reads is such a sum.
    pub fn extra(&self, instruction: &Instruction, output: Output) -> f64 {
        match () {
            () if output == Output::Memory => self.store,
            () if shifts(instruction.mnemonic()) => self.shift,
            () if instruction.condition_code() != ConditionCode::None => self.cmov,
            () => 0.0,
        }
    }

    /// `latency` and that.
    pub fn behind(&self, latency: Latency, instruction: &Instruction, output: Output) -> Latency {
        let extra = self.extra(instruction, output);
        let source = match latency.source {
            Source::Table(_) if extra > 0.0 => Source::Table(self.source.0),
            other => other,
        };
        Latency { low: latency.low + extra, high: latency.high + extra, source }
    }
}

/// Whether `instruction` adds a constant: renaming does it where
/// [`Effects::may_be_eliminated`](crate::effects::Effects::may_be_eliminated) says so.
pub(super) fn adds(instruction: &Instruction) -> bool {
    use Mnemonic::{Add, Dec, Inc, Lea, Sub};
    matches!(instruction.mnemonic(), Add | Sub | Inc | Dec | Lea)
}

fn shifts(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Bswap, Rol, Ror, Rorx, Sar, Sarx, Shl, Shlx, Shr, Shrx};
    matches!(mnemonic, Shl | Shr | Sar | Rol | Ror | Rorx | Shlx | Shrx | Sarx | Bswap)
}
