//! Blocks of known throughput: whether tests/block/known.csv is what it says it is, and whether an
//! `ok` of the measurer is right. The whole list is measured by tests/figures/known.py.

use super::known_list::{Known, corrected, list};
use super::{measured, quiet_sandbox, settled, thorough};
use crate::support::processor::{Core, core};
use crate::support::trial::{Trial, assert_holds, claim};
use bench::{BlockMeasurer, Status};
use isa::code::{Block, Syntax, assemble, parse_hex};
use std::collections::HashSet;

#[test]
fn an_ok_is_right_on_blocks_whose_throughput_is_known() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let mut measurer = BlockMeasurer::new(thorough());
    // Latencies of dependent chains that all of AMD Zen and Intel since Haswell share (uops.info).
    let known = [
        ("4801d8 4801d8 4801d8 4801d8", 4.0), // 4 dependent add rax,rbx
        ("480fafc3", 3.0),                    // imul rax,rbx
        ("f2480f38f1c3", 3.0),                // crc32 rax,rbx
        ("4801d8 480fafc3", 4.0),             // add, imul on one register
    ];
    for (hex, cycles) in known {
        assert_holds(&format!("{hex} takes {cycles}"), || {
            let report = measured(&mut measurer, hex);
            if report.status != Status::Ok {
                return Trial::Unsettled(format!("{:?}", report.reason));
            }
            let measured = report.throughput.unwrap().cycles;
            claim((measured / cycles - 1.0).abs() < 0.05, || measured.to_string()).into()
        });
    }
}

/// Blocks that the test measures; the figure script measures all.
const SAMPLE: usize = 40;

/// The column of this machine's core.
fn column() -> Option<usize> {
    match core()? {
        Core::Zen(3) => Some(0),
        Core::Zen(4) => Some(1),
        Core::GoldenCove => Some(2),
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
    let Some(_quiet) = quiet_sandbox() else { return };
    let list = corrected(column);
    let mut measurer = BlockMeasurer::new(thorough());
    let (mut judged, mut wrong, mut contended) = (0, Vec::new(), 0);
    for known in list.iter().step_by(list.len() / SAMPLE) {
        let forms = settled(&mut measurer, &known.hex).and_then(|report| report.forms);
        let form = match (&forms, known.form.as_str()) {
            (Some(forms), "loop") => forms.looped.cycles,
            (Some(forms), _) => forms.unrolled.cycles,
            (None, _) => None,
        };
        let Some(measured) = form else {
            contended += 1;
            continue;
        };
        judged += 1;
        let expected = known.cycles[column].unwrap();
        if (measured / expected - 1.0).abs() > 0.05 {
            wrong.push(format!("{}: {measured:.3} for {expected:.3} ({})", known.name, known.why));
        }
    }
    eprintln!("{judged} judged, {contended} skipped: contention; wrong: {wrong:#?}");
    need!(judged >= SAMPLE / 2, format!("{contended} of {} contended", judged + contended));
    assert!(wrong.len() * 20 <= judged, "{} of {judged} wrong: {wrong:#?}", wrong.len());
}
