//! What microarchitectures do differently. Sources are with each correction in
//! [`super::CORRECTIONS`].

/// Cores that behave alike, oldest first within a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Core {
    /// Haswell and Broadwell.
    Haswell,
    /// Skylake and its server forms, up to Cascade Lake.
    Skylake,
    /// Sunny Cove, Cypress Cove and Willow Cove.
    IceLake,
    /// Golden Cove, Raptor Cove and Redwood Cove.
    GoldenCove,
    /// Lion Cove and Cougar Cove.
    LionCove,
    /// Intel's small cores.
    Atom,
    /// Zen 1 and 2.
    Zen2,
    /// Zen 3.
    Zen3,
    /// Zen 4.
    Zen4,
    /// Zen 5.
    Zen5,
    /// Not known: what all processors share.
    Unknown,
}

impl Core {
    /// That of the event table `uarch`.
    pub fn of(uarch: Option<&str>) -> Self {
        match uarch.unwrap_or_default() {
            "hsw" | "hsx" | "bdw" | "bdx" => Self::Haswell,
            "skl" | "skx" | "clx" => Self::Skylake,
            "icl" | "icx" | "tgl" | "rkl" => Self::IceLake,
            "adl" | "spr" | "emr" | "mtl" | "gnr" => Self::GoldenCove,
            "arl" | "lnl" | "ptl" => Self::LionCove,
            "zen1" | "zen2" => Self::Zen2,
            "zen3" => Self::Zen3,
            "zen4" => Self::Zen4,
            "zen5" => Self::Zen5,
            "grr" | "srf" | "cwf" => Self::Atom,
            small if small.ends_with("-e") => Self::Atom,
            _ => Self::Unknown,
        }
    }

    /// Whether AMD makes it.
    pub fn is_zen(self) -> bool {
        matches!(self, Self::Zen2 | Self::Zen3 | Self::Zen4 | Self::Zen5)
    }

    /// Whether it is a big core of Intel.
    pub fn is_intel_big(self) -> bool {
        use Core::{GoldenCove, Haswell, IceLake, LionCove, Skylake};
        matches!(self, Haswell | Skylake | IceLake | GoldenCove | LionCove)
    }

    /// Whether flags that a shift by `cl` keeps for a count of zero are waited for.
    pub(super) fn waits_for_shift_flags(self) -> bool {
        !self.is_zen()
    }

    /// Whether `vzeroupper` joins what comes after it to what came before it.
    pub(super) fn vzeroupper_joins(self) -> bool {
        self == Self::Unknown
    }

    /// Whether `popcnt` waits for the register that it overwrites.
    pub(super) fn popcnt_waits_for_result(self) -> bool {
        matches!(self, Self::Haswell | Self::Skylake)
    }

    /// Whether `lzcnt` and `tzcnt` do.
    pub(super) fn lzcnt_waits_for_result(self) -> bool {
        self == Self::Haswell
    }
}

impl Core {
    /// Whether a write of `register`, 8 or 16 bits of one, waits for the rest of it.
    pub(super) fn merges(self, register: iced_x86::Register) -> bool {
        let _ = register;
        true
    }
}
