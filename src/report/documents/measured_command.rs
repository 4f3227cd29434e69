//! The command that was measured, by the command line in a report.

use super::report::Report;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Options of `perf record` that name what is recorded: the command then only says how long.
const OTHER_TARGETS: [&str; 12] = [
    "-a",
    "--all-cpus",
    "-p",
    "--pid",
    "-t",
    "--tid",
    "-C",
    "--cpu",
    "-u",
    "--uid",
    "-G",
    "--cgroup",
];
/// Options whose value is the next word (perf-record(1), perf 6.12).
const WITH_VALUE: [&str; 26] = [
    "-e",
    "--event",
    "-c",
    "--count",
    "-F",
    "--freq",
    "-o",
    "--output",
    "-m",
    "--mmap-pages",
    "-k",
    "--clockid",
    "-j",
    "--branch-filter",
    "-D",
    "--delay",
    "--call-graph",
    "--filter",
    "--vmlinux",
    "--affinity",
    "--control",
    "--max-size",
    "-r",
    "--realtime",
    "--proc-map-timeout",
    "--debuginfod",
];

/// The command that was measured; empty where that cannot be told, or it only timed the measurement of something else.
pub fn measured(report: &Report) -> &[String] {
    let command = report.measured_command().unwrap_or_default();
    if report.target.is_some() { command } else { recorded(command) }
}

/// Command that perf ran, by its own command line.
fn recorded(command: &[String]) -> &[String] {
    let [perf, record, rest @ ..] = command else { return command };
    if perf.rsplit('/').next() != Some("perf") || record != "record" {
        return command;
    }
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        match word.as_str() {
            "--" => return &rest[at + 1..],
            option if is_other_target(option) => return &[],
            option if WITH_VALUE.contains(&option) => at += 2,
            option if option.starts_with('-') => at += 1,
            program if is_program(program) => return &rest[at..],
            _ => at += 1,
        }
    }
    &[]
}

/// Whether an option, or one with its value in the same word, names another target.
fn is_other_target(option: &str) -> bool {
    let is_long = |word: &str| word.starts_with("--");
    let of = |target: &str| match is_long(target) {
        true => option.split('=').next() == Some(target),
        false => option.starts_with(target) && !is_long(option),
    };
    OTHER_TARGETS.into_iter().any(of)
}

fn is_program(word: &str) -> bool {
    let file = found(word, &[]).and_then(|path| path.metadata().ok());
    file.is_some_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The file that a command runs.
pub fn found(program: &str, rest: &[String]) -> Option<PathBuf> {
    let line: Vec<OsString> = std::iter::once(program)
        .chain(rest.iter().map(String::as_str))
        .map(OsString::from)
        .collect();
    let program = PathBuf::from(workload::resolve(&line).into_iter().next()?);
    if program.components().count() > 1 {
        return program.canonicalize().ok();
    }
    let folders = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&folders).map(|folder| folder.join(&program));
    all.into_iter().find(|path| path.is_file())?.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_recording_is_what_was_recorded() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let of = |line: &str| {
            let line = line.replace("OWN", &own);
            let all: Vec<String> = line.split(' ').map(str::to_owned).collect();
            recorded(&all).join(" ").replace(&own, "OWN")
        };
        for line in ["-g OWN 7", "-F 99 -g -- OWN 7", "-o OWN -e cycles:u OWN 7", "-F99 /tmp OWN 7"]
        {
            assert_eq!(of(&format!("perf record {line}")), "OWN 7", "{line}");
        }
        for line in ["-a sleep 1", "--pid=7 sleep 1", "-p7 -g -- OWN 7", "-C 0 OWN 7", "-g"] {
            assert_eq!(of(&format!("/usr/bin/perf record {line}")), "", "{line}");
        }
        assert_eq!(of("OWN 7"), "OWN 7");
    }
}
