//! Processor identity, from `/proc/cpuinfo` (the kernel's reading of CPUID).

use super::Root;
use tma::Cpu;

/// The processor that this runs on, as far as `/proc/cpuinfo` has it.
pub fn this_cpu() -> Cpu {
    read_cpu(&Root::system())
}

/// Reads the first processor of `/proc/cpuinfo`.
pub fn read_cpu(root: &Root) -> Cpu {
    let mut cpu = Cpu::default();
    for line in root.paragraph("proc/cpuinfo") {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let number = || value.parse().unwrap_or(0);
        match key.trim() {
            "vendor_id" => cpu.vendor = value.to_owned(),
            "cpu family" => cpu.family = number(),
            "model" => cpu.model = number(),
            "stepping" => cpu.stepping = number(),
            "model name" => cpu.name = value.to_owned(),
            "flags" => cpu.flags = value.split_whitespace().map(str::to_owned).collect(),
            _ => {}
        }
    }
    cpu
}

/// The frequency of the time stamp counter from CPUID leaf 0x15 (or 0x16 if the crystal
/// clock is missing; Intel SDM vol. 3, "Time-Stamp Counter"), or from the hypervisor's timing leaf
/// 0x40000010; `None` if none of them is given.
pub fn tsc_hz_from_cpuid() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    {
        let id = raw_cpuid::CpuId::new();
        if let Some(hz) = id.get_tsc_info().and_then(|t| t.tsc_frequency()) {
            return Some(hz as f64);
        }
        if let Some(khz) = id.get_hypervisor_info().and_then(|h| h.tsc_frequency()) {
            return Some(f64::from(khz) * 1e3);
        }
        let intel = id.get_vendor_info().is_some_and(|v| v.as_str() == "GenuineIntel");
        let base = id.get_processor_frequency_info().map(|f| f.processor_base_frequency());
        base.filter(|mhz| intel && *mhz > 0).map(|mhz| f64::from(mhz) * 1e6)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Code and unit mask of Intel's architectural events that this processor says it does not have
/// (CPUID leaf 0xA, EBX; Intel SDM vol. 3, "Pre-Defined Architectural Performance Events").
pub fn absent_architectural_events() -> Vec<(u32, u32)> {
    #[cfg(target_arch = "x86_64")]
    {
        let leaf = raw_cpuid::CpuId::new().get_performance_monitoring_info();
        // Version 0: CPUID does not list the events.
        let Some(leaf) = leaf.filter(|leaf| leaf.version_id() > 0) else { return Vec::new() };
        let events = [
            ((0x3c, 0), leaf.is_core_cyc_ev_unavailable()),
            ((0xc0, 0), leaf.is_inst_ret_ev_unavailable()),
            ((0x2e, 0x4f), leaf.is_cache_ref_ev_unavailable()),
            ((0x2e, 0x41), leaf.is_ll_cache_miss_ev_unavailable()),
            ((0xc4, 0), leaf.is_branch_inst_ret_ev_unavailable()),
            ((0xc5, 0), leaf.is_branch_midpred_ev_unavailable()),
        ];
        events.into_iter().filter(|(_, absent)| *absent).map(|(event, _)| event).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}
