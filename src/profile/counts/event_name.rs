//! The name of an event as perf, perfmon and toplev write it, and its encoding: two names with the same encoding are the
//! same count.
//!
//! `cpu/event=0x9c,umask=0x1/u` · `cpu_core/INST_RETIRED.ANY,cmask=1/` · `X:c1:e1:SUP` ·
//! `cycles:uk` · `r019c` · `X [cpu_atom]` · `cpu@X\,cmask\=0x1@`

use std::collections::BTreeMap;
use tma::tables::schema::EventSpec;
use tma::tables::{CoreKind, PmuKind, Ring, Table};

/// A parsed name; everything in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventName {
    /// The PMU, if the name has one.
    pub pmu: Option<String>,
    /// The event's own name; empty if it is given by its encoding.
    pub base: String,
    /// Fields and filters: `event`, `umask`, `cmask`, `inv`, `edge`, `any`, `config`, ….
    /// Flags such as `percore` have the value 1.
    pub fields: BTreeMap<String, u64>,
    /// The privilege ring it is restricted to.
    pub ring: Option<Ring>,
}

/// Fields that do not change the count.
const WITHOUT_EFFECT: [&str; 8] =
    ["name", "period", "freq", "time", "call-graph", "stack-size", "retire_latency", "metric-id"];

impl EventName {
    /// Parses `name`; `None` if a field has no valid value.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parsed = Self::default();
        if is_of_guests(name) {
            // No table has events of guests: they are not the host's.
            parsed.fields.insert("guest".into(), 1);
        }
        let mut name = name.trim().to_lowercase();
        // `X [cpu_atom]`: perf adds the PMU when an event exists on several.
        if let Some((front, pmu)) = name.strip_suffix(']').and_then(|n| n.rsplit_once(" [")) {
            parsed.pmu = Some(pmu.to_owned());
            name = front.to_owned();
        }
        // perf's metric expressions use `@` for `/` and escape commas.
        if name.matches('@').count() == 2 {
            name = name.replace('@', "/").replace('\\', "");
        }
        if let Some((pmu, rest)) = name.split_once('/') {
            let (inside, modifiers) = rest.rsplit_once('/')?;
            parsed.pmu = Some(pmu.to_owned());
            for (i, term) in inside.split(',').enumerate() {
                parsed.term(term.trim(), i == 0)?;
            }
            parsed.letters(modifiers.trim_start_matches(':'));
            return Some(parsed);
        }
        for (i, term) in name.split(',').enumerate() {
            if i > 0 {
                parsed.term(term.trim(), false)?;
                continue;
            }
            let mut parts = term.split(':');
            parsed.base_or_raw(parts.next().unwrap_or_default());
            for part in parts {
                parsed.modifier(part)?;
            }
        }
        (!parsed.base.is_empty() || !parsed.fields.is_empty()).then_some(parsed)
    }

    fn base_or_raw(&mut self, text: &str) {
        let raw = text.strip_prefix('r').filter(|hex| (1..=16).contains(&hex.len()));
        match raw.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(config) => {
                self.fields.insert("config".into(), config);
            }
            None => self.base = text.to_owned(),
        }
    }

    /// A term between the slashes.
    fn term(&mut self, term: &str, first: bool) -> Option<()> {
        let Some((key, value)) = term.split_once('=') else {
            match term {
                "" => {}
                "inv" | "edge" | "any" | "percore" | "eq" => {
                    self.fields.insert(term.into(), 1);
                }
                _ if first => self.base_or_raw(term),
                _ if self.base.is_empty() => self.base = term.to_owned(),
                _ => self.modifier(term)?,
            }
            return Some(());
        };
        if !WITHOUT_EFFECT.contains(&key) {
            self.fields.insert(key.to_owned(), number(value)?);
        }
        Some(())
    }

    /// A modifier after a colon: perfmon's (`c1`, `e1`, `sup`), or perf's letters.
    fn modifier(&mut self, text: &str) -> Option<()> {
        let perfmon = [("eq", "eq"), ("c", "cmask"), ("e", "edge"), ("i", "inv"), ("u", "umask")];
        if let Some((key, value)) = text.split_once('=') {
            self.fields.insert(key.to_owned(), number(value)?);
            return Some(());
        }
        for (prefix, field) in perfmon {
            if let Some(value) = text.strip_prefix(prefix)
                && value.starts_with(|c: char| c.is_ascii_digit())
            {
                self.fields.insert(field.into(), number(value)?);
                return Some(());
            }
        }
        match text {
            "sup" => self.ring = Some(Ring::Kernel),
            "user" | "usr" => self.ring = Some(Ring::User),
            "percore" => {
                self.fields.insert("percore".into(), 1);
            }
            "retire_latency" => {
                self.fields.insert("retire_latency".into(), 1);
            }
            "one_unit" | "perf_metrics" => {}
            letters if letters.bytes().all(|b| b"ukhgppdsiewrb".contains(&b)) => {
                self.letters(letters);
            }
            _ => return None,
        }
        Some(())
    }

    /// perf's modifier letters; only `u` and `k` change the count.
    fn letters(&mut self, letters: &str) {
        match (letters.contains('u'), letters.contains('k')) {
            (true, false) => self.ring = Some(Ring::User),
            (false, true) => self.ring = Some(Ring::Kernel),
            _ => {}
        }
    }

    /// Base and filters as one text, to compare names; fields with the value 0 are left out.
    pub fn key(&self) -> String {
        let mut key = self.base.clone();
        for (field, value) in self.fields.iter().filter(|(_, v)| **v != 0) {
            key += &format!(",{field}={value:#x}");
        }
        key
    }
}

/// Whether perf's modifiers restrict an event to virtual machines: `cycles:G`.
fn is_of_guests(name: &str) -> bool {
    let letters = name.trim().rsplit([':', '/']).next().unwrap_or_default();
    let are_modifiers = letters.bytes().all(|b| b"ukhGHpPSDIeWRb".contains(&b));
    are_modifiers && letters.contains('G') && !letters.contains('H')
}

/// A decimal or `0x…` number.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Everything that decides what a core counter counts, except the ring.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Encoding {
    code: u32,
    umask: u32,
    cmask: u32,
    inv: bool,
    edge: bool,
    any: bool,
    eq: bool,
    value: Option<u64>,
    percore: bool,
}

/// Vendor, which decides the layout of the `config` word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// Intel: 8-bit code, umask in bits 8–15 and 40–47.
    Intel,
    /// AMD: 12-bit code, its upper bits in 32–35.
    Amd,
    /// Raw encodings are not known.
    Other,
}

impl Vendor {
    /// The vendor of a table.
    pub fn of(table: &Table) -> Self {
        match table.vendor.as_str() {
            "GenuineIntel" => Vendor::Intel,
            "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
            _ => Vendor::Other,
        }
    }
}

impl Encoding {
    /// The encoding of a table's event; `None` if no core counter counts it.
    pub fn of_spec(spec: &EventSpec) -> Option<Self> {
        if spec.pmu != PmuKind::Core || spec.code == 0 && spec.umask == 0 {
            return None;
        }
        Some(
            Self {
                code: spec.code,
                umask: spec.umask,
                cmask: spec.cmask,
                inv: spec.inv,
                edge: spec.edge,
                any: spec.any,
                eq: spec.eq,
                value: spec.value,
                percore: spec.percore,
            }
            .with_architectural_code(),
        )
    }

    /// The encoding that a name gives by its fields or as a generic event of perf.
    pub fn of_name(name: &EventName, vendor: Vendor, core: Option<CoreKind>) -> Option<Self> {
        let mut encoding = Self::default();
        if !name.base.is_empty() {
            (encoding.code, encoding.umask) = generic(&name.base, vendor, core)?;
        }
        encoding.with_fields(name, vendor)
    }

    /// The encoding with the fields of `name` in addition.
    pub fn with_fields(mut self, name: &EventName, vendor: Vendor) -> Option<Self> {
        for (field, &value) in &name.fields {
            let small = u32::try_from(value).ok();
            match field.as_str() {
                "config" => self.set_config(value, vendor),
                "event" => self.code = small?,
                "umask" => self.umask = small?,
                "cmask" => self.cmask = small?,
                "inv" => self.inv = value != 0,
                "edge" => self.edge = value != 0,
                "any" => self.any = value != 0,
                "eq" => self.eq = value != 0,
                "percore" => self.percore = value != 0,
                "offcore_rsp" | "ocr_msr_val" | "frontend" | "ldlat" | "snoop_rsp" | "config1" => {
                    self.value = Some(value);
                }
                _ => return None,
            }
        }
        let meant = self.with_architectural_code();
        (meant.code != 0 || meant.umask != 0).then_some(meant)
    }

    /// The encoding without `percore`.
    pub fn without_percore(&self) -> Self {
        Self { percore: false, ..self.clone() }
    }

    fn set_config(&mut self, config: u64, vendor: Vendor) {
        let bits = |from: u32, count: u32| ((config >> from) & ((1 << count) - 1)) as u32;
        self.code = bits(0, 8);
        self.umask = bits(8, 8);
        self.edge = bits(18, 1) == 1;
        self.inv = bits(23, 1) == 1;
        self.cmask = bits(24, 8);
        match vendor {
            Vendor::Amd => self.code |= bits(32, 4) << 8,
            Vendor::Intel => {
                self.any = bits(21, 1) == 1;
                self.eq = bits(36, 1) == 1;
                self.umask |= bits(40, 8) << 8;
            }
            Vendor::Other => {}
        }
    }

    /// Replaces the kernel's pseudo codes of fixed counters 0 and 1 by the codes that general
    /// counters take for the same count (arch/x86/events/intel/core.c).
    fn with_architectural_code(mut self) -> Self {
        match (self.code, self.umask) {
            (0x00, 0x01) => (self.code, self.umask) = (0xc0, 0),
            (0x00, 0x02) => (self.code, self.umask) = (0x3c, 0),
            _ => {}
        }
        self
    }
}

/// Code and umask of perf's generic hardware events and sysfs names: `intel_perfmon_event_map`
/// (arch/x86/events/intel/core.c) and `amd_*_perfmon_event_map` (arch/x86/events/amd/core.c).
fn generic(name: &str, vendor: Vendor, core: Option<CoreKind>) -> Option<(u32, u32)> {
    let efficient = core == Some(CoreKind::E);
    Some(match (vendor, name) {
        (Vendor::Intel, "cycles" | "cpu-cycles") => (0x3c, 0x00),
        (Vendor::Intel, "instructions") => (0xc0, 0x00),
        (Vendor::Intel, "ref-cycles") => (0x00, 0x03),
        (Vendor::Intel, "branches" | "branch-instructions") => (0xc4, 0x00),
        (Vendor::Intel, "branch-misses") => (0xc5, 0x00),
        (Vendor::Intel, "cache-references") => (0x2e, 0x4f),
        (Vendor::Intel, "cache-misses") => (0x2e, 0x41),
        (Vendor::Intel, "slots") => (0x00, 0x04),
        // E cores count these on general counters (`attr_*_tnt`, `attr_*_grt`).
        (Vendor::Intel, "topdown-fe-bound") if efficient => (0x71, 0x00),
        (Vendor::Intel, "topdown-bad-spec") if efficient => (0x73, 0x00),
        (Vendor::Intel, "topdown-be-bound") if efficient => (0x74, 0x00),
        (Vendor::Intel, "topdown-retiring") if efficient => (0xc2, 0x00),
        (Vendor::Intel, "topdown-retiring") => (0x00, 0x80),
        (Vendor::Intel, "topdown-bad-spec") => (0x00, 0x81),
        (Vendor::Intel, "topdown-fe-bound") => (0x00, 0x82),
        (Vendor::Intel, "topdown-be-bound") => (0x00, 0x83),
        (Vendor::Intel, "topdown-heavy-ops") => (0x00, 0x84),
        (Vendor::Intel, "topdown-br-mispredict") => (0x00, 0x85),
        (Vendor::Intel, "topdown-fetch-lat") => (0x00, 0x86),
        (Vendor::Intel, "topdown-mem-bound") => (0x00, 0x87),
        (Vendor::Amd, "cycles" | "cpu-cycles") => (0x76, 0x00),
        (Vendor::Amd, "instructions") => (0xc0, 0x00),
        (Vendor::Amd, "ref-cycles") => (0x120, 0x01),
        (Vendor::Amd, "branches" | "branch-instructions") => (0xc2, 0x00),
        (Vendor::Amd, "branch-misses") => (0xc3, 0x00),
        (Vendor::Amd, "stalled-cycles-frontend" | "idle-cycles-frontend") => (0xa9, 0x00),
        _ => return None,
    })
}
