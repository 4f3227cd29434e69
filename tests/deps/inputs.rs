//! The inputs of `tdtool deps`: object files, paths of blocks, batches; and its messages where something is wrong.

use super::{deps_of_emr, json};
use crate::support::files::{Folder, text};
use crate::support::run::{command, ended, send, start};
use crate::support::shown;
use crate::support::tools::build;
use crate::support::wait::until;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// (writer, reader, delta) of what memory carries.
fn carried(document: &Value) -> Vec<(String, String, u64)> {
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let all = document["dependencies"].as_array().unwrap().iter();
    all.filter(|d| d["kind"] == "memory")
        .map(|d| (name(&d["writer"]), name(&d["reader"]), d["delta"].as_u64().unwrap()))
        .collect()
}

/// Two variables of one section and one of another, each read where it was stored: only with
/// relocations applied do addresses tell which is which.
const VARIABLES: &str = "
    .intel_syntax noprefix
    .text
    .globl f
    .type f, @function
f:  test edi, edi
    jz 2f
1:  mov eax, [rip + one]
    mov ecx, [rip + two]
    add eax, 1
    mov [rip + one], eax
    mov edx, [rip + other]
    mov [rip + two], edx
    test eax, 1
    jz 3f
    add dword ptr [rip + other], 2
3:  sub edi, 1
    jnz 1b
2:  ret
    .size f, .-f
    .data
one:   .long 0
two:   .long 0
    .section .data.other, \"aw\"
other: .long 0
";

#[test]
fn an_object_file_has_its_variables_apart_and_its_blocks_make_paths() {
    let folder = Folder::new();
    let Some(file) = build(folder.path(), "as", VARIABLES, &[], "a.o") else { return };
    let file = text(&file);
    // The block at the loop's head: 0x4 to the first jump after it.
    let block = json(&[&format!("{file}:f+1")]);
    let shown = |d: &Value| carried(d).iter().map(|(w, r, n)| format!("{w} {r} {n}")).collect();
    let found: Vec<String> = shown(&block);
    // mov [one] at 0x13 → mov eax,[one] at 0x4; mov [two] at 0x1f → mov ecx,[two] at 0xa.
    assert_eq!(found, ["0x13 0x4 1", "0x1f 0xa 1"]);
    // With the block that changes `other`, its value goes on to the next iteration, and with the
    // counter the path is a whole iteration.
    let path = json(&["--path", &format!("{file}:f+1,2,3")]);
    let found: Vec<String> = shown(&path);
    assert_eq!(found, ["0x13 0x4 1", "0x1f 0xa 1", "0x2c 0x19 1", "0x2c 0x2c 1"]);
    assert_eq!(path["may_alias"], Value::Array(Vec::new()), "all addresses are known");
    let counter = |d: &Value| d["through"] == "rdi" && d["delta"] == 1;
    assert!(path["dependencies"].as_array().unwrap().iter().any(counter));
}

#[test]
fn a_path_may_visit_a_block_twice() {
    let folder = Folder::new();
    let Some(file) = build(folder.path(), "as", VARIABLES, &[], "a.o") else { return };
    let file = text(&file);
    let path = json(&["--path", &format!("{file}:f+3,3")]);
    let between: BTreeSet<String> = (path["dependencies"].as_array().unwrap().iter())
        .filter(|d| d["through"] == "rdi")
        .map(|d| format!("{} {}", d["indices"], d["delta"]))
        .collect();
    // sub edi,1; jnz; sub edi,1; jnz: from one to the other, and around.
    let expected: BTreeSet<String> = ["[0,2] 0", "[2,0] 1"].map(str::to_owned).into();
    assert_eq!(between, expected);
}

#[test]
fn what_cannot_be_read_is_an_error_with_a_remedy_and_never_a_panic() {
    let folder = Folder::new();
    let junk = folder.write("junk", "rax=zz\n");
    let binary = folder.write("binary", [0xff, 0xfe, 0, 1]);
    let elf = folder.write("elf", b"\x7fELF\x02\x01\x01 and no more");
    let samples = format!("snapshot:{junk}");
    let (cut, function, path) = (format!("{elf}:0..4"), format!("{elf}:f"), format!("{elf}:f+1,2"));
    let asked = [
        &["deps", ""][..],
        &["deps", "480fafc"],
        &["deps", "0x48,zz"],
        &["deps", "06"],
        &["deps", "4801d8 480f"],
        &["deps", "/nowhere/at/all:main"],
        &["deps", &cut],
        &["deps", &function],
        &["deps", "--path", &path],
        &["deps", "--path", "480fafc0"],
        &["deps", "--path", "nothing"],
        &["deps", "--asm-file", "/nowhere"],
        &["deps", "90", "--registers", "/nowhere"],
        &["deps", "90", "--registers", &junk],
        &["deps", "90", "--registers", &binary],
        &["deps", "90", "--registers", &samples],
        &["deps", "90", "--init", "rax=1z"],
        &["deps", "90", "--region", "x"],
        &["deps", "90", "--seeds", "0"],
    ];
    assert_shown!("deps_refused", shown::each(&asked, &folder));
    // Too long; and what the assembler itself says.
    for (arguments, expected) in
        [(&[&*"90".repeat(5000)][..], "4096"), (&["--asm", "frobnicate rax"], "frobnicate")]
    {
        let refused = deps_of_emr(arguments);
        assert!(matches!(refused.code(), Some(1 | 2)), "{}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}

/// A reader that goes away is no error, and no panic.
#[test]
fn a_closed_pipe_ends_it_quietly() {
    let mut child = start(&mut command(["deps", &"480fafc0".repeat(500)]));
    drop(child.stdout.take());
    assert_eq!(ended(child).stderr, "");
}

#[test]
fn a_batch_has_a_row_for_each_block_and_ends_on_ctrl_c() {
    let folder = Folder::new();
    let [out, unmodelled] = ["out.csv", "unmodelled.csv"].map(|name| folder.file(name));
    let long = "90".repeat(30_000);
    let rows = folder.write("rows.csv", format!("hex\n4801d8\nzz\n480f\n{long}\nf3a4\n\n0107\n"));
    deps_of_emr(&["--batch", &rows, "-o", &out, "--unmodelled", &unmodelled]).succeeded();
    let written = folder.read("out.csv");
    let status: Vec<&str> =
        written.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(status, ["ok", "rejected", "rejected", "rejected", "ok", "ok"], "{written}");
    assert!(folder.read("unmodelled.csv").contains("rep movsb"));

    // Enough work for minutes.
    let block = "488b07480fafc048890748ffc7".repeat(100);
    folder.write("rows.csv", format!("hex\n{}", format!("{block}\n").repeat(20_000)));
    fs::remove_file(&out).unwrap();
    let child = start(&mut command(["deps", "--seeds", "1024", "--batch", &rows, "-o", &out]));
    // It has read its input by when it waits for signals (proc_pid_status(5)).
    let status = format!("/proc/{}/status", child.id());
    let catches = |line: &str| {
        let mask = line.strip_prefix("SigCgt:").map(|mask| u64::from_str_radix(mask.trim(), 16));
        mask.is_some_and(|mask| mask.unwrap() >> (Signal::SIGINT as u32 - 1) & 1 == 1)
    };
    until(|| fs::read_to_string(&status).unwrap().lines().any(catches), || "no handler".into());
    send(&child, Signal::SIGINT);
    let interrupted = ended(child);
    assert_eq!(interrupted.code(), Some(130), "{interrupted:?}");
    // The rows until then, under their head.
    let written = folder.read("out.csv");
    assert!((1..20_000).contains(&written.lines().count()), "it was done: {interrupted:?}");
    assert!(written.ends_with('\n'), "{written}");
}
