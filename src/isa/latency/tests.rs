//! Latencies of the shipped tables against published and measured ones; calibrations.

use super::table::Table;
use super::*;
use crate::effects::{Effects, Finder};
use crate::test_core;
use iced_x86::{Decoder, DecoderOptions, Instruction};

fn latency(uarch: &str, hex: &str, input: Input) -> Latency {
    let bytes = crate::code::parse_hex(hex).unwrap();
    let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    let core = test_core(Some(uarch));
    let effects = effects(&core, &instruction);
    Latencies::new(&core).unwrap().between(&instruction, &effects, input, Output::Register)
}

fn effects(core: &tma::Core, instruction: &Instruction) -> Effects {
    Finder::new(core.facts()).effects(instruction)
}

/// Values of uops.info and InstLatx64, confirmed by measurements on a Zen 3.
#[test]
fn zen_3_has_its_published_latencies_and_names_a_source() {
    let known = [
        ("4801d8", 1.0, 1.0),       // add rax,rbx
        ("480fafc3", 3.0, 3.0),     // imul rax,rbx
        ("c4e2f5b8c2", 4.0, 4.0),   // vfmadd231pd ymm0,ymm1,ymm2
        ("c5f558c2", 3.0, 3.0),     // vaddpd ymm0,ymm1,ymm2
        ("c5f559c2", 3.0, 3.0),     // vmulpd ymm0,ymm1,ymm2
        ("c5f55ec2", 13.0, 13.0),   // vdivpd ymm0,ymm1,ymm2
        ("f3480fb8c3", 1.0, 1.0),   // popcnt rax,rbx
        ("c4e2e3f5c1", 3.0, 3.0),   // pdep rax,rbx,rcx
        ("488d0498", 1.0, 1.0),     // lea rax,[rax+rbx*4]
        ("488d449808", 2.0, 2.0),   // lea rax,[rax+rbx*4+8]
        ("480fa4d803", 2.0, 2.0),   // shld rax,rbx,3
        ("48f7f3", 7.0, 20.0),      // div rbx
        ("660f38dcc1", 4.0, 4.0),   // aesenc xmm0,xmm1
        ("f2480f38f1c3", 3.0, 3.0), // crc32 rax,rbx
        ("f3480fbcc3", 2.0, 2.0),   // tzcnt rax,rbx
        ("f3480fbdc3", 1.0, 1.0),   // lzcnt rax,rbx
        ("480fbcc3", 3.0, 3.0),     // bsf rax,rbx
        ("480f44c3", 1.0, 1.0),     // cmove rax,rbx
    ];
    for (hex, low, high) in known {
        let found = latency("zen3", hex, Input::Register);
        assert_eq!((found.low, found.high), (low, high), "{hex}");
        assert!(matches!(found.source, Source::Table(_)), "{hex}");
    }
    assert_eq!(latency("zen3", "488b00", Input::Address).low, 4.0); // mov rax,[rax]
    assert_eq!(latency("zen3", "488b0418", Input::Address).low, 5.0); // mov rax,[rax+rbx]
}

/// Native times of a Zen 4 that must be in the table's range: AES rounds, minima, moves between register files
/// (half of 7 to 9), address calculations, rotations through the carry. The tables of Zen 3 and of unknown cores
/// must not exclude them either, where they know no better.
#[test]
fn zen_4_has_what_was_measured_natively() {
    let measured = [
        ("660f38dcc1", 4.0), // aesenc xmm0,xmm1
        ("660f38dec1", 4.0), // aesdec xmm0,xmm1
        ("0f5dc1", 2.0),     // minps xmm0,xmm1
        ("f20f5fc1", 2.0),   // maxsd xmm0,xmm1
        ("66480f6ec0", 4.0), // movq xmm0,rax
        ("66480f7ec0", 4.0), // movq rax,xmm0
        ("c4e1fb92c8", 4.0), // kmovq k1,rax
        ("488d441808", 2.0), // lea rax,[rax+rbx+8]
        ("48c1d003", 4.0),   // rcl rax,3
    ];
    for (hex, cycles) in measured {
        for uarch in [Some("zen4"), None] {
            let found = match uarch {
                Some(uarch) => latency(uarch, hex, Input::Register),
                None => assumed(hex),
            };
            assert!(found.low <= cycles && cycles <= found.high, "{hex} {uarch:?}: {found:?}");
        }
        let source = latency("zen4", hex, Input::Register).source;
        assert!(matches!(source, Source::Table(_)), "{hex}: {source:?}");
    }
    // LLVM has 3 cycles, OSACA 2.
    let sum = latency("zen4", "f30f58c1", Input::Register); // addss xmm0,xmm1
    assert_eq!((sum.low, sum.high), (2.0, 3.0));
}

fn assumed(hex: &str) -> Latency {
    let bytes = crate::code::parse_hex(hex).unwrap();
    let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    let effects = effects(&tma::Core::default(), &instruction);
    let all = Latencies::new(&tma::Core::default()).unwrap();
    all.between(&instruction, &effects, Input::Register, Output::Register)
}

/// Timed natively on a Zen 5 (tests/tools/native_latencies.py). `paddd` takes 1 cycle while the scheduler
/// is nearly empty.
#[test]
fn zen_5_has_what_was_measured_natively() {
    let measured = [
        ("4801d8", (1.0, 1.0)),     // add rax,rbx
        ("480fafc3", (3.0, 3.0)),   // imul rax,rbx
        ("f3480fbcc3", (1.0, 1.0)), // tzcnt rax,rbx
        ("48c1d003", (1.0, 4.0)),   // rcl rax,3
        ("660ffec1", (1.0, 2.0)),   // paddd xmm0,xmm1
        ("660f3800c1", (2.0, 2.0)), // pshufb xmm0,xmm1
        ("660f38dcc1", (4.0, 4.0)), // aesenc xmm0,xmm1
        ("c5f558c2", (2.0, 3.0)),   // vaddpd ymm0,ymm1,ymm2
        ("c5f559c2", (3.0, 3.0)),   // vmulpd ymm0,ymm1,ymm2
        ("c4e2f5b8c2", (4.0, 4.0)), // vfmadd231pd ymm0,ymm1,ymm2
        ("f20f5ec1", (13.0, 13.0)), // divsd xmm0,xmm1
        ("f20f51c1", (20.0, 20.0)), // sqrtsd xmm0,xmm1
        ("488d441808", (1.0, 2.0)), // lea rax,[rax+rbx+8]
        ("66480f6ec0", (4.5, 4.5)), // movq xmm0,rax: 9 with the way back
        ("c4e1fb92c8", (4.5, 4.5)), // kmovq k1,rax
    ];
    for (hex, expected) in measured {
        let found = latency("zen5", hex, Input::Register);
        assert_eq!((found.low, found.high), expected, "{hex}");
        assert!(matches!(found.source, Source::Table(_)), "{hex}");
    }
    assert_eq!(latency("zen5", "488b00", Input::Address).low, 4.0); // mov rax,[rax]
    assert_eq!(latency("zen5", "488b0418", Input::Address).low, 4.0); // mov rax,[rax+rbx]
}

/// Values of uops.info for Ice Lake and Intel's optimization manual (loads: 5 cycles).
#[test]
fn ice_lake_has_its_published_latencies() {
    let known = [
        ("4801d8", 1.0),     // add rax,rbx
        ("480fafc3", 3.0),   // imul rax,rbx
        ("c5f558c2", 4.0),   // vaddpd ymm0,ymm1,ymm2
        ("c4e2f5b8c2", 4.0), // vfmadd231pd ymm0,ymm1,ymm2
        ("f3480fb8c3", 3.0), // popcnt rax,rbx
        ("660f38dcc1", 3.0), // aesenc xmm0,xmm1: LLVM 4
        ("f20f5ec1", 14.0),  // divsd xmm0,xmm1: 13 to 14
        ("48d3e0", 1.0),     // shl rax,cl: 1 to 2
    ];
    for uarch in ["icl", "icx"] {
        for (hex, cycles) in known {
            let found = latency(uarch, hex, Input::Register);
            assert!(found.low <= cycles && cycles <= found.high, "{uarch} {hex}: {found:?}");
            assert!(found.high <= cycles + 2.0, "{uarch} {hex}: {found:?}");
        }
        assert_eq!(latency(uarch, "488b00", Input::Address).low, 5.0); // mov rax,[rax]
    }
}

/// By hand: 4 cycles of a load and 3 of the multiplication on registers, both measured.
#[test]
fn forms_with_a_memory_source_use_the_measured_register_form_and_load() {
    let mut calibration = Calibration::default();
    calibration.machine.uarch = "zen4".into();
    let mut put = |name: &str, input, cycles| {
        let key = (Form::parse(name).unwrap(), input, Output::Register);
        calibration.values.insert(key, Value { cycles, spread: 0.0 });
    };
    put("Imul_r64_rm64_reg", Input::Register, 3.0);
    put("Add_rm64_r64_reg", Input::Register, 1.0);
    put("Mov_r64_rm64_mem", Input::Address, 4.0);
    put("Mulps_xmm_xmmm128_reg", Input::Register, 3.0);
    put("Movups_xmm_xmmm128_mem", Input::Address, 7.0);
    let core = test_core(Some("zen4"));
    let latencies = Latencies::new(&core).unwrap().with(calibration);
    let found = |hex: &str, input| {
        let bytes = crate::code::parse_hex(hex).unwrap();
        let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        let effects = effects(&core, &instruction);
        let found = latencies.between(&instruction, &effects, input, Output::Register);
        (found.source == Source::Measured).then_some((found.low, found.high))
    };
    let imul = "480faf03"; // imul rax,[rbx]
    assert_eq!(found(imul, Input::Address), Some((7.0, 7.0)));
    assert_eq!(found(imul, Input::Register), Some((3.0, 3.0)));
    assert_eq!(found(imul, Input::Memory), Some((3.0, 3.0)));
    // Another encoding of the same addition was measured.
    assert_eq!(found("480303", Input::Address), Some((5.0, 5.0))); // add rax,[rbx]
    assert_eq!(found("0f5903", Input::Address), Some((10.0, 10.0))); // mulps xmm0,[rbx]
    assert_eq!(found("0f5903", Input::Register), Some((3.0, 3.0)));
    // No load with an index was measured.
    assert_eq!(found("480faf0418", Input::Address), None); // imul rax,[rax+rbx]
}

/// A gather takes at least 14 cycles from its indices but only merges its old destination: a
/// dependency chain with eight `vpermd` of 3 cycles takes 25.0 cycles on Emerald Rapids.
#[test]
fn a_gather_merges_its_old_destination_after_its_loads() {
    let gather = "c4e26d90048f"; // vpgatherdd ymm0,[rdi+ymm1*4],ymm2
    let merged = latency("emr", gather, Input::Merged);
    assert_eq!((merged.low, merged.high), (1.0, 3.0));
    assert!(latency("emr", gather, Input::Register).low >= 8.0);
}

#[test]
fn shipped_tables_are_valid() {
    for (name, packed) in events::BUNDLE.latencies {
        assert_eq!(Table::parse(&packed.text().unwrap()).err(), None, "{name}");
    }
    for uarch in ["zen3", "zen4", "zen5", "icl", "icx", "tgl", "rkl", "emr", "spr", "adl", "gnr"] {
        assert!(test_core(Some(uarch)).latencies.is_some(), "{uarch}");
    }
}

#[test]
fn a_calibration_is_restored_from_its_file_and_overrides_the_table() {
    let form = Form::parse("Imul_r64_rm64_reg").unwrap();
    let mut calibration = Calibration::default();
    calibration.machine.uarch = "emr".into();
    let value = Value { cycles: 3.25, spread: 0.01 };
    calibration.values.insert((form, Input::Register, Output::Register), value);
    calibration.forwarding.insert(Forward::Stack, value);
    let folder = tempfile::tempdir().unwrap();
    let path = Calibration::path(folder.path(), "emr");
    calibration.save(&path).unwrap();
    let read = Calibration::load(&path).unwrap();
    assert_eq!(read, calibration);
    let latencies = Latencies::new(&test_core(Some("emr"))).unwrap().with(read);
    assert_eq!(latencies.forwarding(Forward::Stack).source, Source::Measured);
    assert!(Form::parse("Imul_r64_rm64").is_none());
}

/// Ranges, back-to-back latencies and indexed addresses are restored from the file and applied only to
/// matching instructions.
#[test]
fn a_calibration_distinguishes_ranges_producers_and_addresses() {
    let mut calibration = Calibration::default();
    calibration.machine.uarch = "emr".into();
    let mut put = |name: &str, input, cycles, least: Option<f64>, back_to_back: Option<f64>| {
        let form = Form::parse(name).unwrap();
        assert_eq!(form.to_string(), name);
        let key = (form, input, Output::Register);
        calibration.values.insert(key, Value { cycles, spread: 0.0 });
        calibration.least.extend(least.map(|least| (key, least)));
        calibration.back_to_back.extend(back_to_back.map(|back_to_back| (form, back_to_back)));
    };
    put("Div_rm64_reg", Input::Register, 18.0, Some(10.0), None);
    put("VEX_Vaddpd_xmm_xmm_xmmm128_reg", Input::Register, 3.25, None, Some(2.25));
    put("Mov_r64_rm64_mem", Input::Address, 4.75, None, None);
    put("Lea_r64_m+bis", Input::Register, 2.25, None, None);
    put("Add_rm64_imm8_reg", Input::Register, 0.0, None, None);
    let folder = tempfile::tempdir().unwrap();
    let path = Calibration::path(folder.path(), "emr");
    calibration.save(&path).unwrap();
    assert_eq!(Calibration::load(&path).unwrap(), calibration);
    let latencies = Latencies::new(&test_core(Some("emr"))).unwrap().with(calibration);
    let found = |hex: &str, input| {
        let bytes = crate::code::parse_hex(hex).unwrap();
        let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        let effects = effects(&test_core(Some("emr")), &instruction);
        latencies.between(&instruction, &effects, input, Output::Register)
    };
    let measured = |hex: &str, input| {
        let found = found(hex, input);
        (found.source == Source::Measured).then_some((found.low, found.high))
    };
    assert_eq!(measured("48f7f3", Input::Register), Some((10.0, 18.0))); // div rbx
    assert_eq!(measured("c5f158c2", Input::Register), Some((3.25, 3.25))); // vaddpd xmm0,xmm1,xmm2
    assert_eq!(measured("488b00", Input::Address), Some((4.75, 4.75))); // mov rax,[rax]
    assert_eq!(measured("488b0418", Input::Address), None); // mov rax,[rax+rbx]
    assert_eq!(measured("488d0498", Input::Register), Some((2.25, 2.25))); // lea rax,[rax+rbx*4]
    assert_eq!(measured("488d449808", Input::Register), None); // lea rax,[rax+rbx*4+8]
    assert_eq!(measured("4883c008", Input::Register), Some((0.0, 0.0))); // add rax,8
}

/// Measured natively on a Zen 5, chains against additions of one cycle: 4 from a base or an index that is not scaled, 5
/// from a scaled index, 4 from the base beside it.
#[test]
fn zen5_loads_take_longer_only_from_a_scaled_index() {
    let core = test_core(Some("zen5"));
    let latencies = Latencies::new(&core).unwrap();
    let of = |hex: &str| {
        let bytes = crate::code::parse_hex(hex).unwrap();
        let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        let effects = effects(&core, &instruction);
        let found = latencies.between(&instruction, &effects, Input::Address, Output::Register);
        let Source::Table(source) = found.source else { panic!("{found:?}") };
        (found.low, found.high, source)
    };
    let plain = of("488b00"); // mov rax,[rax]
    assert_eq!((plain.0, plain.1), (4.0, 4.0));
    assert!(!plain.2.contains("round trip"), "{}", plain.2);
    assert_eq!(of("488b0418"), plain); // mov rax,[rax+rbx]
    let scaled = of("488b0cce"); // mov rcx,[rsi+rcx*8]
    assert_eq!((scaled.0, scaled.1), (4.0, 5.0));
}
