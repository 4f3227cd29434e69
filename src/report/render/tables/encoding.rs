//! An event as perf would be asked for it: `cpu/event=0x1a0,umask=0x1,cmask=6/`.

use std::fmt::Write as _;
use tma::tables::{Event, EventSpec, ExtraRegister, PmuKind, Ring, Table};

/// The encoding of `event`, the counters it may use, and its errata.
pub fn encoding(table: &Table, event: &Event) -> String {
    let e = &event.spec;
    let mut text = match e.pmu {
        PmuKind::Core => core(table, e),
        PmuKind::Tsc => "time-stamp counter".into(),
        PmuKind::Power => "RAPL energy".into(),
        PmuKind::Uncore => "uncore: imported counts only".into(),
        PmuKind::Latency => match e.default {
            Some(cycles) => format!("latency, {cycles} cycles where it is not measured"),
            None => "latency".into(),
        },
        PmuKind::Abstract => "abstract: imported counts only".into(),
    };
    if let Some(n) = e.fixed {
        let _ = write!(text, " on fixed counter {n}{}", if e.fixed_only { "" } else { " or any" });
    }
    if let Some(counters) = &e.counters {
        let list: Vec<String> = counters.iter().map(u8::to_string).collect();
        let _ = write!(text, " on counters {}", list.join(","));
    }
    if let Some(errata) = &e.errata {
        let _ = write!(text, " ({errata})");
    }
    text
}

/// A core event by its encoding.
pub(super) fn core(table: &Table, e: &EventSpec) -> String {
    let mut fields = match e.metric {
        Some(n) => vec![format!("config={:#x}", 0x8000 + 0x100 * u32::from(n))],
        None => vec![format!("event={:#x}", e.code)],
    };
    // A metric's mask is part of its configuration.
    let umask = if e.metric.is_some() { 0 } else { e.umask };
    fields.extend((umask != 0).then(|| format!("umask={umask:#x}")));
    fields.extend((e.cmask != 0).then(|| format!("cmask={}", e.cmask)));
    for (key, on) in [("inv", e.inv), ("edge", e.edge), ("any", e.any), ("eq", e.eq)] {
        fields.extend(on.then(|| key.to_owned()));
    }
    if let (Some(extra), Some(value)) = (e.extra, e.value) {
        let key = match extra {
            ExtraRegister::OffcoreRsp => "offcore_rsp",
            ExtraRegister::Frontend => "frontend",
            ExtraRegister::Ldlat => "ldlat",
            ExtraRegister::SnoopRsp => "snoop_rsp",
        };
        fields.push(format!("{key}={value:#x}"));
    }
    let ring = match e.ring {
        Some(Ring::User) => "u",
        Some(Ring::Kernel) => "k",
        None => "",
    };
    format!("{}/{}/{ring}", table.pmu, fields.join(","))
}
