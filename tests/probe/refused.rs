//! Programs that are hard to count, or not to be counted: each says why, and does what it does.

use super::counts::function;
use crate::support::child::Running;
use crate::support::files::{Folder, text};
use crate::support::run::{Ran, TDTOOL, program, run, start, tdtool};
use crate::support::tools::gcc;
use crate::support::wait::until;
use std::path::Path;

/// `part(n)`, n steps; main calls it once, or for ever if there is an argument. `before` may do
/// anything first.
fn source(before: &str) -> String {
    format!(
        r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long part(long n) {{
    long s = 0;
    for (long i = 0; i < n; i++) {{ s += i ^ n; __asm__ volatile("" : "+r"(s)); }}
    return s;
}}
static void before(void) {{ {before} }}
int main(int count, char **arguments) {{
    before();
    do {{ if (part(1000) == 1) return 9; }} while (count > 1);
    puts("done");
    return 5;
}}
"#
    )
}

/// Allows all system calls, by a filter.
const FILTER: &str = "struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog filter = {1, &all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) exit(1);";

/// Leaves nothing free within 2 GiB of its code.
const FULL: &str = "char *own = (char *)((unsigned long)&before & ~0xfffful);
    for (long at = -0x81000000l; at < 0x81000000l; at += labs(at) < 0x100000 ? 0x1000 : 0x10000)
        mmap(own + at, labs(at) < 0x100000 ? 0x1000 : 0x10000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);";

/// Neither code that is written nor data that becomes code (PR_SET_MDWE, Linux 6.3).
const HARDENED: &str = "prctl(65, 1, 0, 0, 0);";

/// Another process traces it.
const TRACED: &str = "pid_t tracer = fork();
    if (tracer) { prctl(PR_SET_PTRACER, tracer, 0, 0, 0); usleep(1000); return; }
    ptrace(PTRACE_SEIZE, getppid(), 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();";

/// Writes a byte of its own function, and leaves the code writable.
const SELF_WRITING: &str = "unsigned char *own = (unsigned char *)&part;
    mprotect((void *)((unsigned long)own & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    own[0] = own[0];";

fn build(folder: &Folder, before: &str, options: &[&str]) -> Option<std::path::PathBuf> {
    let options = [&["-O1", "-include", "signal.h"], options].concat();
    gcc(folder.path(), &source(before), &options, "program")
}

fn count(arguments: &[&str]) -> Ran {
    tdtool([&["count", "--functions", "part", "--format", "json"], arguments].concat())
}

/// The count of each block of `part`.
fn blocks(of: &Ran) -> Vec<u64> {
    let document = of.json();
    let all = document["blocks"].as_array().unwrap();
    all.iter().map(|block| block["count"].as_u64().unwrap()).collect()
}

/// A program that runs for ever, until this is dropped.
pub struct Endless(Running);

impl Endless {
    pub fn start(file: &Path) -> Self {
        let child = Self(start(program(file).arg("for ever")));
        let stat = format!("/proc/{}/stat", child.0.id());
        let ticks = || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            let fields = stat.rsplit_once(')').unwrap().1.to_owned();
            fields.split_whitespace().nth(11).unwrap().parse::<u64>().unwrap()
        };
        until(|| ticks() > 20, || "the program does not run".to_owned());
        child
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

/// What is refused of a live program, and that it still runs.
fn live(folder: &Folder, before: &str) -> Option<Ran> {
    let file = build(folder, before, &[])?;
    let running = Endless::start(&file);
    let ran = count(&["--seconds", "0.05", "-p", &running.pid()]);
    let state = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).unwrap();
    assert!(!state.contains(") Z"), "{state} {ran:?}");
    Some(ran)
}

fn is_possible(ran: &Ran) -> bool {
    let is_refused = ran.stderr.contains("cannot trace");
    if is_refused {
        eprintln!("skipped: {}", ran.stderr);
    }
    !is_refused
}

#[test]
fn live_processes_say_why_they_are_not_counted() {
    let folder = Folder::new();
    for (before, why) in [
        (FILTER, "its system calls are filtered (seccomp)"),
        (FULL, "no free addresses within 2 GiB of its code"),
    ] {
        let Some(ran) = live(&folder, before) else { return };
        if !is_possible(&ran) {
            return;
        }
        let document = ran.json();
        assert_eq!(document["refused"][0]["reason"], why, "{document}");
    }
    let Some(ran) = live(&folder, TRACED) else { return };
    assert!(ran.stderr.contains("traces it"), "{}", ran.stderr);
}

#[test]
fn a_process_that_may_not_write_its_code_is_counted() {
    let folder = Folder::new();
    let Some(ran) = live(&folder, HARDENED) else { return };
    if is_possible(&ran) {
        assert!(!blocks(&ran).is_empty(), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn commands_that_count_nothing_say_why() {
    let folder = Folder::new();
    let Some(file) = build(&folder, "", &[]) else { return };
    let name = text(&file);
    // It filters its own system calls, then executes the program.
    let before = format!("{FILTER} execl(\"{name}\", \"program\", (char *)0); _exit(1);");
    let wrapper = Folder::new();
    let Some(filtered) = build(&wrapper, &before, &[]) else { return };
    let ran = count(&["--module", name, "--", text(&filtered)]);
    if !is_possible(&ran) {
        return;
    }
    assert!(ran.json()["refused"][0]["reason"].as_str().unwrap().contains("seccomp"), "{ran:?}");
    assert_eq!(ran.code(), Some(5));
    // A script; its interpreter could be counted.
    let script = folder.path().join("script");
    std::fs::write(&script, format!("#!/bin/sh\nexec {name}\n")).unwrap();
    run(program("chmod").args(["+x", text(&script)])).succeeded();
    let ran = count(&["--", text(&script)]);
    assert!(ran.stderr.contains("/bin/sh"), "{}", ran.stderr);
    // The program that it executes is counted.
    let ran = count(&["--module", name, "--", text(&script)]);
    assert!(blocks(&ran).contains(&1000), "{ran:?}");
    // A 32-bit program: its header says so (EI_CLASS, ELF gABI).
    let mut data = std::fs::read(&file).unwrap();
    data[4] = 1;
    let short = folder.path().join("short");
    std::fs::write(&short, data).unwrap();
    let ran = count(&["--module", text(&short), "--", name]);
    assert!(ran.stderr.contains("32-bit"), "{}", ran.stderr);
    // Nothing says where its functions are.
    let bare = "int main(void) { return 0; }";
    let options = [
        "-s",
        "-fno-asynchronous-unwind-tables",
        "-nostdlib",
        "-nostartfiles",
        "-static",
        "-Wl,-emain",
    ];
    let Some(bare) = gcc(folder.path(), bare, &options, "bare") else { return };
    let ran = tdtool(["count", "--", text(&bare)]);
    assert!(ran.stderr.contains("symbols"), "{}", ran.stderr);
}

#[test]
fn a_program_that_may_have_written_its_own_code_has_no_counts() {
    let folder = Folder::new();
    let Some(file) = build(&folder, SELF_WRITING, &[]) else { return };
    let ran = count(&["--", text(&file)]);
    if is_possible(&ran) {
        let document = ran.json();
        let refused = document["refused"].to_string();
        assert!(blocks(&ran).is_empty(), "{document}");
        assert!(refused.contains("writable"), "{refused}");
        assert_eq!(ran.code(), Some(5), "{}", ran.stderr);
    }
}

#[test]
fn stripped_and_short_programs_are_counted() {
    let folder = Folder::new();
    for options in [&["-s"][..], &["-s", "-static"]] {
        let Some(file) = build(&folder, "", options) else { return };
        let ran = tdtool(["count", "--format", "json", "--", text(&file)]);
        if !is_possible(&ran) {
            return;
        }
        assert!(
            blocks(&ran).contains(&1000) && ran.code() == Some(5),
            "{options:?} {}",
            ran.stderr
        );
    }
    // Such a program has no other privileges while it is traced.
    let Some(file) = build(&folder, "", &[]) else { return };
    run(program("chmod").args(["u+s", text(&file)])).succeeded();
    let ran = count(&["--", text(&file)]);
    assert!(ran.json()["notes"].to_string().contains("setuid"), "{ran:?}");
    // It ends with its first instructions.
    let at_once = "__asm__(\".globl _start\\n.type _start,@function\\n_start: mov $60,%eax\\n\
        mov $6,%edi\\nsyscall\\n.size _start,.-_start\\n\");";
    let options = ["-nostdlib", "-static"];
    let Some(file) = gcc(folder.path(), at_once, &options, "at_once") else { return };
    let ran = tdtool(["count", "--format", "json", "--", text(&file)]);
    assert_eq!((blocks(&ran), ran.code()), (vec![1], Some(6)), "{}", ran.stderr);
}

#[test]
fn a_program_that_asks_to_be_traced_goes_on() {
    let folder = Folder::new();
    // It is refused, as under any debugger, and goes on.
    let Some(file) = build(&folder, "ptrace(PTRACE_TRACEME, 0, 0, 0);", &[]) else { return };
    let ran = count(&["--", text(&file)]);
    if is_possible(&ran) {
        assert!(blocks(&ran).contains(&1000) && ran.code() == Some(5), "{ran:?}");
    }
}

/// The loader is to write an address into the code of this library.
const RELOCATED: &str = "__asm__(\".text\\n.globl part\\n.type part,@function\\n\
    part: movabs $other,%rax\\nret\\n.size part,.-part\\n\"); long other;";

#[test]
fn code_that_the_loader_writes_is_refused() {
    let folder = Folder::new();
    let options = ["-shared", "-fPIC", "-Wl,-z,notext"];
    let Some(library) = gcc(folder.path(), RELOCATED, &options, "relocated.so") else { return };
    assert!(function(&library, "part").range.start > 0);
    let ran = count(&["--module", text(&library), "--", "true"]);
    if is_possible(&ran) {
        let reason = ran.json()["refused"][0]["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("relocations"), "{reason}");
    }
}

#[test]
fn many_programs_need_no_more_descriptors() {
    let folder = Folder::new();
    let Some(file) = build(&folder, "", &[]) else { return };
    let script = format!(
        "ulimit -n 48; exec {TDTOOL} count --functions part --format json --module {0} -- \
         sh -c 'for i in $(seq 100); do {0} > /dev/null; done'",
        text(&file)
    );
    let ran = run(program("sh").args(["-c", &script]));
    if is_possible(&ran) {
        assert!(blocks(&ran).contains(&100_000), "{ran:?}");
    }
}

#[test]
fn without_permission_to_trace_it_says_how_to_get_it() {
    let folder = Folder::new();
    let Some(file) = build(&folder, "", &[]) else { return };
    // A filter that refuses ptrace(2), number 101, as containers have it.
    let wrapper = Folder::new();
    let filter = format!(
        "struct sock_filter all[] = {{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}}, {{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 101}},
            {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 1}}, {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}}};
        struct sock_fprog filter = {{4, all}};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) exit(1);
        execl(\"{TDTOOL}\", \"tdtool\", \"count\", \"--\", \"{}\", (char *)0);",
        text(&file)
    );
    let Some(wrapped) = build(&wrapper, &filter, &[]) else { return };
    let ran = run(&mut program(&wrapped));
    assert!(ran.stderr.contains("SYS_PTRACE"), "{ran:?}");
}

/// A traced child stops at its exit: whoever waits for it must let it go on.
#[test]
fn a_command_that_cannot_be_started_ends_every_kind_of_run() {
    let folder = Folder::new();
    let Some(counted) = gcc(folder.path(), &source(""), &["-O1"], "counted") else { return };
    let counted = counted.display().to_string();
    let missing = folder.file("no-such-program");
    for run in [&[][..], &["--loads"], &["--branches"], &["--values"]] {
        let of = ["--module", &counted, "--functions", "part", "--", &missing];
        let ran = tdtool([&["count"], run, &of[..]].concat());
        assert_eq!(ran.code(), Some(127), "{run:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&missing), "{run:?}: {}", ran.stderr);
    }
}

const SIGNALS: &str = r#"
#include <signal.h>
#include <stdio.h>
static volatile long handled;
static void handle(int signal) { handled += signal == SIGUSR1; }
int main(void) {
    signal(SIGUSR1, handle);
    for (int i = 0; i < 1000; i++) raise(SIGUSR1);
    printf("%ld\n", handled);
}
"#;

/// Handlers return to glibc's `__restore_rt`, whose entry of the unwind table begins a byte before it.
#[test]
fn handlers_return_where_all_of_the_c_library_is_counted() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), SIGNALS, &["-O1"], "signals") else { return };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(library) = maps.split_whitespace().find(|word| word.contains("/libc.so")) else {
        return;
    };
    let ran = tdtool(["count", "--module", library, "--", text(&program)]);
    assert_eq!((ran.code(), ran.stdout.lines().next()), (Some(0), Some("1000")), "{}", ran.stderr);
}
