//! Programs that their paths no longer lead to: replaced while they run, or moved to other memory by themselves.

use super::busy::{record, sampling, session};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, command, program, run};
use crate::support::tools::gcc;
use std::fs;

const SPINS: &str = "
    volatile unsigned long sink;
    __attribute__((noinline)) void spinner(void) {
        unsigned long a = 1;
        for (;;) { a = a * 2862933555777941757UL + 3; sink = a; }
    }
    int main(void) { spinner(); return 0; }";

/// The functions of a report, as JSON has them.
fn functions(ran: &Ran) -> Vec<String> {
    let report = ran.json();
    let all = report["functions"].as_array().expect("functions").iter();
    all.map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_program_that_was_replaced_while_it_ran_keeps_its_names() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let place = |name: &str| folder.path().join(name);
    let Some(built) = gcc(folder.path(), SPINS, &["-O2", "-Wl,--build-id"], "prog") else { return };
    fs::create_dir(place("kept")).expect("a folder");
    fs::copy(&built, place("kept/prog")).expect("copied");
    let mut child = program(&built).start_limited().expect("it runs");
    fs::remove_file(&built).expect("removed");
    fs::write(&built, "another file").expect("written");
    let session = session(&folder);
    let pid = child.id().to_string();
    let Ran { status, stderr, .. } = record(&session, &["-p", &pid, "--duration", "0.5"], &[]);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(status.success(), "{stderr}");
    let report = |cache: &str, more: &[&str]| {
        let mut report = command(["report", text(&session), "--format", "json"]);
        run(report.args(more).env("XDG_CACHE_HOME", cache))
    };
    // A copy is kept by build-id; without it the very file stands for it.
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    for ran in [report(cache, &[]), report("/none", &["--binary", text(&place("kept/prog"))])] {
        assert!(functions(&ran).contains(&"spinner".to_owned()), "{}", ran.stdout);
    }
    let bare = report("/none", &[]);
    assert!(!functions(&bare).contains(&"spinner".to_owned()), "{}", bare.stdout);
}

/// As hugify, iodlr, Chrome and node do with huge pages.
const MOVED: &str = r#"
    #define _GNU_SOURCE
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    volatile unsigned long sink;
    __attribute__((noinline, section("hot"))) void hotfn(unsigned long n) {
        unsigned long a = 1;
        for (unsigned long i = 0; i < n; i++) a = a * 2862933555777941757UL + 3;
        sink = a;
    }
    __asm__(".pushsection hot,\"ax\",@progbits\n.p2align 12\n.popsection");
    int main(void) {
        uintptr_t start = (uintptr_t)hotfn & ~4095UL;
        char *copy = malloc(4096);
        memcpy(copy, (void *)start, 4096);
        void *moved = mmap((void *)start, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (moved == MAP_FAILED) return 0;
        memcpy(moved, copy, 4096);
        hotfn(300000000UL);
        return 0;
    }"#;

#[test]
fn code_that_was_moved_to_other_memory_has_the_functions_of_its_file() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let Some(built) = gcc(folder.path(), MOVED, &["-O2"], "moved") else { return };
    let ran = run(&mut command(["report", "--format", "json", "--", text(&built)]));
    assert!(functions(&ran).contains(&"hotfn".to_owned()), "{}", ran.stdout);
    let notes = ran.json()["sampled"]["notes"].to_string();
    assert!(notes.contains("moved"), "{notes}");
}
