//! Processor identity, from `/proc/cpuinfo` (the kernel's reading of CPUID).

use super::Root;

/// Who the processor says it is. On a hybrid all kinds of core share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// CPUID vendor string: `GenuineIntel`, `AuthenticAMD`; empty where unknown.
    pub vendor: String,
    /// Display family, extended family added.
    pub family: u32,
    /// Display model, extended model included.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// Brand string.
    pub name: String,
    /// Feature flags as the kernel names them.
    flags: Vec<String>,
}

impl Cpu {
    /// Reads the first processor of `/proc/cpuinfo`.
    pub fn read(root: &Root) -> Self {
        let mut cpu = Self::default();
        let text = root.text("proc/cpuinfo").unwrap_or_default();
        for line in text.lines().take_while(|l| !l.trim().is_empty()) {
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

    /// Whether the kernel lists this feature flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// Vendor, family, model and stepping in one line, hexadecimal model as vendors write it.
    pub fn signature(&self) -> String {
        if self.vendor.is_empty() {
            return "unknown processor".into();
        }
        format!(
            "{} family {} model {} ({:#x}) stepping {}",
            self.vendor, self.family, self.model, self.model, self.stepping
        )
    }
}

/// The frequency of the time stamp counter from CPUID leaf 0x15 (or 0x16 where the crystal is
/// not given; Intel SDM vol. 3, "Time-Stamp Counter"), or from the hypervisor's timing leaf
/// 0x40000010; `None` where the processor tells none of them.
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
