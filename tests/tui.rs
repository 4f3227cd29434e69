//! The interactive drill-down in a real terminal.

mod pty_support;

use nix::sys::signal::Signal;
use pty_support::Pty;
use std::path::Path;
use std::process::Command;

/// Two one-second intervals of real Zen 4 counts (source in zen4-two-blocks.csv beside it); perf and
/// the vendor's table make it memory bound.
fn zen4() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/fixtures/import/zen4-two-intervals.csv").display().to_string()
}

/// The footer is drawn last.
const DRAWN: &str = "q quit";

#[test]
fn a_file_is_opened_walked_and_left() {
    let mut pty = Pty::start(&[&zen4()], &[]);
    pty.wait_for("Backend Bound");
    pty.wait_for(DRAWN);
    pty.types("H");
    pty.wait_for("(backend_bound_memory), lev");
    pty.types("\r");
    pty.wait_for("counts and no samples");
    pty.types("\x1b");
    pty.wait_for("(backend_bound_memory), lev");
    pty.types("?");
    pty.wait_for("Keys of the tree");
    pty.types("jx");
    pty.wait_for("(backend_bound_memory), lev");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}

#[test]
fn the_terminal_is_given_back_on_signals() {
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129), (Signal::SIGINT, 130)] {
        let mut pty = Pty::start(&[&zen4()], &[]);
        pty.wait_for(DRAWN);
        assert!(pty.look(vt100::Screen::alternate_screen));
        pty.signal(signal);
        assert_eq!(pty.end().code(), Some(status), "{signal}");
        pty.assert_restored();
    }
}

#[test]
fn a_measured_command_is_ended_with_us_and_writes_nothing_on_the_screen() {
    for end in ["key", "signal"] {
        let script = "echo scribbled; echo scribbled >&2; sleep 61.5";
        let mut pty = Pty::start(&["--", "sh", "-c", script], &[]);
        pty.wait_for("interval 1");
        assert!(!pty.text().lines().skip(1).any(|l| l.contains("scribbled")), "{}", pty.text());
        let children = format!("/proc/{0}/task/{0}/children", pty.pid());
        let before = std::fs::read_to_string(&children).unwrap_or_default();
        if end == "key" {
            pty.types("q");
            assert_eq!(pty.end().code(), Some(0));
        } else {
            pty.signal(Signal::SIGTERM);
            assert_eq!(pty.end().code(), Some(143));
        }
        pty.assert_restored();
        for pid in before.split_whitespace() {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(!state.contains("(sh)"), "the command still runs: {state}");
        }
    }
}

#[test]
fn the_commands_status_is_ours_when_it_has_ended() {
    let mut pty = Pty::start(&["--", "sh", "-c", "exit 7"], &[]);
    pty.wait_until("end", |s| !s.contents().contains("measuring") && s.contents().contains("wall"));
    pty.types("q");
    assert_eq!(pty.end().code(), Some(7));
    let mut pty = Pty::start(&["--", "./no-such-program"], &[]);
    pty.wait_for("cannot start ./no-such-program");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(127));
}

#[test]
fn a_block_is_measured_on_the_screen() {
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("skipped: blocks are measured on x86-64 only");
        return;
    }
    let mut pty = Pty::start(&["block", "--tui", "4801d8480fafc3"], &[]);
    pty.wait_for("imul rax,rbx");
    // Whatever it came to, unstable on a busy machine included, its forms stand below.
    pty.wait_for("forms, cycles per iteration");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}

#[test]
fn without_colours_the_selected_row_still_stands_out() {
    fn cells(screen: &vt100::Screen) -> Vec<&vt100::Cell> {
        let places = (0..30).flat_map(|y| (0..100).map(move |x| (y, x)));
        places.filter_map(|(y, x)| screen.cell(y, x)).collect()
    }
    let pty = Pty::start(&[&zen4()], &[("NO_COLOR", "1")]);
    pty.wait_for("Backend Bound");
    pty.wait_until("a reversed row", |screen| cells(screen).iter().any(|c| c.inverse()));
    pty.look(|screen| {
        assert!(cells(screen).iter().all(|c| c.fgcolor() == vt100::Color::Default));
    });
}

#[test]
fn where_there_is_no_terminal_it_is_the_report() {
    let run = |arguments: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_tdtool")).args(arguments).output();
        out.expect("tdtool starts")
    };
    let (file, report) = (run(&[&zen4()]), run(&["report", &zen4()]));
    assert!(file.status.success());
    assert_eq!(file.stdout, report.stdout);
    assert_eq!(run(&["--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(run(&[]).status.code(), Some(2), "nothing to report on is wrong usage");
}

#[test]
fn docs_keys_is_what_the_program_says() {
    let out = Command::new(env!("CARGO_BIN_EXE_tdtool")).arg("keys").output().expect("starts");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    let written = std::fs::read_to_string(path).expect("docs/keys.md");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(written == said, "docs/keys.md is old: `tdtool keys > docs/keys.md` renews it");
}

#[test]
fn a_file_that_is_no_recording_is_an_error_and_not_an_empty_screen() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hello\n").expect("written");
    let mut pty = Pty::start(&[&file.path().display().to_string()], &[]);
    pty.wait_for("error:");
    assert_eq!(pty.end().code(), Some(1));
    pty.assert_restored();
    assert!(pty.text().contains("no recorded counts found"), "{}", pty.text());
}

#[test]
fn a_config_file_changes_keys_and_a_bad_one_is_told_before_the_screen_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("tdtool/config.toml");
    std::fs::create_dir(folder.path().join("tdtool")).expect("made");
    let home = folder.path().display().to_string();
    let environment = [("XDG_CONFIG_HOME", home.as_str())];
    std::fs::write(&config, "ascii = true\n[keys]\nquit = \"x\"\n").expect("written");
    let mut pty = Pty::start(&[&zen4()], &environment);
    pty.wait_for("x quit");
    assert!(pty.text().is_ascii(), "{}", pty.text());
    pty.types("x");
    assert_eq!(pty.end().code(), Some(0));
    std::fs::write(&config, "[keys]\nquit = \"j\"\n").expect("written");
    let mut pty = Pty::start(&[&zen4()], &environment);
    pty.wait_for("the key j means two things");
    assert_eq!(pty.end().code(), Some(2));
    let mut pty = Pty::start(&["--config", "/no/such/file", &zen4()], &[]);
    pty.wait_for("cannot read the config file");
    assert_eq!(pty.end().code(), Some(2));
}

#[test]
fn a_screen_is_saved_and_no_file_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tree.txt");
    let name = path.display().to_string();
    let mut pty = Pty::start(&[&zen4()], &[]);
    pty.wait_for("Backend Bound");
    // Ctrl-U empties the prompt.
    pty.types(&format!("P\x15{name}\r"));
    pty.wait_for("saved in");
    let text = std::fs::read_to_string(&path).expect("saved");
    assert!(text.contains("Backend Bound"), "{text}");
    pty.types(&format!("P\x15{name}\r"));
    pty.wait_for("there is such a file");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), text);
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn it_stops_and_comes_back_as_other_programs_do() {
    let mut pty = Pty::start(&[&zen4()], &[]);
    pty.wait_for(DRAWN);
    pty.signal(Signal::SIGSTOP);
    pty.signal(Signal::SIGCONT);
    pty.types("?");
    pty.wait_for("Keys of the tree");
    pty.types("qq");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}
