//! Errors that say what was meant: mistyped commands and files, full disks, unreadable
//! configuration.

use crate::support::files::Folder;
use crate::support::run::{command, run, tdtool, tdtool_reading};
use crate::support::shown;
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
    let asked = [&["reprot", "--", "./x"][..], &["-a"]];
    assert_shown!("mistyped_command", shown::each(&asked, &Folder::new()));
}

#[test]
fn what_cannot_be_run_again_is_refused_before_runs_are_announced() {
    let asked =
        [&["report", "-r", "3", "-p", "1"][..], &["report", "-r", "3", "-a", "--duration", "1"]];
    assert_shown!("cannot_be_run_again", shown::each(&asked, &Folder::new()));
}

#[test]
fn a_time_to_measure_is_taken_by_both_of_its_names() {
    for name in ["report", "record", "count"] {
        for option in ["--seconds", "--duration"] {
            // No such process: that is what is wrong, not the option.
            let folder = Folder::new();
            let mut asked = command([name, "-p", "4194305", option, "1"]);
            let output = run(asked.current_dir(folder.path()));
            let left = fs::read_dir(folder.path()).expect("a folder").count();
            assert_eq!(left, 0, "{name} leaves a file");
            assert_ne!(output.code(), Some(2), "{name} {option}: {}", output.stderr);
            assert!(output.stderr.contains("4194305"), "{name} {option}: {}", output.stderr);
        }
    }
}

#[test]
fn what_another_tool_would_take_names_what_to_write_here() {
    let asked = [
        &["stat", "ls"][..],
        &["report", "-e", "cycles", "--", "ls"],
        &["record", "ls"],
        &["record", "ls", "a b"],
        &["report", "--frmat", "json"],
        &["report", "./hot", "1"],
        &["report", "--estimate", "/bin/sh"],
        &["report", "--measure", "/bin/sh"],
        &["report", "--measure"],
        &["blok"],
        &["repot"],
        &["rep", "--", "true"],
        &["nonsense", "--", "true"],
        &["report", "-p", "firefox"],
        &["-p", "firefox"],
        &["count", "-p", "firefox"],
        &["report", "--functions", "a b", "--", "true"],
        &["report", "--functions", "f", "--", "true"],
        &["report", "--blocks", "0x40", "--", "true"],
        // Commands that measure no program.
        &["deps", "zz", "yy"],
        &["tables", "show", "zen4", "--level", "3"],
    ];
    assert_shown!("what_to_write_here", shown::each(&asked, &Folder::new()));
}

#[test]
fn a_program_of_this_folder_is_named_as_a_shell_finds_it() {
    let folder = Folder::new();
    folder.write("work", "#!/bin/sh\n");
    let mut asked = command(["report", "--estimate", "work"]);
    let refused = run(asked.current_dir(folder.path()));
    assert_shown!("program_of_this_folder", shown::outputs(&refused, &folder));
}

/// Options of the counted tree are said to have no effect where nothing is counted, once.
#[test]
fn levels_without_counts_are_a_note() {
    let folder = Folder::new();
    let (session, page) = (folder.file("s.tds"), folder.file("page.html"));
    let ran = tdtool(["report", "--level", "2", "--", "true"]).succeeded().stderr;
    need!(ran.contains("no core PMU"), "this machine has a PMU");
    for asked in [
        &["report", "--level", "2", "--", "true"][..],
        &["report", "--level", "2", "--estimate", "--", "true"],
        &["report", "--level", "2", "--html", &page, "--", "true"],
        &["record", "--level", "2", "-o", &session, "--", "true"],
        &["report", "--level", "2", &session],
    ] {
        let said = tdtool(asked).succeeded().stderr;
        let note = "--level has no effect: no node of the tree was counted";
        assert_eq!(said.matches(note).count(), 1, "{asked:?}: {said}");
    }
    let nodes = tdtool(["report", "--nodes", "Retiring", "--", "true"]).succeeded().stderr;
    assert!(nodes.contains("--nodes"), "{nodes}");
    for asked in [&["report", "--", "true"][..], &["report", "-q", "--level", "2", "--", "true"]] {
        let said = tdtool(asked).succeeded().stderr;
        assert!(!said.contains("has no effect"), "{asked:?}: {said}");
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
fn a_full_disk_is_reported_before_the_command_starts() {
    // /dev/full: ENOSPC on every write (full(4)).
    let folder = Folder::new();
    let ran = folder.file("ran");
    let output = tdtool(["record", "-o", "/dev/full", "--", "touch", &ran]);
    let text = &output.stderr;
    assert_eq!(output.code(), Some(1), "{text}");
    assert_eq!(text.contains("the command was not started"), !Path::new(&ran).exists(), "{text}");
    assert!(!text.contains("readable"), "{text}");
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

#[test]
fn a_config_file_that_is_not_there_is_an_error_of_every_command() {
    let commands = [
        &["doctor"][..],
        &["report", "--", "true"],
        &["keys"],
        &["tables", "list"],
        &["workload", "list"],
        &["count", "--", "true"],
        &["block", "90"],
    ];
    let shown = commands.map(|words| {
        let ran = tdtool(["--config", "/no/such/file"].iter().chain(words));
        shown::outputs(&ran, &Folder::new())
    });
    assert!(shown.iter().all(|one| *one == shown[0]), "{shown:#?}");
    assert_shown!("no_config_file", shown[0]);
}

#[test]
fn families_and_products_name_their_table() {
    // Intel and AMD product pages: Skylake is the 6th generation Core, EPYC 9004 is Genoa, a Zen 4; Milan is EPYC
    // 7003, a Zen 3. Linux calls Skylake servers skylakex.
    for (name, table) in [
        ("skylake", "skl"),
        ("Ice Lake", "icl"),
        ("EPYC9004", "zen4"),
        ("zen", "zen1"),
        ("Genoa", "zen4"),
        ("milan", "zen3"),
        ("skylake-x", "skx"),
        ("granite ridge", "zen5"),
    ] {
        let plan = tdtool(["tables", "plan", name, "--level", "1"]).succeeded().stdout;
        assert!(plan.starts_with(&format!("{table},")), "{name}: {plan}");
    }
    let report = tdtool(["report", "--uarch", "skylake", "--format", "json", "--", "true"]);
    assert_eq!(report.succeeded().json()["uarch"], "skl");
    let asked = [
        &["tables", "plan", "alder lake"][..],
        &["tables", "plan", "zen9"],
        &["report", "--uarch", "Skylake-SP", "--", "true"],
        &["report", "--uarch", "i7-12700K", "--", "true"],
    ];
    assert_shown!("names_of_no_table", shown::each(&asked, &Folder::new()));
}

#[test]
fn what_cannot_be_read_or_written_names_the_file_and_what_to_do() {
    let folder = Folder::new();
    // ELF gABI: class 1 is 32-bit, e_machine 3 is the 80386.
    let mut elf = [b"\x7fELF\x01\x01\x01".as_slice(), &[0; 9], &[2, 0, 3, 0, 1, 0, 0, 0]].concat();
    elf.resize(64, 0);
    let program = folder.write("lat", elf);
    let counts = crate::support::files::zen4_intervals();
    let missing = folder.file("no/such/report");
    let asked = [
        &["report", &program][..],
        &["block", "--list", &program],
        &["block", &program],
        &["report", "--estimate", &counts],
        &["report", "-o", &missing, "--", "true"],
        &["tables", "eval", "zen4", "--counts", &missing],
        &["report", &counts, "--symfs", &missing],
        &["branches", &counts, "--binary", &missing],
    ];
    assert_shown!("cannot_be_read", shown::each(&asked, &folder));
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_command_runs() {
    let folder = Folder::new();
    let (missing, ran) = (folder.file("no/such/file"), folder.file("ran"));
    let asked = [
        &["count", "-o", &missing, "--", "touch", &ran][..],
        &["count", "--hot", "-o", &missing, "--", "touch", &ran],
        &["prefetch", "-o", &missing, "--", "touch", &ran],
        &["prefetch", "--plan", &missing, "--", "touch", &ran],
        &["report", "-o", &missing, "--", "touch", &ran],
        &["report", "--html", &missing, "--", "touch", &ran],
        &["report", "--pprof", &missing, "--", "touch", &ran],
        &["record", "-o", &missing, "--", "touch", &ran],
        &["bench", "-o", &missing, "true", "--", "touch", &ran],
    ];
    assert_shown!("cannot_be_written", shown::each(&asked, &folder));
    assert!(!Path::new(&ran).exists(), "a command ran");
}

#[test]
fn our_own_documents_are_rendered_or_named() {
    let folder = Folder::new();
    let counts = crate::support::files::zen4_intervals();
    let document = tdtool(["report", &counts, "--format", "json"]).succeeded().stdout;
    let file = folder.write("a.json", &document);
    let text = tdtool(["report", &counts]).succeeded().stdout;
    assert_eq!(tdtool(["report", &file]).succeeded().stdout, text);
    assert_eq!(tdtool_reading(["report", "-"], document.as_bytes()).succeeded().stdout, text);
    let again = tdtool(["report", &file, "--format", "json"]).succeeded().stdout;
    assert_eq!(again, document);
    let other = folder.write("c.json", "{\n  \"schema\": \"tdtool.count/1\"\n}\n");
    let newer = folder.write("new.json", "{\"schema\":\"tdtool.report/2\"}");
    let asked = [&["report", &file, "--level", "1"][..], &["report", &other], &["report", &newer]];
    assert_shown!("documents_that_are_not_rendered", shown::each(&asked, &folder));
}

#[test]
fn counts_come_from_standard_input_too_and_damaged_samples_say_so() {
    let counts = fs::read(crate::support::files::zen4_intervals()).expect("a fixture");
    let inputs = [&counts[..], b"PERFILE2\0\0\0\0"];
    let shown =
        inputs.map(|input| shown::outputs(&tdtool_reading(["report", "-"], input), &Folder::new()));
    assert_shown!("recordings_from_standard_input", shown.join("\n"));
}

#[test]
fn a_program_that_has_moved_is_named_with_the_options_that_find_it() {
    let folder = Folder::new();
    let busy = folder.file("busy");
    fs::copy("/bin/sh", &busy).expect("a copy");
    let file = folder.file("s.tds");
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let recorded = tdtool(["record", "-o", &file, "--", &busy, "-c", script]);
    need!(recorded.stderr.contains("samples of"), recorded.stderr);
    fs::remove_file(&busy).expect("removed");
    let report = tdtool(["report", &file]).succeeded().stdout;
    assert!(report.contains("busy") && report.contains("--symfs"), "{report}");
}

#[test]
fn a_locale_without_utf8_gets_ascii() {
    let file = crate::support::files::zen4_intervals();
    for (locale, is_ascii) in [("C", true), ("de_DE.ISO-8859-1", true), ("C.UTF-8", false)] {
        let output = run(command(["report", "--uarch", "zen4", &file]).env("LC_ALL", locale));
        assert_eq!(output.stdout.is_ascii(), is_ascii, "{locale}: {}", output.stdout);
    }
}
