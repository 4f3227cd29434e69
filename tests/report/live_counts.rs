//! Entries of blocks of a program that runs already, or that is interrupted.

use super::counts::{counts_of, hottest};
use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::{alone, busy};
use crate::support::run::{ended, program, send, start};
use crate::support::trial::{Trial, assert_holds, claim};
use nix::sys::signal::Signal;

/// Fills memory 400 times a second until SIGTERM, whoever else uses the processor meanwhile, and prints how often it has, a
/// second.
const RATE: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <time.h>
static char space[1 << 21];
static volatile sig_atomic_t over;
static void end(int signal) { over = 1; }
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noinline)) void rest(double begin, long n) {
    while (!over && n > (now() - begin) * 400) nanosleep(&(struct timespec){0, 500000}, 0);
}
__attribute__((noinline)) long fill(double begin) {
    long n = 0;
    for (; !over; n++) {
        char *to = space;
        long count = sizeof space;
        rest(begin, n);
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(n) : "memory");
    }
    return n;
}
int main(void) {
    signal(SIGTERM, end);
    double begin = now();
    long n = fill(begin);
    printf("%f\n", n / (now() - begin));
}
"#;

#[test]
fn entries_of_a_live_process_are_those_of_a_second() {
    let _quiet = alone();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, RATE, &[]) else { return };
    // The window is a part of the program's life, which may have had to catch up in the other.
    assert_holds("tdtool's rate is the program's own", || {
        let running = start(&mut program(&work));
        let report = counts_of(&["-p", &running.id().to_string(), "--duration", "1"]);
        send(&running, Signal::SIGTERM);
        let rate: f64 = ended(running).stdout.trim().parse().expect("its own count");
        let Some(report) = report else { return Trial::Holds };
        let block = hottest(&report, "fill");
        let how = block["entries_how"].as_str().unwrap_or_default();
        let Some(entries) = block["entries"].as_f64() else { return Trial::Fails(how.to_owned()) };
        assert!(how.starts_with("a second"), "{block}");
        let near = (entries / rate - 1.0).abs() < 0.3;
        claim(near, || format!("{entries} by tdtool, {rate} by the program")).into()
    });
}

/// A program that takes some seconds, in one hot loop.
const SLOW: &str = "#include <stdlib.h>
    int main(int c, char **v) {
        volatile unsigned x = c;
        for (long i = 0; i < atol(v[1]); i++) x = x * 3 + 1;
        return x == 7;
    }";

#[test]
fn an_interrupted_counting_run_gives_no_number() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(work) = compiled(&folder, SLOW, &["-O1"]) else { return };
    // The further run ends its parent, tdtool, when there is a file; the first one makes it.
    let once = folder.file("once");
    let script =
        format!("if [ -e {once} ]; then kill -TERM $PPID; fi; touch {once}; exec {work} 300000000");
    let options = ["--counts", "--blocks", "1", "--format", "json"];
    let interrupted = report(&[&options[..], &["--", "sh", "-c", &script]].concat());
    let document = interrupted.json();
    let block = &document["blocks"][0];
    assert!(block["entries"].is_null(), "{block}");
    let how = block["entries_how"].as_str().unwrap_or_default();
    assert!(how.contains("interrupted"), "{block}");
    assert_eq!(interrupted.code(), Some(128 + 15), "{}", interrupted.stderr);
}
