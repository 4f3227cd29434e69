//! The inputs and lists of `tdtool microbench`, and a calibration that is interrupted.

use super::microbench;
use crate::block::quiet_sandbox;
use crate::support::files::Folder;
use crate::support::run::{command, ended, send, start, tdtool};
use isa::latency::Calibration;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// An interrupted calibration is whole, keeps what it has, and the next one goes on from there.
#[test]
fn an_interrupted_calibration_goes_on_where_it_stopped() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let folder = Folder::new();
    let path = folder.file("latency.toml");
    let calibrate = ["--calibrate", "--output", &path, "--uarch", "emr", "--format", "json"];
    let mut child = start(command(["microbench"]).args(calibrate));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The second: one is measured by then.
    let second = lines.nth(1).and_then(Result::ok).unwrap_or_default();
    assert!(second.contains("forwarding"), "{second}");
    send(&child, Signal::SIGINT);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let interrupted = ended(child);
    assert_eq!(interrupted.code(), Some(130), "{rest:?}");
    let document = interrupted.json();
    assert!(document["left"].as_u64().unwrap() > 100, "{document}");
    let kept = Calibration::load(Path::new(&path)).unwrap();
    let more = microbench(&[&calibrate[..], &["--time-limit", "0"]].concat()).json();
    assert_eq!(more["forwarding"].as_u64().unwrap() as usize, kept.forwarding.len());
}

#[test]
fn unknown_forms_name_the_nearest_and_refused_ones_the_reason() {
    let output = microbench(&["ADD_GPR64i64_IMM8"]);
    assert_eq!(output.code(), Some(2));
    assert!(output.stderr.contains("ADD_GPR64i64_IMMi8"), "{}", output.stderr);
    let output = microbench(&["throughput", "CPUID"]);
    assert_ne!(output.code(), Some(0));
    assert!(output.stderr.contains("cause:"), "{}", output.stderr);
    let output = microbench(&["ADD_GPR64i64_GPR64i64*0"]);
    assert_eq!(output.code(), Some(2));
    let output = microbench(&["list", "NO_SUCH_*"]);
    assert_eq!(output.code(), Some(1));
}

#[test]
fn the_list_says_what_is_refused_only_if_asked() {
    let listed = |args: &[&str]| -> Value {
        microbench(&[&["list"], args, &["--format", "json"]].concat()).json()
    };
    let document = listed(&["IMUL*"]);
    assert_eq!(document["schema"], "tdtool.microbench/1");
    let forms = document["forms"].as_array().unwrap();
    assert!(forms.iter().any(|f| f["form"] == "IMUL_GPR64i64_GPR64i64"));
    assert!(forms.iter().all(|f| f["reason"].is_null()));
    let refused = listed(&["CPUID", "--refused"]);
    assert!(refused["forms"][0]["reason"].as_str().unwrap().contains("hypervisor"));
    for (pattern, word) in [
        ("VGATHERDPD*", "vector register"),
        ("*STOS*", "string"),
        ("JNE*", "leave the microbenchmark"),
    ] {
        let forms = listed(&[pattern, "--refused"])["forms"].as_array().unwrap().clone();
        let refused = |form: &Value| form["reason"].as_str().is_some_and(|r| r.contains(word));
        assert!(!forms.is_empty() && forms.iter().all(refused), "{pattern}: {forms:?}");
        let output = microbench(&["list", pattern]);
        assert!(output.stderr.contains("--refused"), "{}", output.stderr);
    }
}

#[test]
fn options_are_taken_before_and_after_the_subcommand() {
    let before = microbench(&["--format", "csv", "list", "IMUL*"]);
    let after = microbench(&["list", "IMUL*", "--format", "csv"]);
    assert!(before.status.success(), "{}", before.stderr);
    assert!(before.stdout.starts_with("form,code"), "{}", before.stdout);
    assert_eq!(before.stdout, after.stdout);
    let both = microbench(&["IMUL_GPR64i64_GPR64i64", "latency", "IMUL_GPR64i64_GPR64i64"]);
    assert_eq!(both.code(), Some(2), "{}", both.stderr);
}

#[test]
fn the_earlier_name_of_the_command_still_works_and_is_not_shown() {
    let list = ["list", "IMUL*", "--format", "csv"];
    let earlier = tdtool([&["kernel"][..], &list].concat());
    assert_eq!(earlier.stdout, microbench(&list).stdout);
    let help = tdtool(["--help"]).stdout;
    assert!(help.contains("\n  microbench ") && !help.contains("\n  kernel "), "{help}");
    let man = tdtool(["man"]).stdout;
    assert!(man.contains("microbench"), "{man}");
}
