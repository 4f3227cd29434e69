//! How far a processor looks ahead.

/// Entries of a reorder buffer, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Entries; µops, of which an instruction has one at least.
    pub entries: u32,
    /// Who says so.
    pub source: &'static str,
}

const INTEL: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual";
const AMD: &str = "AMD's Software Optimization Guide for the family";
const MEASURED: &str = "Chips and Cheese, measured";

/// The reorder buffer of the processors of the event table `uarch`; of the largest usual core
/// where it is not known.
pub fn window(uarch: Option<&str>) -> Window {
    let (entries, source) = match uarch.unwrap_or_default() {
        "hsw" | "hsx" | "bdw" | "bdx" => (192, INTEL),
        "skl" | "skx" | "clx" => (224, INTEL),
        "icl" | "icx" | "rkl" | "tgl" => (352, INTEL),
        "adl" | "spr" | "emr" | "gnr" | "mtl" => (512, INTEL),
        "lnl" | "arl" | "ptl" => (576, MEASURED),
        "adl-e" | "mtl-e" | "srf" | "grr" => (256, MEASURED),
        "lnl-e" | "arl-e" | "ptl-e" | "cwf" => (416, MEASURED),
        "zen1" => (192, AMD),
        "zen2" => (224, AMD),
        "zen3" => (256, AMD),
        "zen4" => (320, AMD),
        "zen5" => (448, AMD),
        _ => (512, "the largest usual core (Golden Cove), as the processor's is not known"),
    };
    Window { entries, source }
}
