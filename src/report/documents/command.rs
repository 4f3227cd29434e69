//! The measured command: by the command line in a report, what its runs were for, and how it ended.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Options of `perf record` that name what is recorded: the command then only says how long.
const OTHER_TARGETS: &str = "-a --all-cpus -p --pid -t --tid -C --cpu -u --uid -G --cgroup";
/// Options whose value is the next word (perf-record(1), perf 6.12).
const WITH_VALUE: &str = "-e --event -c --count -F --freq -o --output -m --mmap-pages -k --clockid -j --branch-filter \
    -D --delay --call-graph --filter --vmlinux --affinity --control --max-size -r --realtime \
    --proc-map-timeout --debuginfod";

/// Command that perf ran, by its own command line.
pub(super) fn recorded(command: &[String]) -> &[String] {
    let [perf, record, rest @ ..] = command else { return command };
    if perf.rsplit('/').next() != Some("perf") || record != "record" {
        return command;
    }
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        match word.as_str() {
            "--" => return &rest[at + 1..],
            option if is_other_target(option) => return &[],
            option if WITH_VALUE.split(' ').any(|one| one == option) => at += 2,
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
    OTHER_TARGETS.split(' ').any(of)
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

/// The purpose of a run of the command, or of a window of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Samples, by which hot functions are chosen.
    Samples,
    /// Counts of blocks.
    #[default]
    Counts,
    /// Outcomes of branches.
    Branches,
    /// The values of registers.
    Values,
    /// Addresses of loads.
    Addresses,
    /// Latencies of loads.
    Latencies,
    /// Outcomes of branches, addresses of loads and their latencies, in windows of one run.
    Windows,
    /// Samples on one CPU, where threads cannot contend for cache lines.
    Pinned,
    /// So many runs that ended where a loop was entered, for the values there.
    EndedForValues(usize),
}

const NAMED: [Purpose; 8] = [
    Purpose::Samples,
    Purpose::Counts,
    Purpose::Branches,
    Purpose::Values,
    Purpose::Addresses,
    Purpose::Latencies,
    Purpose::Windows,
    Purpose::Pinned,
];

/// As in documents.
impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Samples => "samples",
            Self::Counts => "counts",
            Self::Branches => "branches",
            Self::Values => "values",
            Self::Addresses => "addresses of loads",
            Self::Latencies => "latencies of loads",
            Self::Windows => "branches and loads in windows",
            Self::Pinned => "samples on one CPU",
            Self::EndedForValues(runs) => return write!(f, "{runs} for values"),
        })
    }
}

impl Serialize for Purpose {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Purpose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let ended = || text.strip_suffix(" for values")?.parse().ok().map(Self::EndedForValues);
        let named = NAMED.into_iter().find(|one| one.to_string() == text);
        let found = named.or_else(ended);
        found.ok_or_else(|| D::Error::custom(format!("no run is for `{text}`")))
    }
}

/// How the measured command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// The exit status of a shell: the status, or 128 + the signal.
    pub fn code(self) -> i32 {
        pmu::Exit::from(self).code()
    }
}

impl From<pmu::Exit> for Exit {
    fn from(exit: pmu::Exit) -> Self {
        match exit {
            pmu::Exit::Status(status) => Exit::Status(status),
            pmu::Exit::Signal(signal) => Exit::Signal(signal),
        }
    }
}

impl From<Exit> for pmu::Exit {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Status(status) => pmu::Exit::Status(status),
            Exit::Signal(signal) => pmu::Exit::Signal(signal),
        }
    }
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
