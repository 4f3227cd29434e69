//! Assumed latencies by kind of instruction, for instructions that no table lists.

use super::{Forward, Input, Latency, Source};
use crate::effects::Effects;
use crate::names::name;
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
    if instruction.is_string_instruction() {
        let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        return match repeated {
            true => assumed(0.0, 100.0, "repeated string instructions depend on their length"),
            false => assumed(1.0, 6.0, "string instructions take 1 to 6 cycles"),
        };
    }
    static KINDS: OnceLock<Vec<Latency>> = OnceLock::new();
    let all = KINDS.get_or_init(|| Mnemonic::values().map(|m| kind(&name(m))).collect());
    all[instruction.mnemonic() as usize]
}

/// By the mnemonic as iced-x86 spells it (`Vdivpd`). The ranges cover uops.info's values for Haswell to
/// Golden Cove and Zen 2 to Zen 4, and the measurements on Zen 5 in events/latency/zen5.toml.
fn kind(mnemonic: &str) -> Latency {
    let name = mnemonic.to_ascii_lowercase();
    if SIMPLE.contains(&name.as_str()) || name.starts_with("set") || name.starts_with('j') {
        return assumed(1.0, 1.0, "most integer and logic instructions take one cycle");
    }
    if name.starts_with("cmov") {
        return assumed(1.0, 2.0, "conditional moves take 1 or 2 cycles");
    }
    vector(&name).or_else(|| special(&name)).unwrap_or_else(|| {
        assumed(0.0, 30.0, "not known: no table or calibration has this instruction")
    })
}

/// Integer instructions that take one cycle on registers on every core since Haswell and Zen.
const SIMPLE: [&str; 26] = [
    "add", "sub", "and", "or", "xor", "not", "neg", "inc", "dec", "cmp", "test", "andn", "mov",
    "movsx", "movsxd", "cdq", "cqo", "cwde", "cdqe", "rorx", "shlx", "shrx", "sarx", "stc", "clc",
    "cmc",
];

/// Instructions on general-purpose and mask registers, and on the x87 stack.
fn special(name: &str) -> Option<Latency> {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let found = match () {
        () if begins(&["div", "idiv"]) => {
            assumed(7.0, 90.0, "integer division depends on its operands and the processor")
        }
        () if begins(&["imul", "mul", "crc32", "pdep", "pext"]) => {
            assumed(3.0, 4.0, "multiplications take 3 or 4 cycles")
        }
        () if matches!(name, "adc" | "sbb" | "adcx" | "adox") => {
            assumed(0.5, 2.0, "additions with carry take up to 2 cycles")
        }
        () if matches!(name, "movzx" | "xchg" | "xadd" | "nop" | "lea" | "movbe") => {
            assumed(0.0, 3.0, "moves and address calculations take up to 3 cycles")
        }
        () if begins(&["rcl", "rcr", "shld", "shrd"]) => {
            assumed(1.0, 12.0, "shifts through the carry and of two registers take 1 to 12 cycles")
        }
        () if begins(&["sh", "sa", "ro", "bt", "bl", "bs", "bzhi", "bextr", "popcnt"]) => {
            assumed(1.0, 4.0, "shifts and bit counts take 1 to 4 cycles")
        }
        () if begins(&["lzcnt", "tzcnt"]) => assumed(1.0, 4.0, "bit counts take 1 to 4 cycles"),
        () if begins(&["loop"]) => {
            assumed(1.0, 8.0, "counting down and branching takes 1 to 8 cycles")
        }
        () if begins(&["kmov"]) => assumed(0.5, 5.0, "moves between register files take up to 5"),
        () if begins(&["kand", "kor", "kxor", "kxnor", "knot", "kunpck", "kshift", "kadd"]) => {
            assumed(1.0, 7.0, "instructions on masks take 1 to 7 cycles")
        }
        () if begins(&["fdiv", "fsqrt", "fidiv"]) => {
            assumed(7.0, 30.0, "x87 division and square root take 7 to 30 cycles")
        }
        () if begins(&["fadd", "fsub", "fmul", "fiadd", "fisub", "fimul"]) => {
            assumed(3.0, 7.0, "x87 arithmetic takes 3 to 7 cycles")
        }
        () if matches!(name, "fxch" | "fld" | "fst" | "fstp" | "fchs" | "fabs") => {
            assumed(0.0, 4.0, "x87 moves take up to 4 cycles")
        }
        () => return None,
    };
    Some(found)
}

/// Vector instructions, MMX included.
fn vector(name: &str) -> Option<Latency> {
    let plain = name.strip_prefix('v').unwrap_or(name);
    let float = ["ps", "pd", "ss", "sd", "ph", "sh"].iter().any(|end| plain.ends_with(end));
    let begins = |starts: &[&str]| starts.iter().any(|start| plain.starts_with(start));
    let found = match () {
        () if begins(&["pdep", "pext"]) && !begins(&["pextr"]) => return None,
        () if float && begins(&["div", "sqrt"]) => {
            assumed(9.0, 35.0, "floating-point division and square root take 9 to 35 cycles")
        }
        () if begins(&["pgather", "gather", "pscatter", "scatter"]) => {
            assumed(8.0, 40.0, "gathers take 8 to 40 cycles")
        }
        () if begins(&["fmadd", "fmsub", "fnmadd", "fnmsub"]) => {
            assumed(4.0, 5.0, "fused multiply-add takes 4 or 5 cycles")
        }
        () if float && begins(&["add", "sub", "mul", "min", "max"]) => {
            assumed(1.0, 5.0, "floating-point addition and multiplication take up to 5 cycles")
        }
        () if begins(&["cvt"]) => assumed(1.0, 10.0, "conversions take 1 to 10 cycles"),
        () if begins(&["aes"]) => assumed(3.0, 8.0, "AES rounds take 3 to 8 cycles"),
        () if begins(&["pmul", "pmadd", "psadbw", "pclmul"]) => {
            assumed(3.0, 14.0, "vector integer multiplications take 3 to 14 cycles")
        }
        () if begins(&["round", "rcp", "rsqrt", "dp", "hadd", "hsub", "mpsad"]) => {
            assumed(2.0, 16.0, "rounding, approximations and horizontal sums take 2 to 16 cycles")
        }
        () if matches!(plain, "movd" | "movq")
            || begins(&["pinsr", "pextr", "pmovmsk", "movmsk"]) =>
        {
            assumed(0.0, 8.0, "moves between register files take up to 8 cycles")
        }
        () if begins(&["comis", "ucomis", "ptest", "test"]) && name != "test" => {
            assumed(1.0, 8.0, "comparisons into flags take 1 to 8 cycles")
        }
        () if begins(&["perm", "insert", "extract", "pbroadcast", "broadcast"]) => assumed(
            1.0,
            6.0,
            "shuffles take 1 cycle within a 128-bit lane and up to 6 across lanes",
        ),
        () if begins(&["p"])
            && !begins(&["push", "pop", "prefetch", "pause", "pcmpistr", "pcmpestr"]) =>
        {
            assumed(1.0, 5.0, "vector instructions on integers take 1 to 5 cycles")
        }
        () if float || begins(&["movdq", "movap", "movup", "movhl", "movlh", "movdd", "movsh"]) => {
            assumed(0.0, 5.0, "vector moves, logic and shuffles take up to 5 cycles")
        }
        () => return None,
    };
    Some(found)
}

/// Load-to-use latency: from the address to the loaded value.
pub(super) fn load(instruction: &Instruction) -> Latency {
    if instruction.op0_register().is_vector_register() {
        assumed(4.0, 8.0, "vector loads take 4 to 8 cycles on recent processors")
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
            assumed(0.0, 8.0, "store forwarding takes 0 to 8 cycles on recent processors")
        }
        Forward::Xmm | Forward::Ymm => {
            assumed(4.0, 12.0, "vector store forwarding takes 4 to 12 cycles on recent processors")
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
