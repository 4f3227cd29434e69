//! Microbenchmarks are generated as asked: all instructions that were named, independent where they
//! can be.

use crate::support::processor::described;
use bench::microbench::{Catalog, Form, Microbenchmark, Multiset, Settings, independence};
use isa::code::{Block, parse_hex};
use proptest::prelude::*;

/// Forms of many kinds that every processor of the last ten years has.
fn common() -> Vec<Form> {
    [
        "ADD_GPR64i64_GPR64i64",
        "ADD_GPR64i64_MEM64i64",
        "ADD_MEM64i64_GPR64i64",
        "ADC_GPR64i64_GPR64i64",
        "MOV_GPR64i64_MEM64i64",
        "MOV_MEM64i64_GPR64i64",
        "MOV_MEM8i8_GPR8i8",
        "MOVZX_GPR32i32_GPR8i8",
        "LEA_GPR64i64_ADDRbisd",
        "IMUL_GPR64i64_GPR64i64",
        "MUL_GPR64i64",
        "DIV_GPR32i32",
        "SHL_GPR64i64_CL",
        "CMOVE_GPR64i64_GPR64i64",
        "SETE_GPR8i8",
        "XCHG_GPR64i64_GPR64i64",
        "ADDPD_VR128f64x2_VR128f64x2",
        "PSHUFB_VR128i8x16_VR128i8x16",
        "CVTSI2SD_VR128f64x1_GPR64i64",
        "MOVMSKPD_GPR32i32_VR128f64x2",
        "MOVUPS_MEM128f32x4_VR128f32x4",
        "CDQ",
    ]
    .iter()
    .filter_map(|name| Catalog::all().find(name).ok())
    .collect()
}

#[test]
fn the_common_forms_all_have_names() {
    assert!(common().len() >= 20, "{}", common().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked for is there, evenly, and nothing reads what another instruction wrote but
    /// through a destination, an implicit register, flags or memory that the forms leave no choice
    /// of.
    #[test]
    fn microbenchmarks_are_what_was_asked_for_and_independent(
        picked in prop::collection::vec((0..22usize, 1..5usize), 1..6),
        unroll in 1..200usize,
    ) {
        let common = common();
        let mut set = Multiset::default();
        for (index, count) in picked {
            let form = common[index % common.len()];
            match set.forms.iter_mut().find(|(known, _)| *known == form) {
                Some((_, there)) => *there += count,
                None => set.forms.push((form, count)),
            }
        }
        let settings = Settings { unroll_size: unroll, ..Settings::default() };
        let benchmark = Microbenchmark::of(&set, &settings).unwrap();
        let block = Block::decode(&benchmark.bytes).unwrap();
        prop_assert_eq!(block.refusal(), None);
        let back = Multiset::of(&block).unwrap();
        prop_assert_eq!(back.forms.len(), set.forms.len());
        for (form, count) in &set.forms {
            let there = back.forms.iter().find(|(f, _)| f == form).map(|f| f.1);
            prop_assert_eq!(there, Some(count * benchmark.sets));
        }
        for uarch in [None, Some("zen3"), Some("spr")] {
            let found = independence(&benchmark, &described(uarch)).unwrap();
            let wrong: Vec<_> = found.dependencies.iter().filter(|d| !d.unavoidable).collect();
            prop_assert!(wrong.is_empty(), "{:?}", wrong);
        }
    }
}

#[test]
fn three_operand_forms_are_independent_and_two_operand_forms_are_said_not_to_be() {
    let found = |text: &str| {
        let benchmark =
            Microbenchmark::of(&Multiset::parse(text).unwrap(), &Settings::default()).unwrap();
        independence(&benchmark, &described(Some("spr"))).unwrap()
    };
    assert!(found("LEA_GPR64i64_ADDRbd, MOV_GPR64i64_MEM64i64").dependencies.is_empty());
    let add = found("ADD_GPR64i64_GPR64i64");
    assert_eq!(add.dependencies.len(), 1);
    assert_eq!(add.dependencies[0].through, "destination");
    // One cycle over as many registers as there are in turn.
    let bound = add.bound.unwrap();
    let expected = 1.0 / add.dependencies[0].rotation as f64;
    assert!((bound.low - expected).abs() < 0.01, "{bound:?}");
    // The carry goes from each to the next.
    let adc = found("ADC_GPR64i64_GPR64i64");
    assert!(adc.dependencies.iter().any(|d| d.through == "flags CF"));
    assert!((adc.bound.unwrap().low - 1.0).abs() < 0.01);
}

#[test]
fn what_a_block_is_made_of_can_be_measured() {
    // imul rax,rbx; add rcx,rdx; jne: the jump is left out.
    let block = Block::decode(&[0x48, 0x0f, 0xaf, 0xc3, 0x48, 0x01, 0xd1, 0x75, 0xf7]).unwrap();
    let set = Multiset::of(&block).unwrap();
    let names: Vec<String> = set.forms.iter().map(|f| Catalog::all().name(f.0)).collect();
    assert_eq!(names, ["IMUL_GPR64i64_GPR64i64", "ADD_GPR64i64_GPR64i64"]);
}

/// An index, a mask and zeroing are what a form is; names by hand.
#[test]
fn addresses_with_an_index_and_masks_are_forms_of_their_own() {
    for (hex, name) in [
        ("488b448b08", "MOV_GPR64i64_MEM64i64bisd"), // mov rax,[rbx+rcx*4+8]
        ("488b040b", "MOV_GPR64i64_MEM64i64bisd"),   // mov rax,[rbx+rcx]
        ("488b4308", "MOV_GPR64i64_MEM64i64"),       // mov rax,[rbx+8]
        // vaddpd zmm1{k1},zmm2,zmm3 and the same zeroing
        ("62f1ed4958cb", "VADDPD_VR512f64x8k_VR512f64x8_VR512f64x8"),
        ("62f1edc958cb", "VADDPD_VR512f64x8kz_VR512f64x8_VR512f64x8"),
    ] {
        let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
        let form = Catalog::form_of(&block.instructions[0].decoded).unwrap();
        assert_eq!(Catalog::all().name(form), name, "{hex}");
        let benchmark = Microbenchmark::of(&Multiset::one(form), &Settings::default());
        let benchmark = benchmark.unwrap();
        for inst in Block::decode(&benchmark.bytes).unwrap().instructions {
            assert_eq!(Catalog::form_of(&inst.decoded).unwrap(), form, "{hex}");
        }
        let found = independence(&benchmark, &described(Some("spr"))).unwrap();
        assert!(found.dependencies.iter().all(|d| d.unavoidable), "{hex}: {found:?}");
    }
}

#[test]
fn a_microbenchmark_leaves_the_stack_pointer_where_it_found_it() {
    for text in ["PUSH_GPR64i64*3, POP_GPR64i64", "POP_GPR64i64", "PUSH_GPR64i64, POP_GPR64i64"] {
        let benchmark =
            Microbenchmark::of(&Multiset::parse(text).unwrap(), &Settings::default()).unwrap();
        let block = Block::decode(&benchmark.bytes).unwrap();
        let moved: i64 = block
            .instructions
            .iter()
            .map(|inst| match inst.decoded.is_stack_instruction() {
                true => i64::from(inst.decoded.stack_pointer_increment()),
                // lea rsp,[rsp+…]
                false => inst.decoded.memory_displacement64() as i64,
            })
            .sum();
        assert_eq!(moved, 0, "{text}");
        let found = independence(&benchmark, &described(Some("spr"))).unwrap();
        assert!(found.dependencies.iter().all(|d| d.unavoidable), "{text}: {found:?}");
    }
}
