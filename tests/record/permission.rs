//! Recordings by ordinary users, and of processes of others.

use super::busy::{iterations, sampling, session};
use crate::profile::samples;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, TDTOOL, program};
use crate::support::tools::copy;
use nix::unistd::Uid;
use profile::session::load_recording;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// tdtool as another user, from a copy where others may read it, whatever the folders above the
/// build's allow; the folder gets these permissions.
fn as_nobody(folder: &Folder, permissions: u32) -> Command {
    let tdtool = folder.path().join("tdtool");
    copy(TDTOOL, &tdtool);
    let permissions = fs::Permissions::from_mode(permissions);
    fs::set_permissions(folder.path(), permissions).expect("set");
    let mut setpriv = program("setpriv");
    setpriv.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(tdtool);
    setpriv
}

#[test]
fn an_ordinary_user_records_user_mode() {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    need!(paranoid.trim() == "2", "perf_event_paranoid is not 2, as it is by default");
    let folder = Folder::new();
    let session = session(&folder);
    let mut tdtool = as_nobody(&folder, 0o777);
    tdtool.args(["record", "-g", "-o", text(&session), "--", "sh", "-c", &iterations(100_000)]);
    let Ok(output) = tdtool.run_limited() else { return eprintln!("skipped: no setpriv here") };
    let Ran { status, stderr, .. } = output.into();
    need!(!stderr.contains("setpriv:"), "only root can become somebody else");
    assert!(status.success(), "{stderr}");
    assert!(stderr.contains("kernel mode is not sampled"), "{stderr}");
    let recording = load_recording(&session).expect("a recording");
    assert!(recording.events[0].name.ends_with(":u"), "{:?}", recording.events[0].name);
    let all = samples(&recording);
    assert!(all.len() > 10 && all.iter().all(|s| s.user == Some(true)), "{stderr}");
}

#[test]
fn a_process_of_another_user_gets_the_remedy_that_helps() {
    need!(sampling(), "no perf events here");
    let _busy = busy();
    need!(Uid::effective().is_root(), "only root can become somebody else");
    let folder = Folder::new();
    let mut tdtool = as_nobody(&folder, 0o755);
    tdtool.args(["report", "-p", "1", "--duration", "0.1"]).current_dir("/");
    let Ok(output) = tdtool.run_limited() else { return eprintln!("skipped: no setpriv here") };
    let err = Ran::from(output).stderr;
    need!(err.contains("not permitted"), "anybody may count on process 1 here");
    assert!(err.contains("it runs as root") && err.contains("cap_perfmon"), "{err}");
    assert!(!err.contains("perf_event_paranoid"), "the level does not decide that: {err}");
}
