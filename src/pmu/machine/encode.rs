//! An event of a table → the words of `perf_event_attr`, by the PMU's own format files.

use super::Pmu;
use std::collections::BTreeMap;
use std::fmt;
use tma::tables::{EventSpec, ExtraRegister, PmuKind, Ring};

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
