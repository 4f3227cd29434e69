//! Files and names that tdtool does not trust: what it refuses to read, what it never overwrites,
//! and what it never lets through to a terminal.

mod killed;
mod names;
mod outputs;

use crate::support::files::Folder;
use crate::support::pty::Pty;
use crate::support::run::{command, ended, program, run, start, tdtool};
use crate::support::shown;
use crate::support::tools::gcc;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

/// Every kind of reader, with a file in place of `FILE`.
const READERS: [&str; 14] = [
    "report FILE",
    "report --import FILE",
    "diff FILE FILE",
    "FILE",
    "branches FILE",
    "loads FILE",
    "prefetch FILE",
    "block FILE:main",
    "block --asm-file FILE",
    "block --repeat FILE",
    "block --batch FILE -o out.csv",
    "deps FILE:main",
    "deps --batch FILE -o out.csv",
    "tables eval skl --counts FILE",
];

#[test]
fn pipes_devices_and_giants_are_refused_at_once() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let giant = fs::File::create(folder.path().join("giant")).unwrap();
    giant.set_len(100 << 30).unwrap();
    for file in ["pipe", "/dev/zero", "giant"] {
        for reader in READERS {
            let started = Instant::now();
            let arguments = reader.split(' ').map(|word| word.replace("FILE", file));
            let mut reader = command(arguments);
            let output = run(reader.current_dir(folder.path()));
            assert!(matches!(output.code(), Some(1 | 2)), "{reader:?}: {}", output.stderr);
            let is_error = |line: &str| line.starts_with("error:");
            assert!(output.stderr.lines().any(is_error), "{reader:?}: {}", output.stderr);
            // No bound on speed: a reader that waits for the pipe or reads the giant takes forever.
            assert!(started.elapsed() < Duration::from_secs(60), "{reader:?}");
        }
    }
}

#[test]
fn no_input_is_overwritten_by_its_own_report_and_no_link_is_followed() {
    let folder = Folder::new();
    let counts = folder.write("counts.csv", "event,value\ncycles,1000\ninstructions,500\n");
    let before = fs::read(&counts).unwrap();
    let (link, dangling) = (folder.file("link"), folder.file("dangling"));
    symlink(&counts, &link).unwrap();
    symlink(folder.file("elsewhere"), &dangling).unwrap();
    let asked = [
        &["report", &counts, "--uarch", "skl", "--output", &counts][..],
        &["report", &counts, "--uarch", "skl", "--folded", &counts],
        &["report", &counts, "--uarch", "skl", "--output", &link],
        &["report", &counts, "--uarch", "skl", "--folded", &link],
        &["report", &counts, "--uarch", "skl", "--output", &dangling],
        &["report", &counts, "--uarch", "skl", "--folded", &dangling],
    ];
    assert_shown!("outputs_of_a_report_refused", shown::each(&asked, &folder));
    assert_eq!(fs::read(&counts).unwrap(), before);
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn a_report_goes_through_a_pipe_and_leaves_nothing_of_a_command_that_cannot_start() {
    let folder = Folder::new();
    let counts = folder.write("counts.csv", "event,value\ncycles,1000\ninstructions,500\n");
    let pipe = folder.file("pipe");
    nix::unistd::mkfifo(&pipe[..], nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = start(program("cat").arg(&pipe));
    let ran = tdtool(["report", &counts, "--uarch", "skl", "--format", "json", "-o", &pipe]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert!(ended(reader).stdout.contains("tdtool.report/1"));

    let report = folder.file("new.json");
    assert_eq!(tdtool(["report", "-o", &report, "--", "/nonexistent"]).code(), Some(127));
    assert!(!std::path::Path::new(&report).exists());
}

#[test]
fn a_batch_replaces_results_only_when_told_to() {
    let folder = Folder::new();
    let rows = folder.write("in.csv", "4801d8\n");
    let results = folder.write("out.csv", "measured for an hour\n");
    let batch = ["block", "--quick", "--budget", "1", "--batch", &rows, "-o", &results];
    let ran = tdtool(batch);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume") && ran.stderr.contains("--force"), "{}", ran.stderr);
    assert_eq!(folder.read("out.csv"), "measured for an hour\n");
    tdtool(batch.into_iter().chain(["--force"])).succeeded();
    assert_eq!(folder.read("out.csv").lines().count(), 2);
}

#[test]
fn a_file_at_its_size_limit_is_an_error() {
    let folder = Folder::new();
    let (session, report) = (folder.file("s.tds"), folder.file("r.json"));
    let limited = |command: &str| {
        let script = format!("ulimit -f 1; {command}");
        run(program("sh").args(["-c", &script]).env("T", env!("CARGO_BIN_EXE_tdtool")))
    };
    assert_eq!(limited(&format!("$T record -o {session} -- true")).code(), Some(1));
    assert!(fs::metadata(&session).map_or(0, |found| found.len()) <= 1024);
    fs::write(&report, "before").unwrap();
    let counts = folder.write("counts.csv", "event,value\ncycles,1000\ninstructions,500\n");
    let ran = limited(&format!("$T report {counts} --uarch skl --format json -v -o {report}"));
    assert_shown!("report_at_its_size_limit", shown::outputs(&ran, &folder));
    assert_eq!(fs::read_to_string(&report).unwrap(), "before");
    let mut left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let part = left.find(|name| name.to_string_lossy().contains(".tdtool-"));
    assert_eq!(part, None, "no part of a report is left");
    // The command itself is ended by the limit, as without tdtool.
    let big = folder.file("big");
    let ran =
        limited(&format!("$T report --no-code -- sh -c 'exec head -c 9999 /dev/zero >{big}'"));
    assert_eq!(ran.code(), Some(128 + 25), "{}", ran.stderr);
}

/// A program whose function, source file and thread have names that set a terminal's title, colour
/// and forge a line.
const NAMES: &str = "\
.file \"source\x1b]0;T\x07.c\"
.text
.globl main
.type \"f\x1b[2Jg\u{9b}31m\",@function
\"f\x1b[2Jg\u{9b}31m\": 1: imul %rax,%rax
 dec %rdi
 jnz 1b
 ret
.size \"f\x1b[2Jg\u{9b}31m\",.-\"f\x1b[2Jg\u{9b}31m\"
.type main,@function
main: push %rbx
 mov $15,%edi
 lea name(%rip),%rsi
 xor %eax,%eax
 call prctl@PLT
 mov $100000000,%rdi
 call \"f\x1b[2Jg\u{9b}31m\"
 xor %eax,%eax
 pop %rbx
 ret
.size main,.-main
.section .rodata
name: .asciz \"c\\033]0;T\\nQzX\"
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn names_cannot_drive_the_terminal() {
    let folder = Folder::new();
    let assembler = ["-x", "assembler"];
    let Some(program) = gcc(folder.path(), NAMES, &assembler, "names") else { return };
    let program = program.display().to_string();
    let session = folder.file("s.tds");
    tdtool(["record", "-g", "-o", &session, "--", &program]).succeeded();
    let commands: [&[&str]; 9] = [
        &["report", &session],
        &["report", &session, "-v"],
        &["report", &session, "--format", "json"],
        &["report", &session, "--folded", "-"],
        &["report", &session, "--callers", "main"],
        &["report", "--", &program],
        &["block", &program, "--list"],
        &["deps", &format!("{program}:main")],
        &["count", "--module", "names", "--", &program],
    ];
    for arguments in commands {
        let ran = tdtool(arguments);
        for text in [&ran.stdout, &ran.stderr] {
            let bad = text.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
            assert_eq!(bad, None, "{arguments:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("QzX")), "{arguments:?}: {text}");
        }
    }
}

/// Programs of PATH that a profiler might run for symbols, sizes of terminals, colours or what is known of the machine.
const TEMPTING: [&str; 22] = [
    "tput",
    "stty",
    "addr2line",
    "objdump",
    "nm",
    "readelf",
    "c++filt",
    "perf",
    "sh",
    "bash",
    "uname",
    "lscpu",
    "cat",
    "which",
    "file",
    "ldd",
    "gdb",
    "getconf",
    "id",
    "xdg-open",
    "pager",
    "less",
];

/// Only `as` (`--asm`) is run, and the measured command, whatever else lies in PATH.
#[test]
fn no_program_of_path_is_run() {
    let folder = Folder::new();
    let ran = folder.file("ran");
    for name in TEMPTING {
        let path =
            folder.write(&format!("bin/{name}"), format!("#!/bin/sh\necho {name} >> {ran}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.file("bin"));
    let session = folder.file("s.tds");
    let program = env!("CARGO_BIN_EXE_tdtool");
    let work = ["/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"];
    let graph = folder.file("graph.svg");
    for arguments in [
        &[&["record", "-g", "-o", &session, "--"][..], &work].concat()[..],
        &[&["report", "--"][..], &work].concat(),
        &[&["report", "--estimate", "--"][..], &work].concat(),
        &[&["count", "--hot", "--"][..], &work].concat(),
        &["report", &session],
        &["report", &session, "--flamegraph", &graph],
        &["branches", &session],
        &["loads", &session],
        &["diff", &session, &session],
        &["block", "4801d8", "--quick", "--budget", "20"],
        &["block", "--list", program],
        &["deps", "4801d8"],
        &["microbench", "list"],
        &["doctor"],
        &["tables", "list"],
        &["workload", "list"],
        &["man"],
    ] {
        run(command(arguments).env("PATH", &path));
        assert_eq!(fs::read_to_string(&ran).unwrap_or_default(), "", "{arguments:?}");
    }
}

/// The screen's size is asked of the terminal; `tput` is not run for it, from whatever folder it is found in.
#[test]
fn no_program_is_run_for_the_size_of_the_screen() {
    let folder = Folder::new();
    let (tput, ran) = (folder.write("tput", ""), folder.file("ran"));
    fs::write(&tput, format!("#!/bin/sh\necho > {ran}\necho 80\n")).unwrap();
    run(program("chmod").args(["+x", &tput])).succeeded();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let command = ["--", "sh", "-c", "while :; do :; done"];
    let mut screen = Pty::start_uncontrolled(&command, &[("PATH", &path)]);
    screen.wait_for("q quit");
    screen.types("q");
    screen.end();
    assert!(!fs::exists(&ran).unwrap(), "tput was run");
}
