//! Threads, signals, and programs that do not come to the block.

use super::programs::{CALLER, LOOP, program};
use super::{BOTH, captured, line, name, register, request};
use crate::support::files::Folder;
use crate::support::shown;
use crate::support::tools::gcc;
use crate::support::wait::until;
use probe::capture::{Afterwards, Entry, Limits, Request, visit};
use std::time::{Duration, Instant};

/// Four threads that call in turn, each with arrays of its own.
const THREADS: &str = r#"
#include <pthread.h>
#include <string.h>
static char path[4096];
static void *thread(void *number) {
    long *own = aligned_alloc(4096, 16384);
    long c = (long)number;
    for (long i = 0; i < 1024; i++) { own[i] = 1000 * c + 3 * i; own[1024 + i] = -1 - c; }
    char name[5000];
    snprintf(name, sizeof name, "%s%ld", path, c);
    FILE *out = fopen(name, "w");
    fprintf(out, "%lx %lx %lx\n", (long)own, 10 + c, (long)(own + 1024));
    fclose(out);
    for (;;) sums(own, 10 + c, own + 1024);
}
int main(int count, char **arguments) {
    strcpy(path, arguments[1]);
    pthread_t all[4];
    (void)call;
    for (long c = 0; c < 4; c++) pthread_create(&all[c], 0, thread, (void *)c);
    pthread_join(all[0], 0);
}
"#;

#[test]
fn one_of_several_threads_is_captured_while_the_others_are_stopped() {
    let folder = Folder::new();
    let source = [CALLER, LOOP, THREADS].concat();
    let Some(program) = gcc(folder.path(), &source, &["-O1", "-pthread"], "program") else {
        return;
    };
    let account = folder.file("account");
    for breakpoints in BOTH {
        let request = request(&program, &[name(&program), &account]);
        let request = Request { breakpoints, entry: Entry::Number(300), ..request };
        let Some(snapshot) = captured(&request) else { return };
        let snapshot = snapshot.unwrap();
        assert!((1..=4).contains(&snapshot.other_threads) && snapshot.others_stopped);
        let call = register(&snapshot, "rsi") - 10;
        let told = line(&format!("{account}{call}"), 0);
        let registers = ["rdi", "rsi", "r8"].map(|name| register(&snapshot, name));
        assert_eq!(registers[..], told);
        assert_eq!(snapshot.walk.trips, told[1] - register(&snapshot, "rcx"));
    }
}

/// Counts signals of a timer while it calls, and says how many there were.
const TIMER: &str = r#"
#include <signal.h>
#include <sys/time.h>
static volatile long ticks;
static void tick(int s) { ticks++; }
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    struct itimerval every = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, 0);
    for (long c = 0; c < 30; c++) call(out, c);
    while (ticks < 20) pause();
    fprintf(out, "%lx\n", ticks);
    return 0;
}
"#;

#[test]
fn signals_reach_the_program() {
    let folder = Folder::new();
    let source = [CALLER, LOOP, TIMER].concat();
    let Some(program) = gcc(folder.path(), &source, &["-O1"], "program") else { return };
    let account = folder.file("account");
    for breakpoints in BOTH {
        let request = request(&program, &[name(&program), &account]);
        let entry = Entry::Number(150);
        let request = Request { breakpoints, entry, afterwards: Afterwards::Continue, ..request };
        let Some(snapshot) = captured(&request) else { return };
        assert_eq!(snapshot.unwrap().entry, 150);
        assert!(line(&account, 30)[0] >= 20);
    }
}

#[test]
fn a_block_that_is_not_reached_is_an_error_with_the_number_of_its_entries() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let error = |calls: &str, entry, command: Option<&[&str]>| {
        let own = [name(&program), &account, calls];
        let request = request(&program, command.unwrap_or(&own));
        captured(&Request { entry, ..request }).map(|result| result.unwrap_err())
    };
    let Some(never) = error("0", Entry::Auto, None) else { return };
    // 10 + 11 + 12 entries in three calls.
    let few = error("3", Entry::Number(100), None).unwrap();
    let other = error("3", Entry::Auto, Some(&["true"])).unwrap();
    let absent = error("3", Entry::Auto, Some(&["/nowhere/program"])).unwrap();
    assert_eq!(absent.kind(), tma::error::ErrorKind::CommandNotFound);
    let killed = error("3", Entry::Auto, Some(&["sh", "-c", "kill -9 $$"])).unwrap();
    let said = [never, few, other, killed].map(|one| shown::error(&one, &folder));
    assert_shown!("block_that_is_not_reached", said.join("\n"));
}

#[test]
fn a_command_that_does_not_come_to_the_block_is_given_up() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let waiting = format!("echo $$ > {account}; {0} {account} 0; sleep 100", name(&program));
    let request = request(&program, &["sh", "-c", &waiting]);
    let limits = Limits { first_entry: Duration::from_millis(500), ..request.limits };
    let begin = Instant::now();
    let Some(result) = captured(&Request { limits, ..request }) else { return };
    assert!(result.unwrap_err().cause().unwrap().contains("0.50 s"));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn nothing_is_left_of_a_program_that_is_killed_while_it_is_stopped() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    for breakpoints in BOTH {
        let request = request(&program, &[name(&program), &account, "9"]);
        let request = Request { breakpoints, ..request };
        let mut pid = 0;
        let result = visit(&request, |stopped| {
            pid = running(name(&program)).expect("it is stopped");
            let page = stopped.page(stopped.registers()?.0[7]).expect("its array is mapped");
            assert_eq!(page[8], 3, "the second number of the first call");
            assert!(stopped.mapped().any(|(_, _, path)| path == "[stack]"));
            let killed = nix::sys::signal::Signal::SIGKILL;
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), killed).unwrap();
            until(|| stopped.registers().is_err(), || "it is still there".to_owned());
            stopped.snapshot(&request)
        });
        if pid == 0 {
            return;
        }
        assert!(result.unwrap_err().what().contains("stopped process"));
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

/// A process that executes the file at `path`.
fn running(path: &str) -> Option<i32> {
    let pids = std::fs::read_dir("/proc").unwrap();
    pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with(path))
    })
}

#[test]
fn a_capture_that_is_to_stop_ends_its_program() {
    let folder = Folder::new();
    let main = "#include <unistd.h>\nint main(void) { (void)call; for (;;) pause(); }\n";
    let source = [CALLER, LOOP, main].concat();
    let Some(program) = gcc(folder.path(), &source, &["-O1"], "program") else { return };
    let request = request(&program, &[name(&program)]);
    request.stop.set();
    let Some(error) = captured(&request).and_then(Result::err) else { return };
    // Not after the minute that it would wait for the first entry.
    assert!(error.to_string().contains("interrupted"), "{error}");
}
