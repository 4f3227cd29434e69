//! `tdtool pgo` of a long run and of a process: a part is counted, in the right proportions, and the program is unchanged.

use crate::pgo::{lines, symbols};
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, ended, program, send, start, tdtool};
use crate::support::tools::gcc;
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::Stdio;

/// `rare` is called in every eighth iteration; without an argument for ever.
const EIGHTH: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long often(long x) { __asm__ volatile("" : "+r"(x)); return x * 3 + 1; }
__attribute__((noinline)) long rare(long x) { __asm__ volatile("" : "+r"(x)); return x ^ 5; }
int main(int count, char **arguments) {
    long last = count > 1 ? atol(arguments[1]) : -1, x = 0;
    for (long i = 0; i != last; i++) {
        x = often(x);
        if (i % 8 == 0) x = rare(x);
    }
    printf("%ld\n", x);
    return 4;
}
"#;

/// The calls of both functions, eight to one; `None`, with a message, where nothing can be traced.
fn check_eighth(ran: &Ran, profile: &Path, program: &Path) -> Option<()> {
    if !profile.exists() {
        eprintln!("skipped: {}", ran.stderr);
        return None;
    }
    let profile = std::fs::read_to_string(profile).unwrap();
    let (lines, symbols) = (lines(&profile), symbols(program));
    let calls = |name: &str| -> u64 {
        let into = lines.iter().filter(|line| line.is_branch && line.to == symbols[name].0);
        into.map(|line| line.count).sum()
    };
    let [often, rare] = ["often", "rare"].map(calls);
    assert!(rare > 1000 && often.abs_diff(8 * rare) < often / 50, "{often} {rare}");
    Some(())
}

#[test]
fn windows_of_a_run_have_its_proportions() {
    let _busy = busy();
    for options in [&["-O2"][..], &["-O2", "-no-pie"]] {
        let folder = Folder::new();
        let Some(file) = gcc(folder.path(), EIGHTH, options, "program") else { return };
        let (profile, times) = (folder.file("profile"), "700000000");
        let ran = tdtool(["pgo", "--windows", "-o", &profile, "--", text(&file), times]);
        let Some(()) = check_eighth(&ran, profile.as_ref(), &file) else { return };
        assert_eq!(ran.code(), Some(4), "{}", ran.stderr);
        let plain = ended(start(program(text(&file)).arg(times)));
        assert_eq!(ran.stdout, plain.stdout);
    }
}

#[test]
fn a_run_that_is_over_before_a_window_is_refused() {
    let folder = Folder::new();
    let Some(file) = gcc(folder.path(), EIGHTH, &["-O2"], "program") else { return };
    let profile = folder.file("profile");
    let ran = tdtool(["pgo", "--windows", "-o", &profile, "--", text(&file), "10"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(!Path::new(&profile).exists());
}

#[test]
fn a_process_has_a_profile_and_goes_on() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(file) = gcc(folder.path(), EIGHTH, &["-O2"], "program") else { return };
    let running = start(program(text(&file)).stdout(Stdio::null()));
    let (profile, pid) = (folder.file("profile"), running.id().to_string());
    let ran = tdtool(["pgo", "-p", &pid, "--seconds", "0.3", "-o", &profile]);
    let is_checked = check_eighth(&ran, profile.as_ref(), &file).is_some();
    let state = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    send(&running, Signal::SIGKILL);
    let end = ended(running);
    if is_checked {
        let state = state.lines().find_map(|line| line.strip_prefix("State:\t"));
        assert_eq!((ran.code(), state), (Some(0), Some("R (running)")), "{}", ran.stderr);
        assert_eq!(end.code(), None, "a signal ended it");
    }
}
