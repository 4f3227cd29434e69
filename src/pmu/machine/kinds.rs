//! CPUID leaves of each kind of core.

use super::Root;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tma::Cpu;
use tma::cpuid::{Cpuid, Dump};

/// One kind of core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kind {
    /// Its CPUID leaves; only vendor, family and model where CPUID was not asked.
    pub cpuid: Cpuid,
    /// CPUs of this kind that answered; empty where all are alike.
    pub cpus: Vec<u32>,
}

/// The kinds of core of this machine, the one this runs on first; of a copy of `/proc`, what
/// `/proc/cpuinfo` claims.
pub(super) fn kinds(root: &Root, cpu: &Cpu) -> Vec<Kind> {
    let here = if root.is_system() { native() } else { Cpuid::default() };
    if here.is_empty() {
        return vec![Kind { cpuid: claimed(cpu), cpus: Vec::new() }];
    }
    if !here.is_hybrid() {
        return vec![Kind { cpuid: here, cpus: Vec::new() }];
    }
    let found = std::thread::spawn(on_every_cpu).join().unwrap_or_default();
    if found.is_empty() { vec![Kind { cpuid: here, cpus: Vec::new() }] } else { found }
}

/// The kinds of core of a dump: processors that differ in kind or caches.
pub fn kinds_of(dumps: &[Dump]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for Dump { name, cpuid } in dumps {
        let number = name.strip_prefix("CPU").and_then(|text| text.trim().parse::<u32>().ok());
        let kind = match kinds.iter().position(|kind| is_alike(&kind.cpuid, cpuid)) {
            Some(at) => &mut kinds[at],
            None => {
                kinds.push(Kind { cpuid: cpuid.clone(), cpus: Vec::new() });
                kinds.last_mut().expect("just pushed")
            }
        };
        kind.cpus.extend(number);
    }
    if let [only] = &mut kinds[..] {
        only.cpus.clear();
    }
    kinds
}

/// Whether two CPUs are of one kind.
fn is_alike(a: &Cpuid, b: &Cpuid) -> bool {
    use tma::cpuid::{CacheLevel, Feature};
    let caches = |c: &Cpuid| CacheLevel::ALL.map(|level| c.cache(level));
    let claim = |c: &Cpuid| c.get(1, 0).map(|registers| registers[0]);
    a.core_type() == b.core_type()
        && caches(a) == caches(b)
        && claim(a) == claim(b)
        && Feature::all().all(|feature| a.has(feature) == b.has(feature))
}

/// The leaves that say only what `/proc/cpuinfo` does.
fn claimed(cpu: &Cpu) -> Cpuid {
    let mut cpuid = Cpuid::default();
    let mut bytes = [0_u8; 12];
    if cpu.vendor.is_empty() || cpu.vendor.len() > bytes.len() {
        return cpuid;
    }
    bytes[..cpu.vendor.len()].copy_from_slice(cpu.vendor.as_bytes());
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    cpuid.insert(0, 0, [0, word(0), word(8), word(4)]);
    let (short, extended) = (cpu.family.min(0xf), cpu.family.saturating_sub(0xf).min(0xff));
    let model = (cpu.model >> 4 & 0xf) << 16 | (cpu.model & 0xf) << 4;
    let virtual_bit = u32::from(cpu.has_flag("hypervisor")) << 31;
    let id = extended << 20 | short << 8 | model | cpu.stepping & 0xf;
    cpuid.insert(1, 0, [id, 0, virtual_bit, 0]);
    cpuid
}

/// Every kind of core among the CPUs that this thread may use, by running on each. In a virtual
/// machine a CPU may be moved to another kind at any time: what is read is of the moment.
fn on_every_cpu() -> Vec<Kind> {
    let us = Pid::from_raw(0);
    let Ok(home) = sched_getaffinity(us) else { return Vec::new() };
    let mut dumps = Vec::new();
    for cpu in (0..CpuSet::count()).filter(|cpu| home.is_set(*cpu).unwrap_or(false)) {
        let mut set = CpuSet::new();
        if set.set(cpu).is_ok() && sched_setaffinity(us, &set).is_ok() {
            dumps.push(Dump { name: format!("CPU {cpu}"), cpuid: native() });
        }
    }
    kinds_of(&dumps)
}

/// Leaves that distinguish cores, with their last subleaf.
#[cfg(target_arch = "x86_64")]
const LEAVES: [(u32, u32); 24] = [
    (0, 0),
    (1, 0),
    (4, 7),
    (6, 0),
    (7, 2),
    (0xa, 0),
    (0xd, 1),
    (0x14, 1),
    (0x18, 0),
    (0x19, 0),
    (0x1a, 0),
    (0x1c, 0),
    (0x1d, 1),
    (0x1e, 1),
    (0x23, 3),
    (0x24, 1),
    (0x8000_0000, 0),
    (0x8000_0001, 0),
    (0x8000_0002, 0),
    (0x8000_0003, 0),
    (0x8000_0004, 0),
    (0x8000_0008, 0),
    (0x8000_001d, 7),
    (0x8000_0021, 0),
];

/// CPUID leaves of this CPU.
#[cfg(target_arch = "x86_64")]
fn native() -> Cpuid {
    use raw_cpuid::{CpuIdReader as _, CpuIdReaderNative};
    let reader = CpuIdReaderNative;
    let mut cpuid = Cpuid::default();
    let highest = [0, 0x8000_0000].map(|base| reader.cpuid1(base).eax);
    for (leaf, last) in LEAVES {
        if leaf > highest[usize::from(leaf >> 31 == 1)] {
            continue;
        }
        let last = if leaf == 7 { reader.cpuid2(7, 0).eax.min(last) } else { last };
        for subleaf in 0..=last {
            let found = reader.cpuid2(leaf, subleaf);
            cpuid.insert(leaf, subleaf, [found.eax, found.ebx, found.ecx, found.edx]);
        }
    }
    cpuid
}

#[cfg(not(target_arch = "x86_64"))]
fn native() -> Cpuid {
    Cpuid::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cpuinfo_claims_is_read_back() {
        let cpu = Cpu {
            vendor: "AuthenticAMD".into(),
            family: 25,
            model: 0x61,
            stepping: 2,
            flags: vec!["hypervisor".into()],
            ..Cpu::default()
        };
        let back = claimed(&cpu);
        assert_eq!(Cpu { flags: cpu.flags.clone(), ..back.cpu() }, cpu);
        assert!(back.is_virtual());
    }

    #[test]
    fn cpus_with_other_caches_are_of_another_kind() {
        let dump = |number: u32, kind: u32| {
            let mut cpuid = Cpuid::default();
            cpuid.insert(0x1a, 0, [kind << 24 | 1, 0, 0, 0]);
            Dump { name: format!("CPU {number}"), cpuid }
        };
        let kinds = kinds_of(&[dump(0, 0x40), dump(1, 0x40), dump(2, 0x20)]);
        let cpus: Vec<_> = kinds.iter().map(|kind| kind.cpus.clone()).collect();
        assert_eq!(cpus, [vec![0, 1], vec![2]]);
    }
}
