//! Readers' words for the vendors' names and domains: units and estimates.

/// Unit of an info metric; `None` is a ratio, an empty text a plain number.
pub fn unit(id: &str, domain: &str, percent_formula: bool) -> Option<&'static str> {
    let ends = |tails: &[&str]| tails.iter().any(|t| id.ends_with(t));
    if percent_formula || ends(&["Core_Bound_Likely"]) {
        return Some("%");
    }
    match domain {
        "GB/sec" => return Some("GB/s"),
        "MB/sec" => return Some("MB/s"),
        "Seconds" => return Some("s"),
        "NanoSeconds" => return Some("ns"),
        "Count" if ends(&["CLKS"]) => return Some("cycles"),
        "Count" if ends(&["SLOTS"]) => return Some("slots"),
        "Clocks_Latency" => return Some("cycles"),
        "Inst_Metric" if !ends(&["PKI"]) => return Some("instructions"),
        "Fraction" | "Clocks_Retired" => return None,
        _ => {}
    }
    if ends(&["_BW", "_BW_2T", "BW_Use"]) {
        Some("GB/s")
    } else if ends(&[
        "Utilization",
        "_MUX",
        "Coverage",
        "Mispredict_Ratio",
        "C0_Wait",
        "Useless_HWPF",
        "Retire_Stall",
    ]) {
        None
    } else if ends(&["Frequency"]) {
        Some("GHz")
    } else if ends(&["_Power"]) {
        Some("W")
    } else if ends(&["GFLOPs"]) {
        Some("GFLOP/s")
    } else if ends(&["Latency", "_Cost"]) {
        Some("cycles")
    } else if ends(&["PKI", "PKI_Code", "PKI_Code_All", "PKI_Load", "PKI_RFO", "PKI_All"]) {
        Some("per 1000 instructions")
    } else if ends(&["MemLoad_Ratio"]) {
        Some("per 1000 µops")
    } else if ends(&["IPC"]) {
        Some("instructions/cycle")
    } else if ends(&["CPI"]) {
        Some("cycles/instruction")
    } else if id.contains("_Ip") || ends(&["_Instructions"]) {
        Some("instructions")
    } else {
        Some("")
    }
}

/// Why the value of a node in `domain` is an estimate.
pub fn estimate(domain: &str) -> Option<&'static str> {
    if domain.ends_with("_Estimated") {
        Some("derived from event counts and typical costs, not counted directly")
    } else if domain.ends_with("_Retired") {
        Some("counts retired work only; what was thrown away is not in it")
    } else if domain.ends_with("_Calculated") {
        Some("calculated from other counts, not counted directly")
    } else {
        None
    }
}

/// Latency at retirement with a vendor's mean for want of samples.
pub const LATENCY_OR_MEAN: &str =
    "cycles at retirement: sampled if possible, else the vendor's mean latency";

/// Latency at retirement with a cost in the formula for want of samples.
pub const LATENCY_OR_COST: &str =
    "cycles at retirement: sampled if possible, else a typical cost of each event";

/// Latency at retirement without either.
pub const SAMPLED_LATENCY: &str = "cycles at retirement, which only sampling gives";
