//! Intel's microarchitectures: which files describe them, and what those files do not say.
//!
//! Widths, reorder buffers and counters: Intel's optimization reference manual and the "Counter"
//! columns of the event files. Models come from `mapfile.csv`.

use crate::cores;
use tma::tables::{CoreKind, Facts};

/// Where a table's metrics come from.
pub enum Metrics {
    /// `perfmon/FOLDER/metrics/FILE`.
    Perfmon(&'static str),
    /// The atom metrics of `perfmon-linux/FILE`; order and capitals from Intel's E-core sheet.
    Linux(&'static str),
    /// A column of Intel's sheet of all P cores.
    Sheet(&'static str),
    /// The atom metrics of an earlier core, where Intel has published none: what its events allow.
    Earlier(&'static str),
}

/// One core's facts.
pub struct Machine {
    pub name: &'static str,
    pub title: &'static str,
    /// Folder below `perfmon/`, also in `mapfile.csv`.
    pub folder: &'static str,
    pub events: &'static str,
    pub metrics: Metrics,
    pub core: Option<CoreKind>,
    pub shape: Shape,
    pub notes: &'static [&'static str],
}

impl Machine {
    /// Name in Linux and Intel's files, where the title does not give it: `skylakex`.
    pub fn alias(&self) -> Option<&'static str> {
        self.events.strip_suffix("x_core.json")?;
        self.events.strip_suffix("_core.json")
    }
}

/// Properties common to a family of cores.
#[derive(Clone, Copy)]
pub struct Shape {
    pub width: u32,
    pub reorder_buffer: u32,
    /// Who says so.
    pub source: &'static str,
    pub facts: fn() -> Facts,
    pub general: u32,
    pub general_smt: u32,
    /// One more than the highest fixed counter.
    pub fixed: u32,
    pub topdown_levels: u32,
    pub clocks: &'static str,
    /// Variant of the texts in `events/nodes.toml`.
    pub texts: Option<&'static str>,
    pub notes: &'static [&'static str],
}

const SMT_SHARED: &str = "With SMT on, core clocks are half of what both threads count together: measure both threads of a core; figures of a single process are approximate.";
const FIXED_METRICS: &str = "The fixed top-down metrics are 8-bit fractions that restart at every reading: read every few seconds, the slots event leading its group.";
const OCR: &str = "Off-core response events count on general counters 0 to 3 only; Linux before 6.7 does not know that.";

const DARKMONT: &str = "Intel has published no top-down metrics for Darkmont yet: these are Skymont's, as far as Darkmont's events allow.";

const HASWELL: Shape = Shape {
    width: 4,
    reorder_buffer: 192,
    source: cores::INTEL,
    facts: cores::haswell,
    general: 8,
    general_smt: 4,
    fixed: 3,
    topdown_levels: 0,
    clocks: "CPU_CLK_UNHALTED.THREAD",
    texts: None,
    notes: &[SMT_SHARED],
};
const SKYLAKE: Shape = Shape {
    reorder_buffer: 224,
    facts: cores::skylake,
    notes: &[
        SMT_SHARED,
        "Linux before 5.10 lets CYCLE_ACTIVITY.STALLS_MEM_ANY count on counters where it miscounts.",
    ],
    ..HASWELL
};
const SUNNY_COVE: Shape = Shape {
    width: 5,
    reorder_buffer: 352,
    source: cores::INTEL,
    facts: cores::sunny_cove,
    general: 8,
    general_smt: 8,
    fixed: 4,
    topdown_levels: 1,
    clocks: "CPU_CLK_UNHALTED.THREAD",
    texts: None,
    notes: &[
        FIXED_METRICS,
        "Linux before 5.10 lets CYCLE_ACTIVITY.STALLS_MEM_ANY count on counters where it miscounts.",
        OCR,
    ],
};
const GOLDEN_COVE: Shape = Shape {
    width: 6,
    reorder_buffer: 512,
    facts: cores::golden_cove,
    topdown_levels: 2,
    notes: &[FIXED_METRICS, OCR],
    ..SUNNY_COVE
};
const LION_COVE: Shape = Shape {
    width: 8,
    reorder_buffer: 576,
    source: cores::CHIPS_AND_CHEESE,
    facts: cores::lion_cove,
    general: 10,
    general_smt: 10,
    notes: &[FIXED_METRICS],
    ..GOLDEN_COVE
};
const GRACEMONT: Shape = Shape {
    width: 5,
    reorder_buffer: 256,
    source: cores::CHIPS_AND_CHEESE,
    facts: cores::atom,
    general: 6,
    general_smt: 6,
    fixed: 3,
    topdown_levels: 0,
    clocks: "CPU_CLK_UNHALTED.CORE",
    texts: Some("e"),
    notes: &[],
};
const CRESTMONT: Shape = Shape { width: 6, general: 8, general_smt: 8, ..GRACEMONT };
const SKYMONT: Shape = Shape { width: 8, reorder_buffer: 416, fixed: 7, ..CRESTMONT };

const fn server(
    name: &'static str,
    title: &'static str,
    folder: &'static str,
    files: (&'static str, &'static str),
    shape: Shape,
) -> Machine {
    let (events, metrics) = (files.0, Metrics::Perfmon(files.1));
    Machine { name, title, folder, events, metrics, core: None, shape, notes: &[] }
}

const fn performance(
    name: &'static str,
    title: &'static str,
    folder: &'static str,
    files: (&'static str, &'static str),
    shape: Shape,
) -> Machine {
    let core = Some(CoreKind::P);
    Machine { core, ..server(name, title, folder, files, shape) }
}

const fn efficient(
    name: &'static str,
    title: &'static str,
    folder: &'static str,
    files: (&'static str, Metrics),
    shape: Shape,
    notes: &'static [&'static str],
) -> Machine {
    let core = Some(CoreKind::E);
    let (events, metrics) = files;
    Machine { name, title, folder, events, metrics, core, shape, notes }
}

/// All of them, oldest first.
pub const MACHINES: &[Machine] = &[
    server(
        "hsw",
        "Haswell (4th generation Core)",
        "HSW",
        ("haswell_core.json", "haswell_metrics.json"),
        HASWELL,
    ),
    server(
        "hsx",
        "Haswell server (Xeon E5/E7 v3)",
        "HSX",
        ("haswellx_core.json", "haswellx_metrics.json"),
        HASWELL,
    ),
    server(
        "bdw",
        "Broadwell (5th generation Core)",
        "BDW",
        ("broadwell_core.json", "broadwell_metrics.json"),
        HASWELL,
    ),
    server(
        "bdx",
        "Broadwell server (Xeon E5/E7 v4)",
        "BDX",
        ("broadwellx_core.json", "broadwellx_metrics.json"),
        HASWELL,
    ),
    server(
        "skl",
        "Skylake, Kaby Lake, Coffee Lake, Comet Lake (6th to 10th generation Core)",
        "SKL",
        ("skylake_core.json", "skylake_metrics.json"),
        SKYLAKE,
    ),
    server(
        "skx",
        "Skylake server (1st generation Xeon Scalable)",
        "SKX",
        ("skylakex_core.json", "skylakex_metrics.json"),
        SKYLAKE,
    ),
    server(
        "clx",
        "Cascade Lake, Cooper Lake (2nd and 3rd generation Xeon Scalable)",
        "CLX",
        ("cascadelakex_core.json", "cascadelakex_metrics.json"),
        SKYLAKE,
    ),
    server(
        "icl",
        "Ice Lake (10th generation Core)",
        "ICL",
        ("icelake_core.json", "icelake_metrics.json"),
        SUNNY_COVE,
    ),
    server(
        "icx",
        "Ice Lake server (3rd generation Xeon Scalable)",
        "ICX",
        ("icelakex_core.json", "icelakex_metrics.json"),
        Shape { facts: cores::sunny_cove_server, ..SUNNY_COVE },
    ),
    server(
        "tgl",
        "Tiger Lake (11th generation Core, mobile)",
        "TGL",
        ("tigerlake_core.json", "tigerlake_metrics.json"),
        SUNNY_COVE,
    ),
    server(
        "rkl",
        "Rocket Lake (11th generation Core, desktop)",
        "RKL",
        ("rocketlake_core.json", "rocketlake_metrics.json"),
        SUNNY_COVE,
    ),
    server(
        "spr",
        "Sapphire Rapids (4th generation Xeon Scalable)",
        "SPR",
        ("sapphirerapids_core.json", "sapphirerapids_metrics.json"),
        GOLDEN_COVE,
    ),
    server(
        "emr",
        "Emerald Rapids (5th generation Xeon Scalable)",
        "EMR",
        ("emeraldrapids_core.json", "emeraldrapids_metrics.json"),
        GOLDEN_COVE,
    ),
    server(
        "gnr",
        "Granite Rapids (Xeon 6 with P cores)",
        "GNR",
        ("graniterapids_core.json", "graniterapids_metrics.json"),
        GOLDEN_COVE,
    ),
    performance(
        "adl",
        "Alder Lake, Raptor Lake: P core (Golden Cove, Raptor Cove)",
        "ADL",
        ("alderlake_goldencove_core.json", "alderlake_metrics_goldencove_core.json"),
        GOLDEN_COVE,
    ),
    efficient(
        "adl-e",
        "Alder Lake, Raptor Lake, Alder Lake-N: E core (Gracemont)",
        "ADL",
        ("alderlake_gracemont_core.json", Metrics::Linux("adl-metrics.json")),
        GRACEMONT,
        &["On processors with E cores alone (Alder Lake-N) the core PMU is called cpu."],
    ),
    performance(
        "mtl",
        "Meteor Lake: P core (Redwood Cove)",
        "MTL",
        ("meteorlake_redwoodcove_core.json", "meteorlake_metrics_redwoodcove_core.json"),
        GOLDEN_COVE,
    ),
    efficient(
        "mtl-e",
        "Meteor Lake: E core (Crestmont)",
        "MTL",
        ("meteorlake_crestmont_core.json", Metrics::Linux("mtl-metrics.json")),
        CRESTMONT,
        &[],
    ),
    performance(
        "lnl",
        "Lunar Lake: P core (Lion Cove)",
        "LNL",
        ("lunarlake_lioncove_core.json", "lunarlake_metrics_lioncove_core.json"),
        LION_COVE,
    ),
    efficient(
        "lnl-e",
        "Lunar Lake: E core (Skymont)",
        "LNL",
        ("lunarlake_skymont_core.json", Metrics::Linux("lnl-metrics.json")),
        SKYMONT,
        &[],
    ),
    performance(
        "arl",
        "Arrow Lake: P core (Lion Cove)",
        "ARL",
        ("arrowlake_lioncove_core.json", "arrowlake_metrics_lioncove_core.json"),
        LION_COVE,
    ),
    efficient(
        "arl-e",
        "Arrow Lake: E core (Skymont)",
        "ARL",
        ("arrowlake_skymont_core.json", Metrics::Linux("arl-metrics.json")),
        SKYMONT,
        &["The low-power E cores of Arrow Lake-H are Crestmont: `--uarch mtl-e` fits them."],
    ),
    Machine {
        metrics: Metrics::Sheet("PTL"),
        notes: &["Read from Intel's sheet: no metrics file is published for this core yet."],
        ..performance(
            "ptl",
            "Panther Lake: P core (Cougar Cove)",
            "PTL",
            ("pantherlake_cougarcove_core.json", ""),
            LION_COVE,
        )
    },
    efficient(
        "ptl-e",
        "Panther Lake: E core (Darkmont)",
        "PTL",
        ("pantherlake_darkmont_core.json", Metrics::Earlier("arl-metrics.json")),
        SKYMONT,
        &[DARKMONT],
    ),
    Machine {
        metrics: Metrics::Earlier("arl-metrics.json"),
        notes: &[DARKMONT],
        ..server(
            "cwf",
            "Clearwater Forest (Xeon 6+ with E cores, Darkmont)",
            "CWF",
            ("clearwaterforest_core.json", ""),
            SKYMONT,
        )
    },
    server(
        "srf",
        "Sierra Forest (Xeon 6 with E cores, Crestmont)",
        "SRF",
        ("sierraforest_core.json", "sierraforest_metrics.json"),
        CRESTMONT,
    ),
    server(
        "grr",
        "Grand Ridge (Crestmont)",
        "GRR",
        ("grandridge_core.json", "grandridge_metrics.json"),
        CRESTMONT,
    ),
];
