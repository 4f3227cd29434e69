//! The target of a measurement, in words and as options.

use pmu::Target;
use std::path::Path;
use tma::shell::quoted;

/// In words; none of a command, which speaks for itself.
pub(crate) fn words(target: &Target) -> Option<String> {
    Some(match target {
        Target::Command => return None,
        Target::Process(pid) => format!("process {pid}"),
        Target::Thread(tid) => format!("thread {tid}"),
        Target::System => "all CPUs".to_owned(),
        Target::Cpus(cpus) => format!("CPUs {}", list(cpus)),
        Target::Cgroup(path) => format!("cgroup {}", path.display()),
    })
}

/// The options of `tdtool report` that name it; none of a command.
pub(crate) fn options(target: &Target) -> Option<String> {
    Some(match target {
        Target::Command => return None,
        Target::Process(pid) => format!("-p {pid}"),
        Target::Thread(tid) => format!("-t {tid}"),
        Target::System => "-a".to_owned(),
        Target::Cpus(cpus) => format!("-C {}", list(cpus)),
        Target::Cgroup(path) => quoted(&[Path::new("--cgroup"), path]),
    })
}

fn list(cpus: &[u32]) -> String {
    let all: Vec<String> = cpus.iter().map(u32::to_string).collect();
    all.join(",")
}

/// The name of a process, where it still runs.
pub(crate) fn named(pid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(tma::text::name(name.trim_end()).into_owned()).filter(|name| !name.is_empty())
}
