//! Blocks of known throughput (tests/block/known.csv): whether the list is what it says it is, and
//! whether an `ok` of the profiler is right. The whole list is measured by tests/figures/known.py.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use bench::{Options, Profiler, Report, Status};
use isa::code::{Block, Syntax, assemble, parse_hex};
use pmu::machine::{Root, read_cpu};
use std::collections::HashSet;

/// Blocks that the test measures; the figure script measures all.
const SAMPLE: usize = 40;
/// How often a block is measured again because the core was shared.
const ATTEMPTS: usize = 3;

struct Known {
    name: String,
    form: String,
    asm: String,
    hex: String,
    /// Cycles per iteration on zen3, zen4 and golden_cove.
    cycles: [Option<f64>; 3],
    why: String,
}

impl Known {
    fn touches_memory(&self) -> bool {
        self.asm.split(';').any(|i| i.contains('[') && !i.trim().starts_with("nop"))
    }
}

/// Fields of a CSV line, RFC 4180 (no line breaks inside fields).
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all
}

/// `7`, `20/3`, or nothing.
fn fraction(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    (!text.is_empty()).then(|| above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap())
}

fn list() -> Vec<Known> {
    let text = include_str!("block/known.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("name,class,form,asm,hex,zen3,zen4,golden_cove,why"));
    lines
        .map(|line| {
            let f = fields(line);
            assert_eq!(f.len(), 9, "{line}");
            Known {
                name: f[0].clone(),
                form: f[2].clone(),
                asm: f[3].clone(),
                hex: f[4].clone(),
                cycles: [fraction(&f[5]), fraction(&f[6]), fraction(&f[7])],
                why: f[8].clone(),
            }
        })
        .collect()
}

/// The columns of cycles.
const CORES: [&str; 3] = ["zen3", "zen4", "golden_cove"];

/// The list without what tests/block/errata.csv withdraws, and with the forms it sets.
fn corrected(column: usize) -> Vec<Known> {
    let mut list = list();
    for line in include_str!("block/errata.csv").lines().skip(1) {
        let f = fields(line);
        assert_eq!(f.len(), 4, "{line}");
        let index = list.iter().position(|k| k.name == f[0]).expect("errata name known blocks");
        match f[2].as_str() {
            _ if f[1] != CORES[column] => {}
            "withdrawn" => list[index].cycles[column] = None,
            "loop" => list[index].form = "loop".into(),
            other => panic!("{other} is no change"),
        }
    }
    list.retain(|k| k.cycles[column].is_some());
    list
}

/// The column of this machine's core.
fn column() -> Option<usize> {
    let cpu = read_cpu(&Root::system());
    match (cpu.vendor.as_str(), cpu.family, cpu.model) {
        ("AuthenticAMD", 0x19, 0x00..=0x0f | 0x20..=0x5f) => Some(0),
        ("AuthenticAMD", 0x19, 0x10..=0x1f | 0x60..=0xaf) => Some(1),
        // Alder Lake, Raptor Lake, Sapphire Rapids, Emerald Rapids.
        ("GenuineIntel", 6, 0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0x8f | 0xcf) => Some(2),
        _ => None,
    }
}

#[test]
fn every_block_is_the_bytes_of_its_assembly_and_has_a_form_and_a_reason() {
    let mut names = HashSet::new();
    let mut differ = Vec::new();
    for known in list() {
        assert!(names.insert(known.name.clone()), "{} twice", known.name);
        assert!(["unrolled", "loop"].contains(&known.form.as_str()), "{}", known.name);
        assert!(known.cycles.iter().flatten().all(|c| *c > 0.0), "{}", known.name);
        assert!(known.cycles.iter().any(Option::is_some) && !known.why.is_empty());
        let bytes = parse_hex(&known.hex).unwrap();
        let block = Block::decode(&bytes).unwrap();
        assert_eq!(block.instructions.len(), known.asm.split(';').count(), "{}", known.name);
        assert!(block.refusal().is_none(), "{}", known.name);
        match assemble(&known.asm, Syntax::Intel) {
            Ok(assembled) if assembled == bytes => {}
            Ok(_) => differ.push(known.name),
            Err(error) => {
                eprintln!("skipped: comparison with the assembler: {error}");
                return;
            }
        }
    }
    assert!(differ.is_empty(), "other bytes than the assembler's: {differ:?}");
}

/// What the figures promise of the list, for the two cores that are measured.
#[test]
fn each_core_has_enough_blocks_with_memory_and_with_values_that_no_clock_rounds_to() {
    for core in [0, 2] {
        let list = corrected(core);
        assert!(list.len() >= 150);
        assert!(list.iter().filter(|k| k.touches_memory()).count() >= 50);
        let odd = |k: &&Known| {
            let quarters = k.cycles[core].unwrap() * 4.0;
            (quarters - quarters.round()).abs() > 1e-9
        };
        let odd = list.iter().filter(odd).count();
        assert!(odd >= 30, "{odd}");
    }
}

#[test]
fn an_ok_is_within_five_percent_of_the_known_throughput() {
    let Some(column) = column() else {
        eprintln!("skipped: no expected values for this processor");
        return;
    };
    let list = corrected(column);
    let mut profiler = Profiler::new(Options::default());
    let (mut judged, mut wrong, mut noisy) = (0, Vec::new(), 0);
    for known in list.iter().step_by(list.len() / SAMPLE) {
        let block = Block::decode(&parse_hex(&known.hex).unwrap()).unwrap();
        let report = match settled(&mut profiler, &block) {
            Ok(Some(report)) => report,
            Ok(None) => {
                noisy += 1;
                continue;
            }
            Err(error) => {
                eprintln!("skipped: no sandbox here: {error}");
                return;
            }
        };
        let forms = report.forms.as_ref().unwrap();
        let form = if known.form == "loop" { &forms.looped } else { &forms.unrolled };
        let Some(measured) = form.cycles else {
            noisy += 1;
            continue;
        };
        judged += 1;
        let expected = known.cycles[column].unwrap();
        if (measured / expected - 1.0).abs() > 0.05 {
            wrong.push(format!("{}: {measured:.3} for {expected:.3} ({})", known.name, known.why));
        }
    }
    eprintln!("{judged} judged, {noisy} skipped: the core was never calm; wrong: {wrong:#?}");
    assert!(wrong.len() * 20 <= judged, "{} of {judged} wrong: {wrong:#?}", wrong.len());
}

/// The first `ok`; `None` if there is none. A failure is a failure of the test: all these run.
fn settled(profiler: &mut Profiler, block: &Block) -> tma::Result<Option<Report>> {
    for _ in 0..ATTEMPTS {
        let report = profiler.measure(block)?;
        match report.status {
            Status::Ok => return Ok(Some(report)),
            Status::Unstable => {}
            _ => panic!("{}: {:?}", block.hex(), report.reason),
        }
    }
    Ok(None)
}
