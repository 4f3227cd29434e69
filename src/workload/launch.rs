//! The command line that runs a built-in program: this executable, independent of PATH.

use std::ffi::{OsStr, OsString};
use std::fs;

/// The kernel's link to the running executable; valid after fork even if the file was replaced.
const OWN: &str = "/proc/self/exe";

/// The command line that runs workload `name` with `args` (as `tdtool workload run` takes them).
///
/// The executable is the running one, which must be `tdtool`: elsewhere (a library's user, a
/// test) the result would start that program instead.
pub fn command<A: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = A>) -> Vec<OsString> {
    let mut line = vec![own_executable(), "workload".into(), "run".into(), name.into()];
    line.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
    line
}

/// `line` ready to be executed: `tdtool workload …` means the running executable, whether or not
/// a `tdtool` is on PATH; any other command is unchanged.
pub fn resolve(line: &[OsString]) -> Vec<OsString> {
    let mut line = line.to_vec();
    if line.len() > 1 && line[0] == "tdtool" && line[1] == "workload" {
        line[0] = own_executable();
    }
    line
}

/// The running executable's path, or its link in /proc if the file was removed.
fn own_executable() -> OsString {
    match fs::read_link(OWN) {
        Ok(path) if path.is_file() => path.into_os_string(),
        _ => OWN.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_runs_from_the_executable_itself() {
        let line = command("stream", ["--size", "64M"]);
        assert!(std::path::Path::new(&line[0]).is_absolute());
        assert_eq!(line[1..], ["workload", "run", "stream", "--size", "64M"].map(OsString::from));
    }

    #[test]
    fn only_our_own_workload_command_is_resolved() {
        let ours = ["tdtool", "workload", "run", "stream"].map(OsString::from);
        assert_eq!(resolve(&ours), command("stream", [""; 0]));
        for other in [&["tdtool", "report"][..], &["tdtool"], &["./tdtool", "workload"], &[]] {
            let other: Vec<OsString> = other.iter().map(OsString::from).collect();
            assert_eq!(resolve(&other), other);
        }
    }
}
