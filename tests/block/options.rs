//! Options of a measurement, and what a terminal shows of it.

use super::{block, command, json, sandbox};
use crate::support::pty::on_terminal;
use crate::support::run::{ended, send, start};
use nix::sys::signal::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn each_option_is_accepted_and_refused_out_of_range() {
    let Some(_busy) = sandbox() else { return };
    let taken = [
        &["--passes", "2"][..],
        &["--placements", "1"],
        &["--rounds", "4"],
        &["--retries", "0"],
        &["--copies", "16"],
        &["--align", "13"],
        &["--physical-pages", "4"],
        &["--page-limit", "8"],
        &["--value-sets", "2"],
        &["--no-reseed"],
        &["--no-mapping"],
        &["--single-factor"],
        &["--no-loop"],
        &["--method", "bhive"],
    ];
    for knobs in taken {
        let document = json(&[&["4801d8"], knobs].concat());
        assert!(matches!(document["status"].as_str(), Some("ok" | "unstable")), "{knobs:?}");
    }
    for knobs in
        [["--align", "64"], ["--copies", "1"], ["--placements", "7"], ["--page-limit", "0"]]
    {
        assert_eq!(block([&["90"], &knobs[..]].concat()).code(), Some(2), "{knobs:?}");
    }
    // Two pages are one too many.
    let document = json(&["488b03488b8b00100000", "--page-limit", "1"]);
    assert_eq!(document["status"], "failed");
}

#[test]
fn a_long_measurement_shows_its_progress_on_a_terminal_and_clears_it() {
    let Some(_busy) = sandbox() else { return };
    // imul rax,rbx; add rcx,rax; and four more to remove
    let block = "480fafc34801c14801d64801d74901d04901d1";
    let mut command = command([block, "--what-if", "--budget", "100"]);
    command.env("TERM", "xterm").stdout(Stdio::null());
    let start = Instant::now();
    let (_, shown) = on_terminal(command);
    let took = start.elapsed();
    if took > Duration::from_secs(3) {
        assert!(shown.contains(" passes; "), "{took:?}: {shown:?}");
    }
    assert!(shown.is_empty() || shown.ends_with("\r\x1b[K"), "{shown:?}");
}

#[test]
fn an_interrupt_shows_what_was_measured_until_then() {
    let Some(_busy) = sandbox() else { return };
    // imul rax,rbx; add rcx,rax; and four more to remove
    let block = "480fafc34801c14801d64801d74901d04901d1";
    let child = start(&mut command([block, "--thorough", "--what-if"]));
    std::thread::sleep(Duration::from_millis(300));
    send(&child, Signal::SIGINT);
    let ran = ended(child);
    // It may have ended before.
    if ran.code() != Some(0) {
        assert_eq!(ran.code(), Some(130), "{ran:?}");
        assert!(ran.stderr.contains("interrupted"), "{}", ran.stderr);
        assert!(ran.stdout.contains("imul rax,rbx"), "{}", ran.stdout);
    }
}
