//! Counts of programs whose blocks are left in the middle: by a signal of the processor, because another
//! thread executes a program, or because they are killed.

use super::counts::{counted, function};
use crate::support::child::Running;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{command, ended, send, start};
use crate::support::tools::gcc;
use crate::support::wait::until;
use nix::sys::signal::Signal;
use probe::count::Uncounted;

/// A division of which every second raises SIGFPE, whose handler does not come back; the addition after it has
/// room for a probe, the instructions before have none.
const FAULTS: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf after;
static void handler(int s) { (void)s; siglongjmp(after, 1); }
__attribute__((noipa)) int divide(int a, int b) {
    int r = a / b;
    __asm__ volatile("" : "+r"(r));
    return r + 0x12345678;
}
__attribute__((noipa)) int plain(int a) { return a + 0x12345678; }
int main(void) {
    volatile int sum = 0;
    signal(SIGFPE, handler);
    for (volatile int i = 0; i < 100; i++) {
        sum += plain(i);
        if (!sigsetjmp(after, 1)) sum += divide(i, i % 2);
    }
    return 0;
}
"#;

#[test]
fn a_block_that_a_signal_leaves_before_its_probe_has_no_count() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), FAULTS, &["-O2"], "program") else { return };
    let wanted = ["divide", "plain"].map(|name| function(&program, name));
    let Some(found) = counted(&[super::name(&program)], &wanted) else { return };
    let [divide, plain] = [0, 1].map(|n| found.functions[n].as_ref().unwrap());
    // By the source, 100 entries each: never 50 in silence.
    match &divide.blocks[0].count {
        Ok(count) => assert_eq!(*count, 100),
        Err(why) => assert!(
            matches!(why, Uncounted::Signalled { signal: Some(Signal::SIGFPE), times: 50, .. }),
            "{why}"
        ),
    }
    assert_eq!(plain.blocks[0].count, Ok(100));
}

/// The second thread executes the program anew, two times; its first one waits for it meanwhile.
const EXECUTES: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noipa)) long hit(long x) { return x * 3 + 0x1234567; }
static void *thread(void *rest) {
    char next[9];
    for (int i = 0; i < 1000; i++) hit(i);
    snprintf(next, sizeof next, "%d", atoi(rest) - 1);
    execl("/proc/self/exe", "again", next, (char *)0);
    return 0;
}
int main(int count, char **arguments) {
    pthread_t other;
    if (count < 2 || atoi(arguments[1]) <= 0) return 7;
    pthread_create(&other, 0, thread, arguments[1]);
    pthread_join(other, 0);
    return 1;
}
"#;

#[test]
fn a_program_that_another_thread_executes_is_followed() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-O2", "-pthread"];
    let Some(program) = gcc(folder.path(), EXECUTES, &options, "program") else { return };
    let wanted = [function(&program, "hit")];
    let Some(found) = counted(&[super::name(&program), "2"], &wanted) else { return };
    assert_eq!(found.exit, Some(pmu::Exit::Status(7)));
    assert_eq!(found.functions[0].as_ref().unwrap().blocks[0].count, Ok(2000));
}

/// Makes a file when it starts and another at SIGTERM, and runs for ever.
const STUBBORN: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static char **files;
static void made(const char *file) { close(open(file, O_CREAT | O_WRONLY, 0600)); }
static void handler(int s) { (void)s; made(files[2]); }
int main(int count, char **arguments) {
    files = arguments;
    signal(SIGTERM, handler);
    made(files[1]);
    for (volatile long i = 0;; i++) {}
}
"#;

#[test]
fn the_second_signal_ends_a_command_that_ignores_the_first() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), STUBBORN, &["-O1"], "program") else { return };
    let [started, signalled] = ["started", "signalled"].map(|name| folder.path().join(name));
    let arguments = ["count", "--functions", "main", "--format", "json", "--"];
    let all = arguments.into_iter().chain([text(&program), text(&started), text(&signalled)]);
    let mut child = start(&mut command(all));
    let comes = |child: &mut Running, file: &std::path::Path| {
        until(
            || file.exists() || child.try_wait().unwrap().is_some(),
            || format!("{} does not come", file.display()),
        );
        file.exists()
    };
    // Each once, as signals of one number that wait are one.
    if comes(&mut child, &started) {
        send(&child, Signal::SIGTERM);
    }
    if comes(&mut child, &signalled) {
        send(&child, Signal::SIGTERM);
    }
    let ran = ended(child);
    if ran.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", ran.stderr);
        return;
    }
    assert_eq!(ran.code(), Some(143), "{}", ran.stderr);
    let notes = ran.json()["notes"].to_string();
    assert!(notes.contains("SIGKILL"), "{notes}");
}
