//! What people are told who mistype, or stand in the wrong place.

#![allow(clippy::print_stderr)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tdtool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).args(args).output().expect("tdtool starts")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A session of a program that is busy for a while; `None`, said aloud, where nothing is sampled.
fn session(folder: &Path) -> Option<String> {
    let file = folder.join("s.tds").display().to_string();
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let recorded = tdtool(&["record", "-g", "-o", &file, "--", "sh", "-c", busy]);
    let text = told(&recorded);
    if !recorded.status.success()
        || text.contains("note:  0 samples")
        || !text.contains("samples of")
    {
        eprintln!("skipped: {text}");
        return None;
    }
    Some(file)
}

#[test]
fn a_mistyped_command_is_told() {
    let output = tdtool(&["reprot", "--", "./x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("tdtool report"), "{}", told(&output));
    let output = tdtool(&["-a"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("tdtool report -a"), "{}", told(&output));
}

#[test]
fn folded_stacks_go_to_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = session(folder.path()) else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args(["report", &file, "--folded", "-"])
        .current_dir(folder.path())
        .output()
        .expect("tdtool starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let is_folded = |l: &str| l.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok());
    assert!(!text.is_empty() && text.lines().all(is_folded), "{text}");
    assert!(!folder.path().join("-").exists());
}

#[test]
fn threads_that_are_not_there_are_refused_with_those_that_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = session(folder.path()) else { return };
    for thread in ["nosuch", "4000000"] {
        let output = tdtool(&["report", &file, "--thread", thread]);
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert!(told(&output).contains("sh"), "{}", told(&output));
    }
    assert!(tdtool(&["report", &file, "--thread", "sh"]).status.success());
}

#[test]
fn diff_of_sessions_says_how_to_make_documents() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.tds").display().to_string();
    assert!(tdtool(&["record", "-o", &file, "--", "true"]).status.success());
    let output = tdtool(&["diff", &file, &file]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("tdtool report {file} --format json")), "{text}");
}

#[test]
fn a_full_disk_is_told_before_the_command_starts() {
    // /dev/full: ENOSPC on every write (full(4)).
    let folder = tempfile::tempdir().expect("a folder");
    let ran = folder.path().join("ran").display().to_string();
    let output = tdtool(&["record", "-o", "/dev/full", "--", "touch", &ran]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.contains("the command was not started"), !Path::new(&ran).exists(), "{text}");
    assert!(!text.contains("kept and readable"), "{text}");
}

/// A program that takes some seconds, in one hot loop; `None` where there is no compiler.
fn slow(folder: &Path) -> Option<String> {
    let (source, binary) = (folder.join("slow.c"), folder.join("slow"));
    let text = "#include <stdlib.h>\nint main(int c, char **v) { volatile unsigned x = c; \
                for (long i = 0; i < atol(v[1]); i++) x = x * 3 + 1; return x == 7; }\n";
    fs::write(&source, text).expect("written");
    let made = Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&binary).arg(&source).status();
    made.is_ok_and(|s| s.success()).then(|| binary.display().to_string())
}

#[test]
fn an_interrupted_counting_run_gives_no_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = slow(folder.path()) else { return };
    // The further run stops its parent, tdtool, when there is a file; the first one makes it.
    let once = folder.path().join("once").display().to_string();
    let script = format!(
        "if [ -e {once} ]; then (sleep 0.3; kill -TERM $PPID) & fi; touch {once}; exec {binary} 300000000"
    );
    let child = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args([
            "report", "--counts", "--blocks", "1", "--format", "json", "--", "sh", "-c", &script,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tdtool starts");
    let output = child.wait_with_output().expect("ended");
    let text = told(&output);
    if text.contains("breakpoints") {
        eprintln!("skipped: {text}");
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let block = &report["blocks"][0];
    assert!(block["entries"].is_null(), "{block}");
    assert!(
        block["entries_how"].as_str().is_some_and(|how| how.contains("interrupted")),
        "{block}"
    );
    assert_eq!(output.status.code(), Some(128 + 15), "{text}");
}

#[test]
fn a_config_file_out_of_reach_is_a_note() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/tdtool");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("config.toml"), "ascii = true").expect("written");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).expect("set");
    let unreachable = fs::read(folder.join("config.toml")).is_err();
    let output = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args(["block", "--tui", "90"])
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .expect("tdtool starts");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("set");
    if !unreachable {
        eprintln!("skipped: this user may read everything");
        return;
    }
    assert!(!told(&output).contains("error: cannot read the config"), "{}", told(&output));
}
