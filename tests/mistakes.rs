//! Errors that say what was meant: mistyped commands and files, full disks, unreadable
//! configuration.

use crate::support::files::Folder;
use crate::support::run::{command, run, tdtool};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A session of a program that is busy for a while; `None`, with a message, where nothing is
/// sampled.
fn session(folder: &Folder) -> Option<String> {
    let file = folder.file("s.tds");
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let recorded = tdtool(["record", "-g", "-o", &file, "--", "sh", "-c", busy]);
    let text = &recorded.stderr;
    let sampled = text.contains("samples of") && !text.contains("note:  0 samples");
    if !recorded.status.success() || !sampled {
        eprintln!("skipped: {text}");
        return None;
    }
    Some(file)
}

#[test]
fn a_mistyped_command_names_the_right_one() {
    let output = tdtool(["reprot", "--", "./x"]);
    assert_eq!(output.code(), Some(2));
    assert!(output.stderr.contains("tdtool report"), "{}", output.stderr);
    let output = tdtool(["-a"]);
    assert_eq!(output.code(), Some(2));
    assert!(output.stderr.contains("tdtool report -a"), "{}", output.stderr);
}

#[test]
fn what_another_tool_would_take_names_what_to_write_here() {
    for (args, expected) in [
        (&["stat", "ls"][..], "tdtool report -- stat ls"),
        (&["-p", "1"], "tdtool report -p 1"),
        (&["-p1", "--level", "2"], "tdtool report -p1 --level 2"),
        (&["report", "-e", "cycles", "--", "ls"], "`-e` is an option of `tdtool record`"),
        (&["record", "ls"], "tdtool record -- ls"),
        (&["report", "--frmat", "json"], "did you mean `--format`?"),
        (&["report", "./hot", "1"], "tdtool report -- ./hot 1"),
        (&["blok"], "did you mean `tdtool block`?"),
        (&["record", "ls", "a b"], "tdtool record -- ls 'a b'"),
        // Commands that measure no program.
        (&["deps", "zz", "yy"], "unexpected argument 'yy'"),
        (&["tables", "show", "zen4", "--level", "3"], "unexpected argument '--level'"),
    ] {
        let output = tdtool(args);
        assert_eq!(output.code(), Some(2), "{args:?}");
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn arguments_that_are_no_text_are_an_error_like_others() {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = std::ffi::OsStr::from_bytes(b"\xff");
    for args in
        [["report".as_ref(), "--bogus".as_ref(), bytes], ["record".as_ref(), "ls".as_ref(), bytes]]
    {
        let output = tdtool(args);
        assert_eq!(output.code(), Some(2), "{}", output.stderr);
        assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    }
}

#[test]
fn folded_stacks_go_to_standard_output() {
    let folder = Folder::new();
    let Some(file) = session(&folder) else { return };
    let mut report = command(["report", &file, "--folded", "-"]);
    let text = run(report.current_dir(folder.path())).stdout;
    let is_folded = |l: &str| l.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok());
    assert!(!text.is_empty() && text.lines().all(is_folded), "{text}");
    assert!(!folder.path().join("-").exists());
}

#[test]
fn threads_that_are_not_there_are_refused_with_those_that_are() {
    let folder = Folder::new();
    let Some(file) = session(&folder) else { return };
    for thread in ["nosuch", "4000000"] {
        let output = tdtool(["report", &file, "--thread", thread]);
        assert_eq!(output.code(), Some(1), "{}", output.stderr);
        assert!(output.stderr.contains("sh"), "{}", output.stderr);
    }
    assert!(tdtool(["report", &file, "--thread", "sh"]).status.success());
}

#[test]
fn diff_of_sessions_says_how_to_make_documents() {
    let folder = Folder::new();
    let file = folder.file("s.tds");
    assert!(tdtool(["record", "-o", &file, "--", "true"]).status.success());
    let output = tdtool(["diff", &file, &file]);
    let text = &output.stderr;
    assert_eq!(output.code(), Some(2), "{text}");
    assert!(text.contains(&format!("tdtool report {file} --format json")), "{text}");
}

#[test]
fn a_full_disk_is_reported_before_the_command_starts() {
    // /dev/full: ENOSPC on every write (full(4)).
    let folder = Folder::new();
    let ran = folder.file("ran");
    let output = tdtool(["record", "-o", "/dev/full", "--", "touch", &ran]);
    let text = &output.stderr;
    assert_eq!(output.code(), Some(1), "{text}");
    assert_eq!(text.contains("the command was not started"), !Path::new(&ran).exists(), "{text}");
    assert!(!text.contains("kept and readable"), "{text}");
}

#[test]
fn a_config_file_out_of_reach_is_a_note() {
    let home = Folder::new();
    let config = home.write(".config/tdtool/config.toml", "ascii = true");
    let folder = home.path().join(".config/tdtool");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).expect("set");
    let readable = fs::read(config).is_ok();
    let mut measured = command(["block", "--tui", "--budget", "50", "90"]);
    let output = run(measured.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("set");
    need!(!readable, "this user may read everything");
    assert!(!output.stderr.contains("error: cannot read the config"), "{}", output.stderr);
}
