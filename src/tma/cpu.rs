//! Which processor: vendor, family, model, stepping, as CPUID and the kernel name them.

/// The processor's own identification. On a hybrid all kinds of core share it.
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
    pub flags: Vec<String>,
}

impl Cpu {
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
