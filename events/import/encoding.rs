//! perfmon's event records and modifiers → [`EventSpec`], as the Linux kernel takes them.

use crate::perfmon::{EventRecord, Events};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use tma::tables::schema::EventSpec;
use tma::tables::{ExtraRegister, PmuKind, Ring};

/// One core's events, counters and latencies, against which formulas' events resolve.
pub struct Core<'a> {
    pub events: &'a Events,
    /// General counters with SMT off.
    pub general: u32,
    /// Mean latencies at retirement.
    pub latencies: &'a BTreeMap<String, f64>,
}

/// Fixed top-down metrics by their index; config 0x8000 + 0x100 × index.
const METRICS: [&str; 8] = [
    "RETIRING",
    "BAD_SPECULATION",
    "FRONTEND_BOUND",
    "BACKEND_BOUND",
    "HEAVY_OPERATIONS",
    "BRANCH_MISPREDICTS",
    "FETCH_LATENCY",
    "MEMORY_BOUND",
];

/// `icache_16b.ifdata_stall:C1:E1` → `ICACHE_16B.IFDATA_STALL:c1:e1`; rings in capitals.
pub fn normal_name(name: &str) -> String {
    let mut parts = name.split(':');
    let mut text = parts.next().unwrap_or_default().to_uppercase();
    for part in parts {
        let part = match part.to_lowercase().as_str() {
            "sup" => "SUP".to_owned(),
            "user" => "USER".to_owned(),
            // TOPDOWN.SLOTS of the fixed counter is what the plain name means already.
            "perf_metrics" => continue,
            other => other.to_owned(),
        };
        text = text + ":" + &part;
    }
    text
}

impl Core<'_> {
    /// Whether [`Core::spec`] knows `name`.
    pub fn knows(&self, name: &str) -> bool {
        self.spec(name).is_ok()
    }

    /// The encoding of a normalised name.
    pub fn spec(&self, name: &str) -> Result<EventSpec> {
        let (base, modifiers) = name.split_once(':').unwrap_or((name, ""));
        let mut modifiers: Vec<&str> = modifiers.split(':').filter(|m| !m.is_empty()).collect();
        if let Some(at) = modifiers.iter().position(|m| *m == "retire_latency") {
            modifiers.remove(at);
            return Ok(EventSpec {
                pmu: PmuKind::Latency,
                default: self.latencies.get(base).copied(),
                ..EventSpec::default()
            });
        }
        if let Some(pmu) = elsewhere(base) {
            return Ok(EventSpec { pmu, ..EventSpec::default() });
        }
        if let Some(metric) = base.strip_prefix("PERF_METRICS.") {
            let index = METRICS.iter().position(|m| *m == metric);
            let index = u8::try_from(index.with_context(|| format!("unknown metric {name}"))?)?;
            let umask = 0x80 + u32::from(index);
            return Ok(EventSpec { umask, metric: Some(index), ..EventSpec::default() });
        }
        let record = self
            .events
            .by_name
            .get(base)
            .or_else(|| self.events.by_name.get(&format!("{base}_PS")));
        let record = record.with_context(|| format!("unknown event {name}"))?;
        let mut spec = self.plain(record).with_context(|| name.to_owned())?;
        for m in modifiers {
            modify(&mut spec, m).with_context(|| name.to_owned())?;
        }
        Ok(spec)
    }

    /// The period the vendor suggests for sampling `name`.
    pub fn period(&self, name: &str) -> Option<u64> {
        let base = name.split(':').next().unwrap_or(name);
        self.events.by_name.get(base)?.sample_after_value.parse().ok()
    }

    /// The encoding without modifiers.
    fn plain(&self, r: &EventRecord) -> Result<EventSpec> {
        let yes = |text: &str| !matches!(text, "" | "0");
        let mut spec = EventSpec {
            code: number(&r.event_code)?,
            umask: number(&r.umask)? | number(&r.umask_ext)? << 8,
            cmask: number(&r.counter_mask)?,
            inv: yes(&r.invert),
            edge: yes(&r.edge_detect),
            any: yes(&r.any_thread),
            eq: yes(&r.equal),
            precise: yes(&r.pebs) || yes(&r.precise),
            errata: (!matches!(r.errata.as_str(), "" | "null")).then(|| r.errata.clone()),
            ..EventSpec::default()
        };
        let index = r.msr_index.to_lowercase();
        spec.extra = match index.split(',').next().unwrap_or_default() {
            "0x1a6" => Some(ExtraRegister::OffcoreRsp),
            "0x3f7" => Some(ExtraRegister::Frontend),
            "0x3f6" => Some(ExtraRegister::Ldlat),
            "" | "0" | "0x0" | "0x00" => None,
            other => bail!("unknown extra register {other}"),
        };
        if spec.extra.is_some() {
            spec.value = Some(wide(&r.msr_value)?);
        }
        if let Some(fixed) = r.counter.strip_prefix("Fixed counter ") {
            on_fixed(&mut spec, &r.event_name, fixed.parse()?)?;
        } else {
            // Where the file has a column for SMT off, it is the one over all counters.
            let list = if r.counter_ht_off.is_empty() { &r.counter } else { &r.counter_ht_off };
            let list: Vec<u8> =
                list.split(',').map(|c| c.trim().parse()).collect::<Result<_, _>>()?;
            if list.len() < usize::try_from(self.general)? {
                spec.counters = Some(list);
            }
        }
        Ok(spec)
    }
}

/// Sets what the kernel takes for fixed counter `index` (arch/x86/events/intel/core.c).
fn on_fixed(spec: &mut EventSpec, name: &str, index: u8) -> Result<()> {
    let (code, umask, fixed_only) = match index {
        0 if name == "INST_RETIRED.PREC_DIST" => (0x00, 0x01, true),
        0 => (0xc0, 0x00, false),
        1 => (0x3c, 0x00, false),
        // Pseudo codes: no general counter has them.
        2 => (0x00, 0x03, true),
        3 => (0x00, 0x04, true),
        // Top-down events of E cores since Skymont; general counters have them, too.
        4 => (0x73, 0x00, false),
        5 => (0x9c, 0x01, false),
        6 => (0xc2, 0x02, false),
        _ => bail!("unknown fixed counter {index}"),
    };
    (spec.code, spec.umask, spec.fixed, spec.fixed_only) = (code, umask, Some(index), fixed_only);
    Ok(())
}

/// Events that no core counter counts.
fn elsewhere(base: &str) -> Option<PmuKind> {
    if base == "TSC" {
        Some(PmuKind::Tsc)
    } else if base.ends_with("_ENERGY_STATUS") {
        Some(PmuKind::Power)
    } else if base.starts_with("UNC_") {
        Some(PmuKind::Uncore)
    } else {
        None
    }
}

fn modify(spec: &mut EventSpec, modifier: &str) -> Result<()> {
    match modifier {
        "SUP" => spec.ring = Some(Ring::Kernel),
        "USER" => spec.ring = Some(Ring::User),
        "percore" => spec.percore = true,
        _ => {
            if let Some(value) = modifier.strip_prefix("ocr_msr_val=") {
                spec.value = Some(wide(value)?);
                return Ok(());
            }
            // Fixed counters take none of these filters.
            (spec.fixed, spec.fixed_only) = (None, false);
            let (name, value) = modifier.split_at(if modifier.starts_with("eq") { 2 } else { 1 });
            match name {
                "c" => spec.cmask = number(value)?,
                "e" => spec.edge = value == "1",
                "i" => spec.inv = value == "1",
                "eq" => spec.eq = value == "1",
                "u" => spec.umask = number(value)?,
                _ => bail!("unknown modifier :{modifier}"),
            }
        }
    }
    Ok(())
}

/// The first of a list of numbers, decimal or `0x`; nothing is 0.
fn number(text: &str) -> Result<u32> {
    Ok(u32::try_from(wide(text)?)?)
}

fn wide(text: &str) -> Result<u64> {
    let first = text.split(',').next().unwrap_or_default().trim().to_lowercase();
    match first.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None if first.is_empty() => Ok(0),
        None => first.parse(),
    }
    .with_context(|| format!("`{text}` is no number"))
}
