//! `tdtool deps` from end to end: what it takes, what it writes, and that it ends with a message
//! where something is wrong.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn deps(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args(["--uarch", "emr", "deps"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(args: &[&str]) -> Value {
    let output = deps(&[args, &["--format", "json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// (writer, reader, delta) of what memory carries.
fn carried(document: &Value) -> Vec<(String, String, u64)> {
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let all = document["dependencies"].as_array().unwrap().iter();
    all.filter(|d| d["kind"] == "memory")
        .map(|d| (name(&d["writer"]), name(&d["reader"]), d["delta"].as_u64().unwrap()))
        .collect()
}

/// An object file of this assembly; `None`, said aloud, where there is no assembler.
fn object(folder: &Path, source: &str) -> Option<String> {
    let (from, to) = (folder.join("a.s"), folder.join("a.o"));
    std::fs::write(&from, source).unwrap();
    match Command::new("as").arg("-o").arg(&to).arg(&from).status() {
        Ok(status) if status.success() => Some(to.to_str().unwrap().to_owned()),
        other => {
            eprintln!("skipped: as: {other:?}");
            None
        }
    }
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
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = object(folder.path(), VARIABLES) else { return };
    // The block at the loop's head: 0x4 to the first jump behind it.
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
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = object(folder.path(), VARIABLES) else { return };
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
fn the_document_has_the_keys_that_the_manual_lists() {
    // add [rdi],eax; mov rcx,[rsi]; rep movsb
    let document = json(&["0107 488b0e f3a4", "--all"]);
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(document["schema"], "tdtool.deps/1");
    assert_eq!(keys(&document["instructions"][0]), ["address", "text"]);
    for dependency in document["dependencies"].as_array().unwrap() {
        let expected =
            ["delta", "indices", "kind", "order", "overlap", "reader", "through", "writer"];
        assert_eq!(keys(dependency), expected);
        assert!(["register", "flag", "memory"].contains(&dependency["kind"].as_str().unwrap()));
        assert!(["raw", "war", "waw"].contains(&dependency["order"].as_str().unwrap()));
    }
    let orders: BTreeSet<&str> = (document["dependencies"].as_array().unwrap().iter())
        .filter_map(|d| d["order"].as_str())
        .collect();
    assert_eq!(orders, BTreeSet::from(["raw", "war", "waw"]));
    let expected = ["cycles", "high", "iterations", "low", "path"];
    assert_eq!(keys(&document["recurrences"][0]), expected);
    let expected = [
        "address",
        "delta",
        "forwarding",
        "high",
        "index",
        "kind",
        "low",
        "source",
        "text",
        "through",
    ];
    assert_eq!(keys(&document["recurrences"][0]["path"][0]), expected);
    let expected = ["others", "others_from", "stack", "stores", "stores_from"];
    assert_eq!(keys(&document["may_alias"][0]), expected);
    assert_eq!(keys(&document["unmodelled"][0]), ["address", "reason", "text"]);
}

/// Every node that an edge names is declared, and quotes and braces are closed; where Graphviz is
/// installed it takes it.
#[test]
fn the_graph_is_one() {
    let output = deps(&["--asm-file", "/dev/null", "--format", "dot"]);
    assert!(!output.status.success(), "an empty file is no block");
    // add [rdi],eax; add rdi,4; cmp eax,5; cmovne ecx,edx
    let graph = text(&deps(&["0107 4883c704 83f805 0f45ca", "--all", "--format", "dot"]).stdout);
    let mut nodes = BTreeSet::new();
    let mut edges = 0;
    let mut lines = graph.lines();
    assert_eq!(lines.next(), Some("digraph dependencies {"));
    assert!(graph.ends_with("}\n"));
    for line in lines.filter(|line| line.starts_with("  i")) {
        assert!(line.ends_with("];"), "{line}");
        assert!(line.matches('"').count() % 2 == 0, "{line}");
        let name = |text: &str| text.split(' ').next().unwrap().to_owned();
        match line.trim_start().split_once(" -> ") {
            Some((from, to)) => {
                assert!(nodes.contains(&name(from)) && nodes.contains(&name(to)), "{line}");
                edges += 1;
            }
            None => assert!(nodes.insert(name(line.trim_start()))),
        }
    }
    assert!(nodes.len() == 4 && edges > 6, "{graph}");
    let dot = Command::new("dot").arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut dot) = dot else { return eprintln!("skipped: no Graphviz") };
    dot.stdin.take().unwrap().write_all(graph.as_bytes()).unwrap();
    let drawn = dot.wait_with_output().unwrap();
    assert!(drawn.status.success() && text(&drawn.stdout).contains("<svg"));
}

/// Prose fits 80 columns; the code with its arrows takes what it needs.
#[test]
fn text_fits_a_terminal_and_is_plain_where_asked_for() {
    // mov rax,[rsi]; imul rax,rax; mov [rsp+8],eax; mov [rsp+12],edx; mov r8,[rsp+8];
    // vgatherdpd ymm3,[rdx+xmm4*8],ymm5; add rsi,r8; rep movsb
    let hex = "488b06 480fafc0 89442408 8954240c 4c8b442408 c4e2d5921ce2 4c01c6 f3a4";
    for args in [&[hex][..], &[hex, "--all", "--arrows"]] {
        let plain = text(&deps(&[args, &["--ascii"]].concat()).stdout);
        assert!(plain.is_ascii(), "{plain}");
        let longest = plain.lines().max_by_key(|line| line.len()).expect("lines");
        assert!(longest.len() <= 80, "{} columns: {longest}", longest.len());
        let drawn = text(&deps(args).stdout);
        assert!(drawn.contains('►') && !drawn.contains('\u{1b}'), "{drawn}");
        assert_eq!(drawn.lines().count(), plain.lines().count());
    }
}

#[test]
fn what_cannot_be_read_is_told_with_a_remedy_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let junk = write("junk", b"rax=zz\n");
    let binary = write("binary", &[0xff, 0xfe, 0, 1]);
    let elf = write("elf", b"\x7fELF\x02\x01\x01 and no more");
    let samples = format!("snapshot:{junk}");
    let (cut, function, path) = (format!("{elf}:0..4"), format!("{elf}:f"), format!("{elf}:f+1,2"));
    let many = "90".repeat(5000);
    let cases: [(&[&str], &str); 20] = [
        (&[""], "no"),
        (&["480fafc"], "odd number"),
        (&["0x48,zz"], "neither machine code nor a file"),
        (&["06"], "invalid code at 0x0"),
        (&["4801d8 480f"], "invalid code at 0x3"),
        (&[&many], "at most"),
        (&["/nowhere/at/all:main"], "cannot read"),
        (&[&cut], "elf"),
        (&[&function], "elf"),
        (&["--path", &path], "elf"),
        (&["--path", "480fafc0"], "no path of blocks"),
        (&["--asm", "frobnicate rax"], "frobnicate"),
        (&["--asm-file", "/nowhere"], "/nowhere"),
        (&["90", "--registers", "/nowhere"], "/nowhere"),
        (&["90", "--registers", &junk], "line 1"),
        (&["90", "--registers", &binary], "UTF-8"),
        (&["90", "--registers", &samples], "registers"),
        (&["90", "--init", "rax=1z"], "64 bits"),
        (&["90", "--region", "x"], "no region"),
        (&["90", "--seeds", "0"], "1..=1024"),
    ];
    for (args, expected) in cases {
        let output = deps(args);
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {:?}", output.status);
        assert!(said.contains("error:") && said.contains(expected), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
    }
}

/// A reader that goes away is no error, and no panic.
#[test]
fn a_closed_pipe_ends_it_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args(["deps", &"480fafc0".repeat(500)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = text(&child.wait_with_output().unwrap().stderr);
    assert_eq!(said, "");
}

fn interrupts_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|m| m & 2 != 0)
}

#[test]
fn a_batch_has_a_row_for_each_block_and_ends_on_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rows, out, unmodelled) = (file("rows.csv"), file("out.csv"), file("unmodelled.csv"));
    let long = "90".repeat(30_000);
    let content = format!("hex\n4801d8\nzz\n480f\n{long}\nf3a4\n\n0107\n");
    std::fs::write(&rows, content).unwrap();
    let output = deps(&["--batch", &rows, "-o", &out, "--unmodelled", &unmodelled]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(&out).unwrap();
    let status: Vec<&str> =
        written.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(status, ["ok", "rejected", "rejected", "rejected", "ok", "ok"], "{written}");
    assert!(std::fs::read_to_string(&unmodelled).unwrap().contains("rep movsb"));

    // Enough work for minutes.
    let block = "488b07480fafc048890748ffc7".repeat(100);
    std::fs::write(&rows, format!("hex\n{}", format!("{block}\n").repeat(20_000))).unwrap();
    if interrupts_are_ignored() {
        return eprintln!("skipped: SIGINT is ignored here, as a shell has it for background jobs");
    }
    std::fs::remove_file(&out).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tdtool"))
        .args(["deps", "--seeds", "1024", "--batch", &rows, "-o", &out])
        .spawn()
        .unwrap();
    // It has read its input by when it makes the file that it writes.
    while !std::path::Path::new(&out).exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.try_wait().unwrap().is_none(), "it was to be at work");
    let asked = Instant::now();
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert!(!status.success());
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
}
