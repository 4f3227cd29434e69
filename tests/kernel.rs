//! `tdtool kernel`: multisets are generated as asked, independent where they can be, and measure
//! what is known of them.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use bench::microbench::{Catalog, Form, Kernel, Multiset, Settings, independence};
use isa::code::Block;
use proptest::prelude::*;
use serde_json::Value;
use std::process::{Command, Output};

fn tdtool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).arg("kernel").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first document whose verdict is `ok`; `None`, said aloud, where the core is never calm or
/// there is no sandbox.
fn settled(args: &[&str], good: impl Fn(&Value) -> bool) -> Option<Value> {
    for _ in 0..5 {
        let output = tdtool(&[args, &["--format", "json"]].concat());
        let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else {
            eprintln!("skipped: {args:?}: {}", text(&output.stderr));
            return None;
        };
        if good(&document) {
            return Some(document);
        }
    }
    eprintln!("skipped: {args:?}: the core was never calm");
    None
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.05
}

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
    fn kernels_are_what_was_asked_for_and_independent(
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
        let kernel = Kernel::of(&set, &settings).unwrap();
        let block = Block::decode(&kernel.bytes).unwrap();
        prop_assert_eq!(block.refusal(), None);
        let back = Multiset::of(&block).unwrap();
        prop_assert_eq!(back.forms.len(), set.forms.len());
        for (form, count) in &set.forms {
            let there = back.forms.iter().find(|(f, _)| f == form).map(|f| f.1);
            prop_assert_eq!(there, Some(count * kernel.sets));
        }
        for uarch in [None, Some("zen3"), Some("spr")] {
            let found = independence(&kernel, uarch).unwrap();
            let wrong: Vec<_> = found.dependencies.iter().filter(|d| !d.unavoidable).collect();
            prop_assert!(wrong.is_empty(), "{:?}", wrong);
        }
    }
}

#[test]
fn three_operand_forms_are_independent_and_two_operand_forms_are_said_not_to_be() {
    let found = |text: &str| {
        let kernel = Kernel::of(&Multiset::parse(text).unwrap(), &Settings::default()).unwrap();
        independence(&kernel, Some("spr")).unwrap()
    };
    assert!(found("LEA_GPR64i64_ADDRbd, MOV_GPR64i64_MEM64i64").dependencies.is_empty());
    let add = found("ADD_GPR64i64_GPR64i64");
    assert_eq!(add.dependencies.len(), 1);
    assert_eq!(add.dependencies[0].through, "destination");
    // One cycle over as many registers as there are in turn.
    let bound = add.bound.unwrap();
    let expected = 1.0 / add.dependencies[0].in_turn as f64;
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
        let block = Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
        let form = Catalog::form_of(&block.instructions[0].decoded).unwrap();
        assert_eq!(Catalog::all().name(form), name, "{hex}");
        let kernel = Kernel::of(&Multiset::one(form), &Settings::default());
        let kernel = kernel.unwrap();
        for inst in Block::decode(&kernel.bytes).unwrap().instructions {
            assert_eq!(Catalog::form_of(&inst.decoded).unwrap(), form, "{hex}");
        }
        let found = independence(&kernel, Some("spr")).unwrap();
        assert!(found.dependencies.iter().all(|d| d.unavoidable), "{hex}: {found:?}");
    }
}

#[test]
fn a_kernel_leaves_the_stack_pointer_where_it_found_it() {
    for text in ["PUSH_GPR64i64*3, POP_GPR64i64", "POP_GPR64i64", "PUSH_GPR64i64, POP_GPR64i64"] {
        let kernel = Kernel::of(&Multiset::parse(text).unwrap(), &Settings::default()).unwrap();
        let block = Block::decode(&kernel.bytes).unwrap();
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
        let found = independence(&kernel, Some("spr")).unwrap();
        assert!(found.dependencies.iter().all(|d| d.unavoidable), "{text}: {found:?}");
    }
}

/// An interrupted calibration is whole, keeps what it has, and the next one goes on from there.
#[test]
fn an_interrupted_calibration_goes_on_where_it_stopped() {
    use std::io::BufRead as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latency.toml");
    let path = path.to_str().unwrap();
    let args = ["--calibrate", "--output", path, "--uarch", "emr", "--format", "json"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .arg("kernel")
        .args(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    // The second: one is measured by then.
    let second = lines.nth(1).and_then(Result::ok).unwrap_or_default();
    if !second.contains("forwarding") {
        eprintln!("skipped: {second}");
        let _ = child.wait();
        return;
    }
    let number = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
    let told: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{told:?}");
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(ended["left"].as_u64().unwrap() > 100, "{ended}");
    let kept = isa::latency::Calibration::load(std::path::Path::new(path)).unwrap();
    let more = tdtool(&[&args[..], &["--time-limit", "0"]].concat());
    let ended: Value = serde_json::from_slice(&more.stdout).unwrap();
    assert_eq!(ended["forwarding"].as_u64().unwrap() as usize, kept.forwarding.len());
}

#[test]
fn unknown_forms_are_told_with_the_nearest_and_refused_ones_with_the_reason() {
    let output = tdtool(&["ADD_GPR64i64_IMM8"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("ADD_GPR64i64_IMMi8"), "{}", text(&output.stderr));
    let output = tdtool(&["throughput", "CPUID"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("cause:"), "{}", text(&output.stderr));
    let output = tdtool(&["ADD_GPR64i64_GPR64i64*0"]);
    assert_eq!(output.status.code(), Some(2));
    let output = tdtool(&["list", "NO_SUCH_*"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_list_says_what_is_refused_only_if_asked() {
    let listed = |args: &[&str]| -> Value {
        let output = tdtool(&[&["list"], args, &["--format", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let document = listed(&["IMUL*"]);
    assert_eq!(document["schema"], "tdtool.kernel/1");
    let forms = document["forms"].as_array().unwrap();
    assert!(forms.iter().any(|f| f["form"] == "IMUL_GPR64i64_GPR64i64"));
    assert!(forms.iter().all(|f| f["reason"].is_null()));
    let refused = listed(&["CPUID", "--refused"]);
    assert!(refused["forms"][0]["reason"].as_str().unwrap().contains("hypervisor"));
    for (pattern, word) in
        [("VGATHERDPD*", "vector register"), ("*STOS*", "string"), ("JNE*", "leave the kernel")]
    {
        let forms = listed(&[pattern, "--refused"])["forms"].as_array().unwrap().clone();
        let told = |form: &Value| form["reason"].as_str().is_some_and(|r| r.contains(word));
        assert!(!forms.is_empty() && forms.iter().all(told), "{pattern}: {forms:?}");
        let output = tdtool(&["list", pattern]);
        assert!(text(&output.stderr).contains("--refused"), "{}", text(&output.stderr));
    }
}

#[test]
fn options_are_taken_before_and_behind_the_word() {
    let before = tdtool(&["--format", "csv", "list", "IMUL*"]);
    let behind = tdtool(&["list", "IMUL*", "--format", "csv"]);
    assert!(before.status.success(), "{}", text(&before.stderr));
    assert!(text(&before.stdout).starts_with("form,code"), "{}", text(&before.stdout));
    assert_eq!(before.stdout, behind.stdout);
    let both = tdtool(&["IMUL_GPR64i64_GPR64i64", "latency", "IMUL_GPR64i64_GPR64i64"]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
}

/// Multiplication takes three cycles and one starts each cycle on every x86 core of Intel since
/// Nehalem and of AMD since Zen (uops.info).
#[test]
fn multiplication_takes_three_cycles_and_one_starts_each() {
    let form = "IMUL_GPR64i64_GPR64i64";
    let ok = |d: &Value| d["status"] == "ok";
    if let Some(document) = settled(&["throughput", form], ok) {
        assert!(near(document["cycles"]["cycles"].as_f64().unwrap(), 1.0), "{document}");
    }
    let ok = |d: &Value| d["latencies"].as_array().unwrap().iter().all(|l| l["status"] == "ok");
    let Some(document) = settled(&["latency", form], ok) else { return };
    for way in document["latencies"].as_array().unwrap() {
        assert!(near(way["cycles"].as_f64().unwrap(), 3.0), "{way}");
    }
}

/// FMA: four cycles on Intel since Skylake and on AMD since Zen 3 (uops.info); two a cycle.
#[test]
fn fused_multiply_add_takes_four_cycles_and_two_start_each() {
    if !std::is_x86_feature_detected!("fma") {
        eprintln!("skipped: no FMA here");
        return;
    }
    let form = "VFMADD231PD_VR256f64x4_VR256f64x4_VR256f64x4";
    let ok = |d: &Value| d["status"] == "ok";
    if let Some(document) = settled(&["throughput", form], ok) {
        assert!(near(document["cycles"]["cycles"].as_f64().unwrap(), 0.5), "{document}");
    }
    let ok = |d: &Value| d["latencies"].as_array().unwrap().iter().all(|l| l["status"] == "ok");
    let Some(document) = settled(&["latency", form], ok) else { return };
    for way in document["latencies"].as_array().unwrap() {
        assert!(near(way["cycles"].as_f64().unwrap(), 4.0), "{way}");
    }
}

#[test]
fn a_mixed_multiset_is_counted_whole() {
    let ok = |d: &Value| d["status"] == "ok";
    // One multiplication a cycle, with room for two additions beside it on any core.
    let set = "IMUL_GPR64i64_GPR64i64, ADD_GPR64i64_GPR64i64*2";
    let Some(document) = settled(&[set], ok) else { return };
    assert_eq!(document["instructions"], 3);
    assert!(near(document["cycles"]["cycles"].as_f64().unwrap(), 1.0), "{document}");
    assert!(near(document["ipc"].as_f64().unwrap(), 3.0), "{document}");
}
