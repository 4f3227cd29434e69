//! Options of a measurement, and what a terminal shows of it.

use super::{block, command, json, sandbox};
use crate::support::child::Limited as _;
use crate::support::pty::{on_terminal, terminal};
use crate::support::run::{ended, send};
use nix::sys::signal::Signal;
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// imul rax,rbx; add rcx,rax; and four more to remove.
const SIX: &str = "480fafc34801c14801d64801d74901d04901d1";

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
    let mut command = command([SIX, "--what-if", "--budget", "100"]);
    command.env("TERM", "xterm").stdout(Stdio::null());
    let start = Instant::now();
    let (_, shown) = on_terminal(command);
    let took = start.elapsed();
    if took > Duration::from_secs(3) {
        assert!(shown.contains(" passes; "), "{took:?}: {shown:?}");
    }
    assert!(shown.is_empty() || shown.ends_with("\r\x1b[K"), "{shown:?}");
}

/// Minutes of passes: the signal comes long before their end.
#[test]
fn an_interrupt_shows_what_was_measured_until_then() {
    let Some(_busy) = sandbox() else { return };
    let long = ["--passes", "100", "--rounds", "254", "--placements", "6", "--what-if"];
    let (mut screen, slave) = terminal();
    let mut command = command([&[SIX], &long[..]].concat());
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(slave);
    let child = command.start_limited().expect("it starts");
    // This process's copy of the terminal goes with it.
    drop(command);
    let mut shown = String::new();
    let has_passes =
        |shown: &str| shown.match_indices(" passes; ").any(|(at, _)| !shown[..at].ends_with(" 0"));
    while !has_passes(&shown) {
        let mut bytes = [0; 4096];
        let read = screen.read(&mut bytes).unwrap_or_else(|e| panic!("{e}: {shown:?}"));
        shown += &String::from_utf8_lossy(&bytes[..read]);
    }
    send(&child, Signal::SIGINT);
    let ran = ended(child);
    // Reading a terminal whose other side is closed is an error, not an end.
    let mut rest = Vec::new();
    let _ = screen.read_to_end(&mut rest);
    let said = String::from_utf8_lossy(&rest);
    assert_eq!(ran.code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert!(ran.stdout.contains("imul rax,rbx"), "{}", ran.stdout);
}
