//! Requests, and a scripted kernel whose counts are known: rate × time, nothing else.

use pmu::machine::Machine;
use pmu::scripted::Scripted;
use pmu::{Command, CorePlan, Measurement, Request, Target, perf};
use std::collections::BTreeMap;
use tma::quantity::Missing;
use tma::tables::{EventId, Table};

/// Event n counts n per nanosecond.
pub fn kernel() -> Scripted {
    let rates: BTreeMap<u64, f64> = (1..=12).map(|n| (n, n as f64)).collect();
    Scripted { rates, ..Scripted::default() }
}

pub fn command() -> Option<Command> {
    Some(Command { argv: vec!["work".into()], ..Command::default() })
}

pub fn request<'a>(
    machine: &'a Machine,
    table: &'a Table,
    groups: &'a [Vec<EventId>],
    target: Target,
) -> Request<'a> {
    let plan = CorePlan { table, groups, pmu: Some("cpu".into()) };
    let mut request = Request::new(machine, vec![plan], target);
    if request.target == Target::Command {
        request.command = command();
    }
    request
}

pub fn run(kernel: &mut Scripted, request: &Request<'_>) -> Measurement {
    perf::measure_with(kernel, request, &mut |_| {}).expect("a measurement")
}

/// Group e(n) … as ids: event "e01" has id 0.
pub fn group(numbers: &[u16]) -> Vec<EventId> {
    numbers.iter().map(|n| n - 1).collect()
}

/// Scaled count of event number `n` in the first group that has it.
pub fn count(measured: &Measurement, core: usize, n: u16) -> Result<f64, Missing> {
    let groups = &measured.counts[core].groups;
    let id = n - 1;
    let at = groups.iter().find_map(|g| Some((g, g.events().position(|e| e == id)?)));
    let (group, at) = at.expect("the event is in a group");
    group.total(at)
}

pub fn near(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want, "{got} is not near {want}");
}

pub const SECOND: f64 = 1e9;
