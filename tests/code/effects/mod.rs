//! Compares the effects that `code::effects` states for thousands of instructions with the processor itself: each
//! is run natively, again and again with one register, group of flags or other memory changed. An input whose
//! change alters the result was read, and an output that differs from the input was written; both must be stated,
//! with the way from the one to the other.
//!
//! Values tell the truth on every processor, so the effects for all kinds of cores are compared with them. A stated
//! read that changes nothing proves no error: such reads are printed, not counted.

mod compare;
mod forms;
mod runner;

use crate::support::files::{Folder, shared};
use crate::support::processor::described;
use crate::support::quiet::busy;
use crate::support::random::Random;
use compare::{Look, class};
use forms::Forms;
use iced_x86::{Decoder, DecoderOptions, Instruction, Register};
use isa::effects::{Access, ArchReg, Effects, Finder, Role};
use runner::{Runner, State, UPPER};
use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use tma::Core;

/// Cores of which something else is said than of others.
static CORES: LazyLock<[Core; 5]> =
    LazyLock::new(|| [None, Some("emr"), Some("skl"), Some("hsw"), Some("zen3")].map(described));

fn effects(instruction: &Instruction, core: &Core) -> Effects {
    Finder::new(core.facts()).effects(instruction)
}

/// SIGILL: the processor lacks it, whatever the state.
const ILLEGAL: u64 = 4;

/// Pairs of states of each instruction.
const STATES: u64 = 2;

#[test]
fn nothing_is_read_or_written_that_is_not_listed() {
    let _busy = busy();
    let folder = Folder::new();
    let mut runner = match Runner::new(folder.path()) {
        Ok(runner) => runner,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut forms = Forms::default();
    forms.catalog();
    forms.random(40_000);
    if let Some(path) = shared("blocks/bhive-dev.csv") {
        let text = fs::read_to_string(path).unwrap();
        forms.blocks(text.lines().skip(1).filter_map(|line| line.split(',').next()));
    }
    let mut tally = Tally::default();
    for bytes in &forms.all {
        tally.ran += usize::from(tried(&mut runner, bytes, &mut tally.findings));
    }
    eprintln!("{} of {} instructions ran through", tally.ran, forms.all.len());
    for (finding, texts) in &tally.findings.idle {
        eprintln!("not seen: {finding}: {} such as {}", texts.len(), texts[0]);
    }
    let wrong: Vec<String> = (tally.findings.wrong.iter())
        .map(|(finding, texts)| {
            format!("{finding}: {}: {}", texts.len(), texts[..texts.len().min(8)].join(" | "))
        })
        .collect();
    assert!(tally.ran > 1000, "{} of {}", tally.ran, forms.all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Default)]
struct Tally {
    ran: usize,
    findings: Findings,
}

/// By what was found, the instructions of which it was.
#[derive(Default)]
struct Findings {
    wrong: BTreeMap<String, Vec<String>>,
    idle: BTreeMap<String, Vec<String>>,
}

/// Runs one instruction from several states; false where none of them ran through.
fn tried(runner: &mut Runner, bytes: &[u8], findings: &mut Findings) -> bool {
    let instruction = Decoder::with_ip(64, bytes, 0x3000_0000_0000, DecoderOptions::NONE).decode();
    let cores = CORES.each_ref().map(|core| effects(&instruction, core));
    // Its memory is where the instruction lies, which is not known here.
    let relative = instruction.is_ip_rel_memory_operand();
    // Prefixes that no compiler writes: string instructions of 32-bit addresses, `data16 leave`.
    let odd = instruction.is_string_instruction() && cores[0].memory.iter().any(|m| !m.wide)
        || matches!(instruction.code(), iced_x86::Code::Leavew);
    // The x87 stack is not part of the states.
    let stack = instruction.fpu_stack_increment_info().writes_top()
        || (0..instruction.op_count()).any(|i| instruction.op_register(i).is_st());
    if cores[0].unmodelled.is_some() || relative || odd || stack {
        return false;
    }
    let mut acted = [0u64; 64];
    let mut ran = 0;
    for number in 0..STATES {
        let base = state(2 * number, number, &instruction);
        let other = state(2 * number + 1, number, &instruction);
        let ranges = |want: fn(&Access) -> bool| -> Vec<(u64, u64)> {
            let wanted = cores[0].memory.iter().filter(|m| want(m));
            wanted.map(|m| (address(m, &instruction, &base), m.bytes.into())).collect()
        };
        let answer = runner.ask(bytes, &base, &other, &ranges(|m| m.load));
        if answer.status == ILLEGAL {
            break;
        }
        if answer.status != 0 {
            continue;
        }
        ran += 1;
        for (at, (effects, core)) in cores.iter().zip(CORES.iter()).enumerate() {
            if cores[..at].contains(effects) {
                continue;
            }
            let look = Look { effects, instruction: &instruction, base: &base };
            for finding in look.findings(&answer, &ranges(|m| m.store)) {
                let texts = findings.wrong.entry(finding).or_default();
                let text = format!("{} [{}]", instruction, core.uarch().unwrap_or("any"));
                if texts.last() != Some(&text) {
                    texts.push(text);
                }
            }
        }
        for (seen, change) in acted.iter_mut().zip(&answer.changes) {
            *seen |= change.places;
        }
        for (at, upper) in answer.changes[UPPER..].iter().enumerate() {
            acted[16 + at] |= upper.places | u64::from(upper.upper) << 16;
            acted[16 + at] |= u64::from(answer.changes[16 + at].upper) << 16;
        }
    }
    // A place that is only kept has no effect; addresses act where loads or stores are seen.
    for read in cores[0].reads.iter().filter(|r| r.role == Role::Data && ran > 2) {
        let idle = |what: String| {
            let what = format!("{:?}: {}{what}", instruction.mnemonic(), class(read.reg));
            findings.idle.entry(what).or_default().push(instruction.to_string());
        };
        let seen = acted[read.reg.index()];
        let said = cores[0].writes.iter().filter(|w| cores[0].flows(read, w));
        let unseen = |to: &ArchReg| seen >> to.index() & 1 == 0;
        let ways: Vec<ArchReg> = said.map(|w| w.reg).filter(unseen).collect();
        ways.iter().map(|to| format!(" leads to {}", class(*to))).for_each(idle);
    }
    ran > 0
}

/// Where an access goes.
fn address(access: &Access, instruction: &Instruction, state: &State) -> u64 {
    let register = |r: Register| match r {
        Register::None => 0,
        r => state.gpr[r.full_register().number() & 15],
    };
    let index = match access.lane {
        None => register(access.index),
        Some(lane) => {
            let vector = &state.vectors[access.index.number() & 31];
            let lane = usize::from(lane);
            match instruction.is_vsib64() {
                true => vector[lane],
                false => (vector[lane / 2] >> (lane % 2 * 32)) as i32 as u64,
            }
        }
    };
    let sum = register(access.base)
        .wrapping_add(index.wrapping_mul(access.scale.into()))
        .wrapping_add(access.displacement as u64);
    if access.wide { sum } else { sum & u64::from(u32::MAX) }
}

/// A state of the kind `kind`: bits, floats, doubles, small integers, few bits. Where memory is
/// touched, registers are such that addresses made of them are those of a program.
fn state(seed: u64, kind: u64, instruction: &Instruction) -> State {
    let mut random = Random(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let memory = effects(instruction, &CORES[0]).memory;
    let mut number = |vector: bool| {
        let bits = random.next();
        match kind % 6 {
            1 if vector => bits & 0x807f_ffff_807f_ffff | 0x3f80_0000_3f80_0000,
            2 if vector => bits & 0x800f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000,
            3 if vector => bits & 0xff,
            4 if vector => [0, u64::MAX, u64::MAX << 32, u64::MAX >> 32][(bits & 3) as usize],
            3 if memory.is_empty() => bits & 0xff,
            4 if memory.is_empty() => bits & bits >> 17 & bits >> 31,
            _ if vector || memory.is_empty() => bits,
            _ => bits >> 21,
        }
    };
    let mut state = State {
        gpr: std::array::from_fn(|_| number(false)),
        flags: 0,
        masks: std::array::from_fn(|_| number(true)),
        vectors: std::array::from_fn(|_| std::array::from_fn(|_| number(true))),
    };
    if kind % 6 == 5 {
        // Aligned, and with a quotient that fits.
        for register in &mut state.gpr {
            *register &= !63;
        }
        state.gpr[2] &= 0xff;
    }
    let flags = random.next();
    // Bit 1 is always set; the direction flag is that of the second state alone.
    state.flags = 2 | flags & 0x8d5 | if seed % 2 == 1 { 0x400 } else { 0 };
    state
}
