//! Files that are written: whose they are, and what is left when something fails.

use crate::profile::made;
use crate::support::files::{Folder, text};
use crate::support::run::{TDTOOL, program, run, tdtool};
use crate::support::shown;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

fn mode(path: &str) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o777
}

#[test]
fn sessions_are_their_users_alone_and_other_files_obey_the_umask() {
    let folder = Folder::new();
    let (session, report) = (folder.file("s.tds"), folder.file("r.json"));
    let script = format!(
        "umask 027; {TDTOOL} record -o {session} -- true; \
         {TDTOOL} report {session} --format json -o {report}"
    );
    run(program("sh").args(["-c", &script])).succeeded();
    assert_eq!((mode(&session), mode(&report)), (0o600, 0o640));
}

#[test]
fn a_session_replaces_no_program_and_follows_no_link() {
    let folder = Folder::new();
    let own = folder.write("program", "#!/bin/sh\n");
    run(program("chmod").args(["+x", &own])).succeeded();
    let (link, dangling) = (folder.file("link"), folder.file("dangling"));
    symlink(&own, &link).unwrap();
    symlink(folder.file("elsewhere"), &dangling).unwrap();
    let asked = [
        &["record", "-o", &own, "--", &own][..],
        &["record", "-o", &link, "--", &own],
        &["record", "-o", &dangling, "--", &own],
    ];
    assert_shown!("outputs_of_a_recording_refused", shown::each(&asked, &folder));
    assert_eq!(folder.read("program"), "#!/bin/sh\n");
    assert!(!Path::new(&folder.file("elsewhere")).exists());
    assert!(!Path::new(&folder.file("link.old")).exists());

    // What the shell opened is a link, too.
    let through = folder.file("through.tds");
    let script = format!("{TDTOOL} record -o /dev/stdout -- true > {through}");
    run(program("sh").args(["-c", &script])).succeeded();
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
    tdtool(["report", &through]).succeeded();
}

#[test]
fn no_report_replaces_a_program() {
    let folder = Folder::new();
    let (own, session) = (folder.file("program"), folder.file("s.tds"));
    fs::copy("/bin/true", &own).unwrap();
    let before = fs::read(&own).unwrap();
    tdtool(["record", "-o", &session, "--", &own]).succeeded();
    for arguments in [
        vec!["count", "-o", &own, "--", &own],
        vec!["bench", "-o", &own, "--", &own, "--", &own],
        vec!["report", "-o", &own, "--", &own],
        vec!["report", &session, "-o", &own],
        vec!["report", &session, "--html", &own],
        vec!["block", "--batch", &session, "--force", "-o", &own],
    ] {
        let ran = tdtool(&arguments);
        assert_eq!(ran.code(), Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(fs::read(&own).unwrap() == before, "{arguments:?}");
    }
}

#[test]
fn a_session_that_cannot_be_written_leaves_the_commands_output_alone() {
    let folder = Folder::new();
    let session = folder.file("s.tds");
    // Room for its beginning, which has the processor's table, and little more; in units of 1,024 bytes.
    let short = folder.file("short.tds");
    tdtool(["record", "-o", &short, "--", "true"]).succeeded();
    let room = fs::metadata(&short).expect("a session").len() / 1024 + 8;
    // The kernel samples as seldom as it has come to believe it must (perf_event_max_sample_rate): then for longer.
    for rounds in [2_000_000, 10_000_000, 50_000_000] {
        let _ = fs::remove_file(&session);
        let script = format!(
            "ulimit -f {room}; {TDTOOL} record -F 5000 -o {session} -- \
             sh -c 'i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done; echo DATA'"
        );
        let ran = run(program("bash").args(["-c", &script]));
        assert_eq!(ran.stdout, "DATA\n", "{}", ran.stderr);
        if ran.code() == Some(0) && fs::metadata(&session).unwrap().len() < room << 10 {
            continue;
        }
        assert!(ran.stderr.contains("error:"), "{}", ran.stderr);
        assert!(ran.stderr.contains("Software counts"), "{}", ran.stderr);
        return;
    }
    panic!("its samples always had room");
}

#[test]
fn a_command_that_cannot_start_leaves_no_session() {
    let folder = Folder::new();
    let session = folder.file("s.tds");
    assert_eq!(tdtool(["record", "-o", &session, "--", "/nonexistent"]).code(), Some(127));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_blocks_result_is_printed_and_no_file_is_promised() {
    let folder = Folder::new();
    let output = folder.file("out");
    let asked = [&["block", "4801d8", "-o", &output][..], &["deps", "4801d8", "-o", &output]];
    assert_shown!("output_of_one_block_refused", shown::each(&asked, &folder));
}

#[test]
fn a_batch_of_blocks_replaces_no_input() {
    let folder = Folder::new();
    let rows = folder.write("rows.csv", "hex\n4801d8\n");
    fs::hard_link(&rows, folder.file("same")).unwrap();
    for output in [rows.clone(), folder.file("same")] {
        let ran = tdtool(["block", "--batch", &rows, "--force", "-o", &output]);
        assert_eq!(ran.code(), Some(2), "{output}: {}", ran.stderr);
    }
    symlink(folder.file("elsewhere"), folder.file("dangling")).unwrap();
    for output in [rows.clone(), folder.file("dangling")] {
        let ran = tdtool(["deps", "--batch", &rows, "-o", &output]);
        assert_eq!(ran.code(), Some(2), "{output}: {}", ran.stderr);
    }
    assert_eq!(folder.read("rows.csv"), "hex\n4801d8\n");
    assert!(!folder.path().join("elsewhere").exists());
}

/// The samples of a report lie in a temporary file, which has no name: nothing is left, however tdtool ends.
#[test]
fn nothing_temporary_is_left_after_a_kill() {
    let folder = Folder::new();
    for signal in ["KILL", "TERM"] {
        let script = format!("kill -{signal} $PPID; sleep 0");
        let temporary = folder.path().join(signal);
        fs::create_dir(&temporary).unwrap();
        run(program(TDTOOL).args(["report", "--", "sh", "-c", &script]).env("TMPDIR", &temporary));
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "after SIG{signal}");
    }
}

#[test]
fn damage_is_reported_in_every_mode() {
    let folder = Folder::new();
    let whole = made::file("x86_64", &made::records());
    let damaged = folder.write("cut.data", &whole[..640]);
    let (file, graph) = (folder.file("file"), folder.file("graph.svg"));
    let modes: [&[&str]; 23] = [
        &["report"],
        &["report", "-v"],
        &["report", "--format", "csv"],
        &["report", "--format", "json"],
        &["report", "--output", &file],
        &["report", "--format", "csv", "--output", &file],
        &["report", "--folded", "-"],
        &["report", "--folded", &file],
        &["report", "--flamegraph", &graph],
        &["report", "--interval", "100"],
        &["report", "--pprof", &file],
        &["report", "--callgrind", &file],
        &["report", "--firefox", &file],
        &["report", "--html", &file],
        &["branches"],
        &["branches", "--format", "csv"],
        &["branches", "--format", "profgen"],
        &["branches", "--format", "pprof", "--output", &file],
        &["loads"],
        &["loads", "--format", "json"],
        &["loads", "--format", "csv"],
        &["prefetch", "--format", "csv"],
        &["prefetch"],
    ];
    let mut silent = Vec::new();
    for mode in modes {
        let _ = fs::remove_file(&file);
        let ran = tdtool([&mode[..1], &[&damaged], &mode[1..]].concat());
        let shown = ran.stdout
            + &ran.stderr
            + &String::from_utf8_lossy(&fs::read(&file).unwrap_or_default());
        if !shown.contains("cut off") && !shown.contains("damaged") {
            silent.push(format!("{mode:?}: {shown}"));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
    for format in ["text", "csv", "json", "markdown"] {
        let compared = tdtool(["diff", &damaged, &damaged, "--format", format]);
        let shown = compared.stdout + &compared.stderr;
        assert!(shown.contains("cut off") || shown.contains("damaged"), "diff {format}: {shown}");
    }
}

/// A disk of 16 KiB: what is whole stays, what is not is removed and explained.
#[test]
fn a_full_disk_leaves_no_part_and_the_earlier_session() {
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=16k", "none", text(&disk)];
    need!(run(program("mount").args(mount)).status.success(), "mounting needs root");
    let session = disk.join("s.tds");
    fs::write(&session, "an earlier one").unwrap();
    let session = text(&session).to_owned();
    let ran = tdtool(["record", "-o", &session, "--", "true"]);
    let kept = fs::read_to_string(&session);
    let full = run(program(TDTOOL).args(["report", "--", "true"]).env("TMPDIR", &disk));
    let left: Vec<_> = fs::read_dir(&disk).unwrap().map(|e| e.unwrap().file_name()).collect();
    run(program("umount").arg(&disk)).succeeded();
    assert_eq!(kept.unwrap_or_default(), "an earlier one", "{}", ran.stderr);
    assert_eq!(ran.code(), Some(1));
    assert!(!ran.stderr.contains("readable"), "{}", ran.stderr);
    assert_eq!(left, ["s.tds"]);
    assert!(full.stderr.contains("TMPDIR") && !full.stderr.contains("/proc/"), "{}", full.stderr);
}
