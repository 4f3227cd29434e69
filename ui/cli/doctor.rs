//! `tdtool doctor`: what this machine can measure, what blocks the rest, and the remedy.

use crate::cli::Global;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;
use tma::Result;

use pmu::machine::{Finding, Level, Machine, SeccompMode, TableMatch, choose, findings};
use pmu::perf;
use tma::tables::Table;

#[derive(Args)]
pub struct DoctorArgs {
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The document of `--format json`; the text is a view of it.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    processor: String,
    signature: String,
    sockets: usize,
    cores_per_socket: usize,
    cpus: usize,
    smt: bool,
    tsc_hz: Option<f64>,
    kernel: String,
    virtual_machine: Option<String>,
    container: Option<String>,
    tables: Vec<TableInfo>,
    pmus: Vec<PmuInfo>,
    perf_event_paranoid: Option<i32>,
    cap_perfmon: bool,
    seccomp: &'static str,
    nmi_watchdog: Option<bool>,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct TableInfo {
    name: String,
    title: String,
    pmu: Option<String>,
    general_counters: u32,
    fixed_counters: u32,
    topdown_levels: u32,
}

#[derive(Serialize)]
struct PmuInfo {
    name: String,
    core: bool,
    cpus: Option<usize>,
    mux_interval_ms: Option<u32>,
}

pub fn run(global: &Global, args: DoctorArgs) -> Result<ExitCode> {
    let document = examine(global)?;
    let text = match args.format {
        Format::Text => text(&document),
        Format::Json => json(&document)?,
    };
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn examine(global: &Global) -> Result<Document> {
    let machine = Machine::detect();
    let library = global.library()?;
    let tables = choose(&machine, &library, global.uarch.as_deref())?;
    let infos =
        tables.iter().map(|t| Ok(table_info(library.load(&t.table)?.as_ref(), t, &machine)));
    let infos: Result<Vec<TableInfo>> = infos.collect();
    let core = std::sync::Arc::new(machine.core(&library, global.uarch.as_deref())?);
    let mut findings = findings(&machine, &tables, &perf::probe(&machine));
    findings.extend(engine::doctor::examine(&machine, &tables, &core));
    let kernel = &machine.kernel;
    let pmus = machine.pmus.iter().map(|p| PmuInfo {
        name: p.name.clone(),
        core: p.is_core(),
        cpus: p.cpus.as_ref().map(Vec::len),
        mux_interval_ms: p.mux_interval_ms,
    });
    Ok(Document {
        schema: "tdtool.doctor/1",
        processor: machine.cpu.name.clone(),
        signature: machine.cpu.signature(),
        sockets: machine.topology.sockets,
        cores_per_socket: machine.topology.cores_per_socket,
        cpus: machine.topology.cpus.len(),
        smt: machine.topology.smt,
        tsc_hz: machine.tsc_hz,
        kernel: kernel.release.clone(),
        virtual_machine: kernel
            .virtual_machine
            .as_ref()
            .map(|v| v.name.clone().unwrap_or_else(|| "unnamed hypervisor".into())),
        container: kernel.container.map(|c| format!("{c:?}").to_lowercase()),
        tables: infos?,
        pmus: pmus.collect(),
        perf_event_paranoid: kernel.paranoid,
        cap_perfmon: kernel.can_perfmon(),
        seccomp: match kernel.seccomp {
            SeccompMode::Off => "off",
            SeccompMode::Strict => "strict",
            SeccompMode::Filter => "filter",
        },
        nmi_watchdog: kernel.nmi_watchdog,
        findings,
    })
}

fn table_info(table: &Table, chosen: &TableMatch, machine: &Machine) -> TableInfo {
    let counters = &table.counters;
    let smt = machine.topology.smt;
    TableInfo {
        name: table.name.clone(),
        title: table.title.clone(),
        pmu: chosen.pmu.clone(),
        general_counters: if smt { counters.general_smt } else { counters.general },
        fixed_counters: counters.fixed,
        topdown_levels: counters.topdown_levels,
    }
}

fn json(document: &Document) -> Result<String> {
    let text = serde_json::to_string_pretty(document);
    text.map(|t| t + "\n")
        .map_err(|e| tma::Error::failed("cannot write the findings as JSON").because(e))
}

fn text(d: &Document) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<12} {value}");
    };
    let name = if d.processor.is_empty() { "unknown" } else { &d.processor };
    row("processor", format!("{name} ({})", d.signature));
    let smt = if d.smt { "SMT on" } else { "SMT off" };
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    row(
        "topology",
        format!(
            "{}, {} each, {}, {smt}",
            many(d.sockets, "socket"),
            many(d.cores_per_socket, "core"),
            many(d.cpus, "CPU"),
        ),
    );
    if let Some(hz) = d.tsc_hz {
        row("TSC", format!("{:.1} MHz", hz / 1e6));
    }
    let place = match (&d.virtual_machine, &d.container) {
        (Some(vm), Some(c)) => format!(", virtual machine ({vm}), container ({c})"),
        (Some(vm), None) => format!(", virtual machine ({vm})"),
        (None, Some(c)) => format!(", container ({c})"),
        (None, None) => String::new(),
    };
    row("kernel", format!("{}{place}", d.kernel));
    for t in &d.tables {
        let metrics = match t.topdown_levels {
            0 => String::new(),
            n => format!(", top-down metrics of {n} level{}", if n == 1 { "" } else { "s" }),
        };
        row(
            "table",
            format!(
                "{} ({}): {} general and {} fixed counters{metrics}",
                t.name, t.title, t.general_counters, t.fixed_counters
            ),
        );
    }
    if d.tables.is_empty() {
        row("table", "none for this processor".into());
    }
    let core = d.pmus.iter().filter(|p| p.core).map(|p| match p.cpus {
        Some(n) => format!("{} ({n} CPUs)", p.name),
        None => p.name.clone(),
    });
    let core: Vec<String> = core.collect();
    row("core PMU", if core.is_empty() { "none".into() } else { core.join(", ") });
    let others: Vec<&str> = d.pmus.iter().filter(|p| !p.core).map(|p| p.name.as_str()).collect();
    row("other PMUs", if others.is_empty() { "none".into() } else { others.join(", ") });
    let level = d.perf_event_paranoid.map_or("absent".into(), |p| p.to_string());
    let cap = if d.cap_perfmon { "yes" } else { "no" };
    let watchdog = match d.nmi_watchdog {
        Some(true) => "on",
        Some(false) => "off",
        None => "absent",
    };
    row(
        "permissions",
        format!("perf_event_paranoid {level}, CAP_PERFMON {cap}, seccomp {}", d.seccomp),
    );
    row("NMI watchdog", watchdog.into());
    out.push('\n');
    d.findings.iter().for_each(|f| finding(&mut out, f));
    out
}

fn finding(out: &mut String, finding: &Finding) {
    let mark = match finding.level {
        Level::Ok => "yes    ",
        Level::Limited => "limited",
        Level::Blocked => "no     ",
    };
    let _ = writeln!(out, "{mark}  {}", finding.what);
    for (name, text) in [("cause:", &finding.cause), ("try:  ", &finding.remedy)] {
        if let Some(text) = text {
            let _ = writeln!(out, "         {name} {}", text.replace('\n', "\n                "));
        }
    }
}
