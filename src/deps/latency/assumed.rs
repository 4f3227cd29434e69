//! What instructions of a kind take where no table has them.

use super::{Forward, Latency, Source};
use crate::code::effects::Effects;
use iced_x86::{Instruction, Mnemonic};

fn assumed(low: f64, high: f64, why: &'static str) -> Latency {
    Latency { low, high, source: Source::Assumed(why) }
}

/// From operands to results, memory left out.
pub(super) fn execution(instruction: &Instruction, effects: &Effects) -> Latency {
    if is_move(instruction) && effects.memory.iter().any(|m| m.load != m.store) {
        return assumed(0.0, 0.0, "a plain load or store computes nothing");
    }
    let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
    let _ = name;
    assumed(1.0, 1.0, "one cycle, as most instructions take")
}

/// From an address to the loaded value.
pub(super) fn load(instruction: &Instruction) -> Latency {
    if instruction.op0_register().is_vector_register() {
        assumed(6.0, 8.0, "vector loads take 6 to 8 cycles on recent processors")
    } else {
        assumed(4.0, 5.0, "loads take 4 or 5 cycles on recent processors")
    }
}

/// From a store's data to its load's result.
pub(super) fn forwarding(forward: Forward) -> Latency {
    match forward {
        Forward::Stack | Forward::Few | Forward::Many => {
            assumed(0.0, 7.0, "forwarding takes 0 to 7 cycles on recent processors")
        }
        Forward::Xmm | Forward::Ymm => {
            assumed(5.0, 10.0, "vector forwarding takes 5 to 10 cycles on recent processors")
        }
        Forward::Blocked => assumed(12.0, 20.0, "blocked forwarding takes 12 to 20 cycles"),
    }
}

fn is_move(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Push | Mnemonic::Pop)
}
