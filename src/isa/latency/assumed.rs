//! What instructions of a kind take where no table has them.

use super::model::{Forward, Input, Latency, Source};
use crate::effects::Effects;
use iced_x86::{Instruction, Mnemonic};
use std::sync::OnceLock;

fn assumed(low: f64, high: f64, why: &'static str) -> Latency {
    Latency { low, high, source: Source::Assumed(why) }
}

/// From operands to results, memory left out.
pub(super) fn execution(instruction: &Instruction, input: Input) -> Latency {
    if input == Input::Merged && instruction.is_vsib() {
        // A chain of `vpgatherdd ymm` and eight `vpermd` of 3 cycles takes 25 on Emerald Rapids.
        return assumed(
            1.0,
            3.0,
            "what a gather keeps of its destination is merged behind its loads",
        );
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

/// By the mnemonic as iced-x86 spells it (`Vdivpd`). The ranges span what uops.info lists for
/// Haswell to Golden Cove and Zen 2 to Zen 4.
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
            assumed(4.0, 5.0, "fused multiplication and addition takes 4 or 5 cycles")
        }
        () if float && begins(&["add", "sub", "mul", "min", "max"]) => {
            assumed(3.0, 4.0, "floating-point additions and products take 3 or 4 cycles")
        }
        () if begins(&["cvt"]) => assumed(3.0, 8.0, "conversions take 3 to 8 cycles"),
        () if begins(&["pmul", "pmadd", "psadbw"]) => {
            assumed(3.0, 10.0, "vector products of integers take 3 to 10 cycles")
        }
        () if begins(&["round", "rcp", "rsqrt", "dp", "hadd", "hsub"]) => {
            assumed(3.0, 13.0, "rounding, approximations and horizontal sums take 3 to 13 cycles")
        }
        () if begins(&["imul", "mul", "crc32", "pdep", "pext"]) => {
            assumed(3.0, 4.0, "multiplications take 3 or 4 cycles")
        }
        () if begins(&["perm", "insert", "extract", "pbroadcast", "pinsr", "pextr"]) => {
            assumed(1.0, 4.0, "shuffles take 1 cycle within 128 bits and 3 or 4 across")
        }
        () if float => assumed(1.0, 1.0, "most vector instructions take one cycle"),
        () => ONE,
    }
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
        Forward::Stack
        | Forward::Slot
        | Forward::Update
        | Forward::Few
        | Forward::Many
        | Forward::Short => {
            assumed(0.0, 7.0, "forwarding takes 0 to 7 cycles on recent processors")
        }
        Forward::Xmm | Forward::Ymm => {
            assumed(5.0, 10.0, "vector forwarding takes 5 to 10 cycles on recent processors")
        }
        Forward::Blocked => assumed(12.0, 20.0, "blocked forwarding takes 12 to 20 cycles"),
        Forward::Locked => assumed(5.0, 25.0, "locked instructions take 5 to 25 cycles"),
    }
}

/// Whether it loads or stores and does nothing else to the value: widening by zeros or signs and
/// broadcasts are done by the load itself.
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
