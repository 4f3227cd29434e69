//! Files that are written: whose they are, and what is left when something fails.

use crate::profile::made;
use crate::support::files::Folder;
use crate::support::run::{TDTOOL, program, run, tdtool};
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
    for output in [&own, &link, &dangling] {
        let ran = tdtool(["record", "-o", output, "--", &own]);
        assert_eq!(ran.code(), Some(2), "{output}: {}", ran.stderr);
        assert!(ran.stderr.contains("--output"), "{}", ran.stderr);
    }
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
fn a_batch_of_blocks_replaces_no_input() {
    let folder = Folder::new();
    let rows = folder.write("rows.csv", "hex\n4801d8\n");
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
    let (folded, graph) = (folder.file("stacks"), folder.file("graph.svg"));
    let modes: [&[&str]; 8] = [
        &[],
        &["-v"],
        &["--format", "csv"],
        &["--format", "json"],
        &["--folded", "-"],
        &["--folded", &folded],
        &["--flamegraph", &graph],
        &["--interval", "100"],
    ];
    for mode in modes {
        let ran = tdtool([&["report", &damaged][..], mode].concat()).succeeded();
        let shown = ran.stdout + &ran.stderr;
        assert!(shown.contains("cut off") || shown.contains("damaged"), "{mode:?}: {shown}");
    }
}
