//! Reads PMUs and their attribute formats from `/sys/bus/event_source/devices`, and encodes an event of a table as
//! the words of `perf_event_attr`.

use super::{Root, parse_cpu_list};
use std::collections::BTreeMap;
use std::fmt;
use tma::tables::{EventSpec, ExtraRegister, PmuKind, Ring};

/// A PMU registered with the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// Folder name: `cpu`, `cpu_core`, `msr`, `power`, `uncore_imc_0`.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// Format fields: their bits in the config words.
    pub formats: BTreeMap<String, Format>,
    /// CPUs it counts on, if listed (`cpus`, or `cpumask` for PMUs outside the core).
    pub cpus: Option<Vec<u32>>,
    /// The kernel's own events (`events/*`), of those in `KERNEL_EVENTS`: name, text.
    pub events: BTreeMap<String, String>,
    /// `caps/*`, by file name.
    pub caps: BTreeMap<String, String>,
    /// Rotation interval in milliseconds.
    pub mux_interval_ms: Option<u32>,
}

/// The kernel's own events that recordings of loads and branches need, and no table has.
const KERNEL_EVENTS: [&str; 3] = ["mem-loads", "mem-loads-aux", "branch-brs"];

impl Pmu {
    /// Whether it is the PMU of a core.
    pub fn is_core(&self) -> bool {
        matches!(self.name.as_str(), "cpu" | "cpu_core" | "cpu_atom" | "cpu_lowpower")
            || self.name.starts_with("armv8_")
    }
}

/// A word of `perf_event_attr` that a format field can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Config,
    Config1,
    Config2,
}

/// The bits of a format field: `config:0-7,32-35` puts the low 8 bits of the value into bits
/// 0–7 of `config` and the next 4 into bits 32–35 (Documentation/ABI, sysfs-bus-event_source).
///
/// ```
/// use pmu::machine::Format;
///
/// // The event field of AMD's core PMU has 12 bits in two places: perf writes 0x1a0 as r1000000a0.
/// let event = Format::parse("config:0-7,32-35").expect("the form of a format file");
/// let mut words = [0; 3];
/// assert!(event.put(0x1a0, &mut words));
/// assert_eq!(words, [0x1_0000_00a0, 0, 0]);
/// assert!(!event.put(0x1000, &mut words), "13 bits do not fit");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    word: Word,
    ranges: Vec<(u32, u32)>,
}

impl Format {
    /// Parses the text of a format file; `None` if it is of an unknown form.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = match word {
            "config" => Word::Config,
            "config1" => Word::Config1,
            "config2" => Word::Config2,
            _ => return None,
        };
        let ranges: Option<Vec<(u32, u32)>> = ranges
            .split(',')
            .map(|r| {
                let (low, high) = r.split_once('-').unwrap_or((r, r));
                let (low, high) = (low.parse().ok()?, high.parse().ok()?);
                (low <= high && high < 64).then_some((low, high))
            })
            .collect();
        Some(Self { word, ranges: ranges? })
    }

    /// Puts `value` into `words` (config, config1, config2); `false` if it has too many bits.
    #[must_use]
    pub fn put(&self, mut value: u64, words: &mut [u64; 3]) -> bool {
        for &(low, high) in &self.ranges {
            let bits = high - low + 1;
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            words[self.word as usize] |= (value & mask) << low;
            value = value.checked_shr(bits).unwrap_or(0);
        }
        value == 0
    }
}

/// All PMUs, by name.
pub fn find_pmus(root: &Root) -> Vec<Pmu> {
    let base = "sys/bus/event_source/devices";
    let read = |name: String| {
        let dir = format!("{base}/{name}");
        let text = |file: &str| root.text(format!("{dir}/{file}"));
        let files = |folder: &str| -> Vec<(String, String)> {
            let path = format!("{dir}/{folder}");
            let named = |f: String| Some((f.clone(), root.text(format!("{path}/{f}"))?));
            root.names(&path).into_iter().filter_map(named).collect()
        };
        let formats = files("format").into_iter();
        Some(Pmu {
            kind: text("type")?.parse().ok()?,
            formats: formats.filter_map(|(f, t)| Some((f, Format::parse(&t)?))).collect(),
            cpus: text("cpus").or_else(|| text("cpumask")).and_then(|t| parse_cpu_list(&t)),
            events: KERNEL_EVENTS
                .iter()
                .filter_map(|event| Some(((*event).to_owned(), text(&format!("events/{event}"))?)))
                .collect(),
            caps: files("caps").into_iter().collect(),
            mux_interval_ms: text("perf_event_mux_interval_ms").and_then(|t| t.parse().ok()),
            name,
        })
    };
    root.names(base).into_iter().filter_map(read).collect()
}

/// The encoding of an event in `perf_event_attr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Encoding {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// Counts ring 3 only.
    pub user_only: bool,
    /// Counts ring 0 only.
    pub kernel_only: bool,
}

/// Why an event has no encoding for a PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEncoding {
    /// It is not counted by a core PMU.
    OtherPmu,
    /// The kernel's PMU of this name has no such format field.
    NoField(String, &'static str),
    /// The value does not fit the field of the kernel's PMU of this name.
    Wide(String, &'static str, u64),
}

impl fmt::Display for NoEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPmu => f.write_str("not an event of a core PMU"),
            Self::NoField(pmu, field) => {
                write!(f, "the kernel's PMU `{pmu}` has no format field `{field}`")
            }
            Self::Wide(pmu, field, value) => {
                write!(f, "{field}={value:#x} does not fit the field of the kernel's PMU `{pmu}`")
            }
        }
    }
}

/// Encodes `spec` for `pmu`.
///
/// A fixed top-down metric n is event 0, umask 0x80 + n (Linux, `arch/x86/events/intel/core.c`).
///
/// # Errors
/// The reason: this kernel's PMU has no such field, or the value does not fit it.
pub fn encode(spec: &EventSpec, pmu: &Pmu) -> Result<Encoding, NoEncoding> {
    if spec.pmu != PmuKind::Core {
        return Err(NoEncoding::OtherPmu);
    }
    let (code, umask) = match spec.metric {
        Some(n) => (0, 0x80 + u64::from(n)),
        None => (u64::from(spec.code), u64::from(spec.umask)),
    };
    let mut fields = vec![
        ("event", code),
        ("umask", umask),
        ("cmask", spec.cmask.into()),
        ("inv", spec.inv.into()),
        ("edge", spec.edge.into()),
        ("any", spec.any.into()),
        ("eq", spec.eq.into()),
    ];
    if let (Some(register), Some(value)) = (spec.extra, spec.value) {
        fields.push((field_of(register), value));
    }
    let mut words = [0; 3];
    for (field, value) in fields.into_iter().filter(|(_, v)| *v != 0) {
        let pmu_name = || pmu.name.clone();
        let format =
            pmu.formats.get(field).ok_or_else(|| NoEncoding::NoField(pmu_name(), field))?;
        if !format.put(value, &mut words) {
            return Err(NoEncoding::Wide(pmu_name(), field, value));
        }
    }
    let [config, config1, config2] = words;
    Ok(Encoding {
        kind: pmu.kind,
        config,
        config1,
        config2,
        user_only: spec.ring == Some(Ring::User),
        kernel_only: spec.ring == Some(Ring::Kernel),
    })
}

impl Pmu {
    /// The encoding of one of the kernel's own events (`event=0xcd,umask=0x1,ldlat=3`), with some of its
    /// fields set otherwise; `None` if it has no such event or field.
    pub fn kernel_event(&self, name: &str, set: &[(&str, u64)]) -> Option<Encoding> {
        let mut fields = BTreeMap::new();
        for field in self.events.get(name)?.trim().split(',') {
            let (field, value) = field.split_once('=').unwrap_or((field, "1"));
            fields.insert(field, number(value)?);
        }
        fields.extend(set.iter().copied());
        self.encoding(fields)
    }

    /// The encoding of an event of these fields; `None` if the PMU lacks one of them.
    pub fn encoding<'a>(
        &self,
        fields: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Option<Encoding> {
        let mut words = [0; 3];
        for (field, value) in fields {
            if !self.formats.get(field)?.put(value, &mut words) {
                return None;
            }
        }
        let [config, config1, config2] = words;
        Some(Encoding { kind: self.kind, config, config1, config2, ..Encoding::default() })
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The kernel's name for the field of an extra register.
fn field_of(register: ExtraRegister) -> &'static str {
    match register {
        ExtraRegister::OffcoreRsp => "offcore_rsp",
        ExtraRegister::Frontend => "frontend",
        ExtraRegister::Ldlat => "ldlat",
        ExtraRegister::SnoopRsp => "snoop_rsp",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;

    #[test]
    fn a_field_may_be_split_over_ranges() {
        // AMD's 12-bit event code: 0x1a0 goes to 0x1000000a0 (Linux arch/x86/events/amd/core.c).
        let format = Format::parse("config:0-7,32-35").expect("a format");
        let mut words = [0; 3];
        assert!(format.put(0x1a0, &mut words));
        assert_eq!(words, [0x1_0000_00a0, 0, 0]);
        assert!(!format.put(0x1000, &mut words), "13 bits do not fit 12");
    }

    #[test]
    fn whole_words_and_single_bits() {
        let mut words = [0; 3];
        assert!(Format::parse("config1:0-63").expect("a format").put(u64::MAX, &mut words));
        assert!(Format::parse("config:23").expect("a format").put(1, &mut words));
        assert_eq!(words, [1 << 23, u64::MAX, 0]);
    }

    #[test]
    fn nonsense_is_no_format() {
        for text in ["", "config", "config9:0-7", "config:7-0", "config:0-64", "config:x"] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
    }

    fn pmu(formats: &[(&str, &str)]) -> Pmu {
        let parsed = |t| Format::parse(t).expect("a format");
        Pmu {
            name: "cpu".into(),
            kind: 4,
            formats: formats.iter().map(|(n, t)| ((*n).to_owned(), parsed(t))).collect(),
            cpus: None,
            events: BTreeMap::new(),
            caps: Default::default(),
            mux_interval_ms: None,
        }
    }

    fn intel() -> Pmu {
        pmu(&[
            ("event", "config:0-7"),
            ("umask", "config:8-15"),
            ("edge", "config:18"),
            ("any", "config:21"),
            ("inv", "config:23"),
            ("cmask", "config:24-31"),
            ("offcore_rsp", "config1:0-63"),
        ])
    }

    #[test]
    fn intel_raw_codes_as_perf_writes_them() {
        // perf list: cpu/event=0x9c,umask=0x1,cmask=0x4/ is r400019c.
        let spec = EventSpec { code: 0x9c, umask: 1, cmask: 4, ..Default::default() };
        assert_eq!(encode(&spec, &intel()).expect("encoded").config, 0x0400_019c);
        let spec = EventSpec { code: 0xa1, umask: 1, inv: true, edge: true, any: true, ..spec };
        assert_eq!(encode(&spec, &intel()).expect("encoded").config, 0x04a4_01a1);
    }

    #[test]
    fn slots_and_metrics_have_pseudo_codes() {
        // topdown.txt of the kernel: slots 0x400, retiring 0x8000, backend bound 0x8300.
        let slots = EventSpec { umask: 4, ..Default::default() };
        assert_eq!(encode(&slots, &intel()).expect("encoded").config, 0x400);
        let backend = EventSpec { metric: Some(3), ..Default::default() };
        assert_eq!(encode(&backend, &intel()).expect("encoded").config, 0x8300);
    }

    #[test]
    fn amd_codes_beyond_8_bits_go_to_bits_32_to_35() {
        // 0x1a0, umask 1 is r1000001a0.
        let amd = pmu(&[("event", "config:0-7,32-35"), ("umask", "config:8-15")]);
        let spec = EventSpec { code: 0x1a0, umask: 1, ..Default::default() };
        assert_eq!(encode(&spec, &amd).expect("encoded").config, 0x1_0000_01a0);
    }

    #[test]
    fn extra_registers_go_to_config1_and_rings_to_flags() {
        let spec = EventSpec {
            code: 0xb7,
            umask: 1,
            extra: Some(ExtraRegister::OffcoreRsp),
            value: Some(0x10003c0001),
            ring: Some(Ring::Kernel),
            ..Default::default()
        };
        let got = encode(&spec, &intel()).expect("encoded");
        assert_eq!((got.config, got.config1), (0x1b7, 0x10003c0001));
        assert!(got.kernel_only && !got.user_only);
    }

    #[test]
    fn the_kernels_load_event_with_another_threshold() {
        // perf's cpu/mem-loads,ldlat=30/P is config 0x1cd, config1 0x1e (tools/perf/Documentation/perf-mem).
        let mut pmu = intel();
        assert_eq!(pmu.kernel_event("mem-loads", &[("ldlat", 30)]), None, "it has no such event");
        pmu.events.insert("mem-loads".into(), "event=0xcd,umask=0x1,ldlat=3\n".into());
        assert_eq!(pmu.kernel_event("mem-loads", &[("ldlat", 30)]), None, "it has no such field");
        pmu.formats.insert("ldlat".into(), Format::parse("config1:0-15").expect("a format"));
        let got = pmu.kernel_event("mem-loads", &[("ldlat", 30)]).expect("encoded");
        assert_eq!((got.kind, got.config, got.config1), (4, 0x1cd, 30));
    }

    #[test]
    fn a_field_the_kernel_lacks_is_named() {
        let spec = EventSpec { code: 0x9c, eq: true, cmask: 4, ..Default::default() };
        let why = |spec: &EventSpec| encode(spec, &intel()).expect_err("refused");
        assert_eq!(why(&spec), NoEncoding::NoField("cpu".into(), "eq"));
        let wide = EventSpec { code: 0x1a0, ..Default::default() };
        assert_eq!(why(&wide), NoEncoding::Wide("cpu".into(), "event", 0x1a0));
    }
}
