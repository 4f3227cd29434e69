//! Additions deferred by renaming: Golden Cove does not execute additions of small constants but adds
//! the constant where the sum is used. Most consumers do that without extra latency; shifts, conditional
//! moves and stores take longer.
//!
//! Measured in dependency chains of four instructions (tests/figures/native_chains.py). Slow shifts by
//! such a count are documented in "The Alder Lake SHLX anomaly", tavianator.com, 2025.

use super::model::{Latency, Output, Source};
use super::source_name::Name;
use iced_x86::{ConditionCode, Instruction, Mnemonic};
use serde::Deserialize;

/// Extra cycles of the instruction that uses the sum.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeferredAdd {
    store: f64,
    shift: f64,
    cmov: f64,
    /// The source of these values.
    pub source: Name,
}

impl DeferredAdd {
    /// Extra cycles of `instruction` if it reads a deferred sum.
    pub fn extra(&self, instruction: &Instruction, output: Output) -> f64 {
        match () {
            () if output == Output::Memory => self.store,
            () if shifts(instruction.mnemonic()) => self.shift,
            () if instruction.condition_code() != ConditionCode::None => self.cmov,
            () => 0.0,
        }
    }

    /// `latency` including the extra cycles.
    pub fn added_to(&self, latency: Latency, instruction: &Instruction, output: Output) -> Latency {
        let extra = self.extra(instruction, output);
        let source = match latency.source {
            Source::Table(_) if extra > 0.0 => Source::Table(self.source.0),
            other => other,
        };
        Latency { low: latency.low + extra, high: latency.high + extra, source }
    }
}

/// Whether `instruction` adds a constant, which renaming does if
/// [`Effects::may_be_eliminated`](crate::effects::Effects::may_be_eliminated) is set.
pub(super) fn adds_constant(instruction: &Instruction) -> bool {
    use Mnemonic::{Add, Dec, Inc, Lea, Sub};
    matches!(instruction.mnemonic(), Add | Sub | Inc | Dec | Lea)
}

fn shifts(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Bswap, Rol, Ror, Rorx, Sar, Sarx, Shl, Shlx, Shr, Shrx};
    matches!(mnemonic, Shl | Shr | Sar | Rol | Ror | Rorx | Shlx | Shrx | Sarx | Bswap)
}
