//! Metrics against the reports of `report -a -I`, both of the same scripted counts.

use super::open_metrics::{Kind, parse};
use crate::collect::intel;
use engine::host::{HostAsk, Meter};
use engine::topdown::{Ask, LiveAsk, Update, live_through};
use fleet::metrics::{Exporter, Form};
use pmu::machine::{Machine, encode};
use pmu::scripted::Scripted;
use pmu::{Aggregate, Target};
use report::documents::Report;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tma::tables::PmuKind;

/// Intervals of the scripted measurement.
const LENGTH: Duration = Duration::from_millis(500);

/// Counts per nanosecond.
const KNOWN: [(&str, f64); 5] = [
    ("CPU_CLK_UNHALTED.THREAD", 3.0),
    ("IDQ_UOPS_NOT_DELIVERED.CORE", 2.0),
    ("UOPS_ISSUED.ANY", 5.0),
    ("UOPS_RETIRED.RETIRE_SLOTS", 4.0),
    ("INST_RETIRED.ANY", 3.6),
];

/// A Skylake server of two sockets with one CPU each.
fn machine() -> Machine {
    let format = |name: &'static str| format!("sys/bus/event_source/devices/cpu/format/{name}");
    let more = [
        (format("cmask"), "config:24-31\n"),
        (format("inv"), "config:23\n"),
        (format("edge"), "config:18\n"),
        (format("any"), "config:21\n"),
    ];
    let mut files: Vec<(&str, &str)> = more.iter().map(|(a, b)| (a.as_str(), *b)).collect();
    files.push(("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"));
    files.push(("sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n"));
    intel(&files)
}

/// Counts per nanosecond at 3 GHz: 12 slots, of which 2 are not delivered, 5 issued, 4 retired; other events as many
/// as their number in the table makes them.
fn kernel(machine: &Machine) -> Scripted {
    let table = engine::library().load("skx").expect("a table");
    let pmu = machine.pmu("cpu").expect("a PMU");
    let mut kernel = Scripted { lifetime: LENGTH * 100, ..Scripted::default() };
    for (number, event) in table.events.iter().enumerate() {
        let known = KNOWN.iter().find(|(name, _)| *name == event.name);
        if event.spec.pmu == PmuKind::Core
            && let Ok(encoding) = encode(&event.spec, pmu)
        {
            // Some events have the encoding of a known one.
            match known {
                Some((_, rate)) => _ = kernel.rates.insert(encoding.config, *rate),
                None => {
                    let rate = 0.001 * (1 + number % 97) as f64;
                    kernel.rates.entry(encoding.config).or_insert(rate);
                }
            }
        }
    }
    kernel.signals = vec![(LENGTH * 4 + LENGTH / 2, 15, false)];
    kernel
}

/// The reports of all intervals, as `report -a -I 500 -l 2` prints them.
fn reports(machine: &Machine, per_socket: bool) -> Vec<Report> {
    let core = Arc::new(machine.core(&engine::library(), None).expect("a core"));
    let ask = LiveAsk {
        ask: Ask { level: Some(2), without_details: true, ..Ask::default() },
        target: Target::System,
        aggregate: if per_socket { Aggregate::Socket } else { Aggregate::All },
        interval: Some(LENGTH),
        ..LiveAsk::of(core)
    };
    let mut all = Vec::new();
    let mut update = |update| {
        if let Update::Interval(report) = update {
            all.push(*report);
        }
    };
    let kernel = &mut kernel(machine);
    live_through(kernel, machine, &engine::library(), &ask, &mut update).expect("a measurement");
    all
}

/// The metrics after each interval.
fn texts(machine: &Machine, per_socket: bool) -> Vec<String> {
    let core = Arc::new(machine.core(&engine::library(), None).expect("a core"));
    let ask = HostAsk {
        uarch: None,
        core,
        interval: LENGTH,
        per_socket,
        cgroups: Vec::new(),
        commands: Vec::new(),
        estimates: Vec::new(),
    };
    let meter = Meter::prepare(machine, &engine::library(), ask).expect("a table");
    let exporter = Exporter::new(&meter.host(), LENGTH.as_secs_f64(), 2000);
    let found = Mutex::new((exporter, Vec::new()));
    let take = |update: engine::host::Update| {
        let (exporter, texts) = &mut *found.lock().expect("no panic");
        exporter.add(update.measurement, &update.rows);
        texts.push(exporter.text(Form::OpenMetrics).expect("a text"));
    };
    meter.measure_through(&mut kernel(machine), &take).expect("a measurement");
    found.into_inner().expect("no panic").1
}

#[test]
fn shares_are_those_that_the_report_prints() {
    let machine = machine();
    let (reports, texts) = (reports(&machine, false), texts(&machine, false));
    assert_eq!((reports.len(), texts.len()), (5, 5), "four intervals, and what is left");
    let mut compared = 0;
    for (report, text) in reports.iter().zip(&texts) {
        let metrics = parse(text);
        for node in &report.nodes {
            let level = node.level.to_string();
            let labels =
                [("scope", "host"), ("source", "counted"), ("node", &*node.id), ("level", &*level)];
            assert_eq!(metrics.value("tdtool_node_share", &labels), node.value, "{}", node.id);
            let missing = metrics.has("tdtool_not_measured", &[("node", &*node.id)]);
            assert_eq!(missing, node.value.is_none(), "{}", node.id);
            compared += usize::from(node.value.is_some());
        }
    }
    assert!(compared >= 5 * 4, "only {compared} shares were counted");
}

/// By hand: of 12 slots a nanosecond on each of two CPUs 4 retire, and 2 are not delivered.
#[test]
fn slots_add_up_to_the_scripted_ones() {
    let metrics = parse(texts(&machine(), false).last().expect("intervals"));
    let host = |name, node| metrics.sum(name, &[("scope", "host"), ("node", node)]);
    let slots = metrics.sum("tdtool_slots_total", &[("scope", "host")]);
    let seconds = LENGTH.as_secs_f64() * 4.5;
    let near = |got: f64, wanted: f64| (got / wanted - 1.0).abs() < 0.01;
    assert!(near(slots, 2.0 * 12e9 * seconds), "{slots}");
    for (node, share) in [("Retiring", 4.0 / 12.0), ("Frontend_Bound", 2.0 / 12.0)] {
        let of_node = host("tdtool_node_slots_total", node);
        assert!(near(of_node / slots, share), "{node}: {of_node} of {slots}");
    }
    let ipc = metrics.value("tdtool_ipc", &[("scope", "host")]);
    assert!(ipc.is_none_or(|ipc| near(ipc, 1.2)), "{ipc:?}");
    assert!(metrics.all(Kind::Counter).count() > 10);
}

#[test]
fn sockets_are_those_of_the_report_and_make_up_the_host() {
    let machine = machine();
    let (reports, texts) = (reports(&machine, true), texts(&machine, true));
    let metrics = parse(&texts[1]);
    let mut compared = 0;
    for node in &reports[1].nodes {
        let scope = node.place.scope.as_deref().expect("a socket");
        let socket = scope.strip_prefix("socket").expect("a number");
        let labels = [("scope", "socket"), ("socket", socket), ("node", &*node.id)];
        assert_eq!(metrics.value("tdtool_node_share", &labels), node.value, "{scope} {}", node.id);
        compared += usize::from(node.value.is_some());
    }
    assert!(compared >= 2 * 4, "only {compared} shares");
    let slots = |scope| metrics.sum("tdtool_slots_total", &[("scope", scope)]);
    // Each is scaled by the times of its own groups.
    assert!((slots("socket") / slots("host") - 1.0).abs() < 0.01);
    assert!(metrics.has("tdtool_node_share", &[("scope", "host"), ("node", "Retiring")]));
}
