//! Kernel permissions of this process; containers and virtual machines.

use super::Root;
#[cfg(target_arch = "x86_64")]
use raw_cpuid::Hypervisor;
use serde::Serialize;
use std::fmt;

/// Filtering of system calls, by these names in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeccompMode {
    /// None.
    Off,
    /// Strict: read, write and exit only.
    Strict,
    /// A filter, which may refuse `perf_event_open`.
    Filter,
}

impl fmt::Display for SeccompMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Kind of container, by these names in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Container {
    /// Docker, or another that leaves `/.dockerenv`.
    Docker,
    /// Podman, or another that leaves `/run/.containerenv`.
    Podman,
    /// Kubernetes, by its service account or cgroup names.
    Kubernetes,
    /// Another one, by the name of PID 1's environment or cgroup.
    Other,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtual {
    /// Its name, if it reports one.
    pub name: Option<String>,
}

/// Settings and privileges that determine what can be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `kernel.perf_event_paranoid`; `None`: a kernel without perf events.
    pub paranoid: Option<i32>,
    /// Whether the NMI watchdog holds a counter.
    pub nmi_watchdog: Option<bool>,
    /// Effective capabilities, one bit each (linux/capability.h).
    pub capabilities: u64,
    /// Seccomp mode of this process.
    pub seccomp: SeccompMode,
    /// Container, if one is detected.
    pub container: Option<Container>,
    /// Virtual machine, if a hypervisor is detected.
    pub virtual_machine: Option<Virtual>,
}

/// `CAP_SYS_ADMIN` of linux/capability.h.
const CAP_SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON` of linux/capability.h, from Linux 5.8.
const CAP_PERFMON: u32 = 38;

impl Kernel {
    /// Reads `/proc` and `/sys`; `hypervisor_bit` is CPUID's.
    pub fn read(root: &Root, hypervisor_bit: bool) -> Self {
        let status = root.text("proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let mut lines = status.lines().filter_map(|l| l.split_once(':'));
            lines.find(|(k, _)| *k == name).map(|(_, v)| v.trim())
        };
        let seccomp = match field("Seccomp") {
            Some("1") => SeccompMode::Strict,
            Some("2") => SeccompMode::Filter,
            _ => SeccompMode::Off,
        };
        Self {
            release: root.text("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into()),
            paranoid: root.number("proc/sys/kernel/perf_event_paranoid"),
            nmi_watchdog: root.number::<u8>("proc/sys/kernel/nmi_watchdog").map(|n| n != 0),
            capabilities: field("CapEff")
                .and_then(|v| u64::from_str_radix(v, 16).ok())
                .unwrap_or(0),
            seccomp,
            container: container(root),
            virtual_machine: virtual_machine(root, hypervisor_bit),
        }
    }

    /// Whether `CAP_PERFMON` is in effect (`CAP_SYS_ADMIN` implies it).
    pub fn can_perfmon(&self) -> bool {
        self.capabilities & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN) != 0
    }

    /// Whether kernel mode may be counted (paranoid level below 2, or the capability).
    pub fn may_count_kernel(&self) -> bool {
        self.can_perfmon() || self.paranoid.is_some_and(|p| p < 2)
    }

    /// Whether whole CPUs may be counted (paranoid level below 1, or the capability).
    pub fn may_count_cpus(&self) -> bool {
        self.can_perfmon() || self.paranoid.is_some_and(|p| p < 1)
    }

    /// Why the kernel refuses to count, by these settings, and the remedy.
    pub fn why_denied(&self) -> (String, String) {
        let Some(level) = self.paranoid else {
            return (
                "this kernel has no perf events (no /proc/sys/kernel/perf_event_paranoid)".into(),
                "use a kernel built with CONFIG_PERF_EVENTS=y".into(),
            );
        };
        if self.seccomp != SeccompMode::Off && (self.can_perfmon() || level < 2) {
            return (
                "a seccomp filter refuses perf_event_open".into(),
                self.seccomp_remedy().into(),
            );
        }
        if self.seccomp != SeccompMode::Off {
            return (
                format!(
                    "perf_event_paranoid is {level} and this process has no CAP_PERFMON; a \
                     seccomp filter may refuse perf_event_open as well"
                ),
                format!("{}\n{}", self.seccomp_remedy(), paranoid_remedy(level)),
            );
        }
        (
            format!("perf_event_paranoid is {level} and this process has no CAP_PERFMON"),
            paranoid_remedy(level),
        )
    }

    /// Why whole CPUs cannot be counted, and the remedy.
    pub fn why_no_cpus(&self) -> (String, String) {
        match self.seccomp {
            SeccompMode::Off if self.paranoid.is_some() => (self.why_denied().0, lowered_to(0)),
            _ => self.why_denied(),
        }
    }

    /// Why a process of `owner`, another user, cannot be counted, and the remedy. Independently of the
    /// paranoid level, the kernel requires permission to trace it, or CAP_PERFMON
    /// (`perf_event_open(2)`, from Linux 5.9; before that CAP_SYS_PTRACE).
    pub fn why_not_theirs(&self, owner: &str) -> (String, String) {
        let cause = format!("it runs as {owner}, and this process has no CAP_PERFMON");
        let users = if owner == "root" { "root" } else { &format!("{owner} or root") };
        let remedy = format!(
            "run tdtool as {users}\n\
             or: sudo setcap cap_perfmon+ep \"$(command -v tdtool)\" (before Linux 5.9: \
             cap_sys_ptrace, too)"
        );
        (cause, remedy)
    }

    /// The remedy for a seccomp filter in this kind of container.
    pub fn seccomp_remedy(&self) -> &'static str {
        match self.container {
            Some(Container::Kubernetes) => {
                "in the pod's securityContext: capabilities.add: [PERFMON] and \
                 seccompProfile.type: Unconfined"
            }
            Some(Container::Podman) => {
                "podman run --cap-add=PERFMON --security-opt seccomp=unconfined …"
            }
            Some(_) => "docker run --cap-add=PERFMON --security-opt seccomp=unconfined …",
            None => "start it outside the sandbox (or service) that installs the filter",
        }
    }
}

/// The remedy for a paranoid level.
fn paranoid_remedy(level: i32) -> String {
    lowered_to(if level > 2 { 2 } else { -1 })
}

/// Commands that lower the paranoid level, or make it irrelevant.
pub(super) fn lowered_to(setting: i32) -> String {
    format!(
        "sudo sysctl kernel.perf_event_paranoid={setting}\n\
         or: sudo setcap cap_perfmon+ep \"$(command -v tdtool)\""
    )
}

fn container(root: &Root) -> Option<Container> {
    let cgroup = root.text("proc/1/cgroup").unwrap_or_default();
    if root.exists("var/run/secrets/kubernetes.io") || cgroup.contains("kubepods") {
        return Some(Container::Kubernetes);
    }
    if root.exists(".dockerenv") || cgroup.contains("docker") {
        return Some(Container::Docker);
    }
    if root.exists("run/.containerenv") || cgroup.contains("libpod") {
        return Some(Container::Podman);
    }
    let environment = root.text("proc/1/environ").unwrap_or_default();
    (environment.contains("container=") || cgroup.contains("lxc")).then_some(Container::Other)
}

fn virtual_machine(root: &Root, hypervisor_bit: bool) -> Option<Virtual> {
    if let Some(name) = root.text("sys/hypervisor/type") {
        return Some(Virtual { name: Some(name) });
    }
    let vendor = root.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = root.text("sys/class/dmi/id/product_name").unwrap_or_default();
    let known = ["QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Amazon EC2", "Google", "Microsoft"];
    let named = known.iter().find(|k| vendor.contains(*k) || product.contains(*k));
    // Bare-metal cloud machines have the same vendor names.
    if !hypervisor_bit {
        return None;
    }
    let named = named.map(|k| (*k).to_owned()).or_else(|| root_hypervisor(root));
    Some(Virtual { name: named })
}

/// The hypervisor by CPUID; only for the running system.
fn root_hypervisor(root: &Root) -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    if root.is_system() {
        let id = raw_cpuid::CpuId::new();
        return id.get_hypervisor_info().and_then(|info| hypervisor(&info.identify()));
    }
    let _ = root;
    None
}
/// Its name; none of one that is not known here.
#[cfg(target_arch = "x86_64")]
fn hypervisor(of: &Hypervisor) -> Option<String> {
    let name = match of {
        Hypervisor::Xen => "Xen",
        Hypervisor::VMware => "VMware",
        Hypervisor::HyperV => "HyperV",
        Hypervisor::KVM => "KVM",
        Hypervisor::QEMU => "QEMU",
        Hypervisor::Bhyve => "Bhyve",
        Hypervisor::QNX => "QNX",
        Hypervisor::ACRN => "ACRN",
        Hypervisor::Unknown(..) => return None,
    };
    Some(name.to_owned())
}

/// The kernel's random id of this boot; `None` if it has none.
pub fn boot_id() -> Option<String> {
    Root::system().text("proc/sys/kernel/random/boot_id")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents have these names.
    #[test]
    fn containers_and_hypervisors_have_fixed_names() {
        let all = [Container::Docker, Container::Podman, Container::Kubernetes, Container::Other];
        let names = ["docker", "podman", "kubernetes", "other"];
        assert_eq!(all.map(|one| one.to_string()), names);
        assert_eq!(serde_json::to_value(all).unwrap(), serde_json::json!(names));
        #[cfg(target_arch = "x86_64")]
        {
            let of = |one: Hypervisor| hypervisor(&one).unwrap_or_default();
            assert_eq!([of(Hypervisor::KVM), of(Hypervisor::HyperV)], ["KVM", "HyperV"]);
            assert_eq!(of(Hypervisor::Unknown(1, 2, 3)), "");
        }
    }
}
