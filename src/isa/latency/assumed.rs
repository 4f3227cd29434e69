//! Assumed latencies by kind of instruction, for instructions that no table lists.

use super::model::{Forward, Input, Latency, Source};
use crate::effects::Effects;
use iced_x86::{Instruction, Mnemonic};
use std::sync::OnceLock;

fn assumed(low: f64, high: f64, why: &'static str) -> Latency {
    Latency { low, high, source: Source::Assumed(why) }
}

/// From an operand to a result, without memory accesses.
pub(super) fn execution(instruction: &Instruction, input: Input) -> Latency {
    if input == Input::Merged && instruction.is_vsib() {
        // A dependency chain of `vpgatherdd ymm` and eight `vpermd` of 3 cycles takes 25 cycles on
        // Emerald Rapids.
        return assumed(1.0, 3.0, "a gather merges its old destination after its loads");
    }
    static KINDS: OnceLock<Vec<Latency>> = OnceLock::new();
    let all = KINDS.get_or_init(|| Mnemonic::values().map(|m| kind(&format!("{m:?}"))).collect());
    all.get(instruction.mnemonic() as usize).copied().unwrap_or(ONE)
}

const ONE: Latency = Latency {
    low: 1.0,
    high: 1.0,
    source: Source::Assumed("most integer and logic instructions take one cycle"),
};

/// By the mnemonic as iced-x86 spells it (`Vdivpd`). The ranges cover uops.info's values for Haswell to
/// Golden Cove and Zen 2 to Zen 4.
fn kind(mnemonic: &str) -> Latency {
    let name = mnemonic.to_ascii_lowercase();
    let plain = name.strip_prefix('v').unwrap_or(&name);
    let float = ["ps", "pd", "ss", "sd"].iter().any(|end| plain.ends_with(end));
    let begins = |starts: &[&str]| starts.iter().any(|start| plain.starts_with(start));
    match () {
        () if begins(&["div", "idiv"]) && !float => {
            assumed(7.0, 90.0, "integer division depends on its operands and the processor")
        }
        () if begins(&["div", "sqrt"]) => {
            assumed(10.0, 21.0, "floating-point division and square root take 10 to 21 cycles")
        }
        () if begins(&["pgather", "gather", "pscatter", "scatter"]) => {
            assumed(14.0, 30.0, "gathers take 14 to 30 cycles")
        }
        () if begins(&["fmadd", "fmsub", "fnmadd", "fnmsub"]) => {
            assumed(4.0, 5.0, "fused multiply-add takes 4 or 5 cycles")
        }
        () if float && begins(&["add", "sub", "mul", "min", "max"]) => {
            assumed(3.0, 4.0, "floating-point addition and multiplication take 3 or 4 cycles")
        }
        () if begins(&["cvt"]) => assumed(3.0, 8.0, "conversions take 3 to 8 cycles"),
        () if begins(&["pmul", "pmadd", "psadbw"]) => {
            assumed(3.0, 10.0, "vector integer multiplications take 3 to 10 cycles")
        }
        () if begins(&["round", "rcp", "rsqrt", "dp", "hadd", "hsub"]) => {
            assumed(3.0, 13.0, "rounding, approximations and horizontal sums take 3 to 13 cycles")
        }
        () if begins(&["imul", "mul", "crc32", "pdep", "pext"]) => {
            assumed(3.0, 4.0, "multiplications take 3 or 4 cycles")
        }
        () if begins(&["perm", "insert", "extract", "pbroadcast", "pinsr", "pextr"]) => {
            assumed(1.0, 4.0, "shuffles take 1 cycle within a 128-bit lane and 3 or 4 across lanes")
        }
        () if float => assumed(1.0, 1.0, "most vector instructions take one cycle"),
        () => ONE,
    }
}

/// Load-to-use latency: from the address to the loaded value.
pub(super) fn load(instruction: &Instruction) -> Latency {
    if instruction.op0_register().is_vector_register() {
        assumed(6.0, 8.0, "vector loads take 6 to 8 cycles on recent processors")
    } else {
        assumed(4.0, 5.0, "loads take 4 or 5 cycles on recent processors")
    }
}

/// From a store's data to the result of the load that it is forwarded to.
pub(super) fn forwarding(forward: Forward) -> Latency {
    match forward {
        Forward::Stack
        | Forward::Slot
        | Forward::Update
        | Forward::Few
        | Forward::Many
        | Forward::Short => {
            assumed(0.0, 7.0, "store forwarding takes 0 to 7 cycles on recent processors")
        }
        Forward::Xmm | Forward::Ymm => {
            assumed(5.0, 10.0, "vector store forwarding takes 5 to 10 cycles on recent processors")
        }
        Forward::Blocked => assumed(12.0, 20.0, "blocked store forwarding takes 12 to 20 cycles"),
        Forward::Locked => assumed(5.0, 25.0, "locked instructions take 5 to 25 cycles"),
    }
}

/// Whether it is a plain load or store without computation. The load port itself does zero and sign
/// extension and broadcasts.
pub(super) fn is_plain_access(instruction: &Instruction, effects: &Effects) -> bool {
    use Mnemonic as M;
    let one_way = effects.memory.iter().any(|m| m.load || m.store)
        && !effects.memory.iter().any(|m| m.load && m.store);
    one_way
        && !instruction.has_op_mask()
        && matches!(
            instruction.mnemonic(),
            M::Mov
                | M::Movzx
                | M::Movsx
                | M::Movsxd
                | M::Movbe
                | M::Push
                | M::Pop
                | M::Call
                | M::Ret
                | M::Leave
                | M::Movnti
                | M::Movd
                | M::Movq
                | M::Vmovd
                | M::Vmovq
                | M::Movss
                | M::Movsd
                | M::Vmovss
                | M::Vmovsd
                | M::Movaps
                | M::Movapd
                | M::Movups
                | M::Movupd
                | M::Movdqa
                | M::Movdqu
                | M::Lddqu
                | M::Vmovaps
                | M::Vmovapd
                | M::Vmovups
                | M::Vmovupd
                | M::Vmovdqa
                | M::Vmovdqu
                | M::Vlddqu
                | M::Vmovdqa32
                | M::Vmovdqa64
                | M::Vmovdqu8
                | M::Vmovdqu16
                | M::Vmovdqu32
                | M::Vmovdqu64
                | M::Vbroadcastss
                | M::Vbroadcastsd
                | M::Vbroadcastf128
                | M::Vbroadcasti128
                | M::Vpbroadcastd
                | M::Vpbroadcastq
                | M::Movddup
                | M::Vmovddup
                | M::Kmovb
                | M::Kmovw
                | M::Kmovd
                | M::Kmovq
        )
}
