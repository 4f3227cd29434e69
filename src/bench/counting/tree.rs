//! Levels 1 and 2 of the block's top-down tree, each event group in separate runs.

use super::events::{Refused, refusal};
use super::{Counter, Sample, Stop};
use crate::counters::CorePmu;
use crate::measurement::{Hierarchy, Node};
use crate::stats::median;
use pmu::machine::Encoding;
use pmu::perf;
use tma::counts::{Counts, GroupCounts, Reading};
use tma::quantity::Missing;
use tma::tables::{EventId, Table};
use tma::tree::{Evaluation, Evaluator, Flags};
use tma::{Result, schedule};

/// Measures and evaluates the tree.
pub(super) fn measure(core: &CorePmu, counter: &mut Counter<'_>) -> Result<Hierarchy> {
    let Some(table) = &core.table else {
        let why = "no event table describes this processor";
        return Ok(Hierarchy::not_measured(why, &tma::Core::default().level_1()));
    };
    let mut groups = Vec::new();
    let mut pending: Vec<Vec<EventId>> = core.groups.iter().rev().cloned().collect();
    while let Some(events) = pending.pop() {
        let mut coded: Vec<(EventId, Encoding)> = Vec::new();
        for id in &events {
            match perf::code(table, *id, &core.pmu, core.smt) {
                Ok(event) => coded.push((*id, event.encoding)),
                Err(why) => groups.push(GroupCounts::Missing { events: vec![*id], why }),
            }
        }
        if coded.is_empty() {
            continue;
        }
        let encodings: Vec<Encoding> = coded.iter().map(|(_, e)| *e).collect();
        let ids: Vec<EventId> = coded.iter().map(|(id, _)| *id).collect();
        match counter.group(&encodings)? {
            Ok(samples) => groups.push(live(ids, &samples)),
            Err(stop) => pending.extend(retry(core, table, ids, &stop, &mut groups)),
        }
    }
    Ok(evaluate(core, table, groups))
}

/// The groups to try instead of one that could not be counted; events given up go to `missing`.
fn retry(
    core: &CorePmu,
    table: &Table,
    events: Vec<EventId>,
    stop: &Stop,
    missing: &mut Vec<GroupCounts>,
) -> Vec<Vec<EventId>> {
    let name = |id: &EventId| table.events[usize::from(*id)].name.clone();
    match stop {
        // Too large for this kernel, or an unsupported event: smaller groups will show.
        Stop::Refused(Refused { at, errno: nix::errno::Errno::EINVAL }) if *at > 0 => {
            halves(core, table, &events, *at)
        }
        Stop::Refused(Refused { at, errno }) => {
            let mut rest = events;
            let refused = rest.remove((*at).min(rest.len() - 1));
            let why =
                Missing::NotSupported(format!("{} ({})", name(&refused), refusal(*errno)).into());
            missing.push(GroupCounts::Missing { events: vec![refused], why });
            if rest.is_empty() { Vec::new() } else { vec![rest] }
        }
        Stop::Starved if events.len() > 1 => halves(core, table, &events, events.len() / 2),
        Stop::Starved => {
            let why = Missing::NotCounted(name(&events[0]).into());
            missing.push(GroupCounts::Missing { events, why });
            Vec::new()
        }
        other => {
            let why = Missing::NotMeasured(other.to_string().into());
            missing.push(GroupCounts::Missing { events, why });
            Vec::new()
        }
    }
}

/// Two smaller groups, split by the planner if it can, else at `at`. In reverse order, for a stack.
fn halves(core: &CorePmu, table: &Table, events: &[EventId], at: usize) -> Vec<Vec<EventId>> {
    let group = schedule::Group { events: events.to_vec() };
    let halves: Vec<Vec<EventId>> = core
        .budget
        .as_ref()
        .map(|b| schedule::split(&group, table, b).into_iter().map(|g| g.events).collect())
        .unwrap_or_default();
    let smaller = halves.len() > 1 && halves.iter().all(|h| h.len() < events.len());
    let parts = if smaller { halves } else { vec![events[..at].to_vec(), events[at..].to_vec()] };
    parts.into_iter().rev().collect()
}

/// The differences as readings; negative ones are noise and count as 0.
fn live(events: Vec<EventId>, samples: &[Sample]) -> GroupCounts {
    let reading = |s: &Sample| {
        let time = u64::try_from(s.time).unwrap_or(0).max(1);
        let values = s.counts.iter().map(|c| u64::try_from(*c).unwrap_or(0)).collect();
        Reading { enabled: time, running: time, values }
    };
    let readings: Vec<Reading> = samples.iter().map(reading).collect();
    let enabled = readings.iter().map(|r| r.enabled).sum();
    GroupCounts::Live { events, readings, enabled }
}

/// The tree of the n-th repetition alone.
fn only(groups: &[GroupCounts], n: usize) -> Vec<GroupCounts> {
    let one = |group: &GroupCounts| match group {
        GroupCounts::Live { events, readings, .. } => {
            let reading = readings[n % readings.len()].clone();
            let enabled = reading.enabled;
            GroupCounts::Live { events: events.clone(), readings: vec![reading], enabled }
        }
        other => other.clone(),
    };
    groups.iter().map(one).collect()
}

fn evaluate(core: &CorePmu, table: &Table, groups: Vec<GroupCounts>) -> Hierarchy {
    let live = |g: &&GroupCounts| matches!(g, GroupCounts::Live { .. });
    let (counted, repetitions) = (
        groups.iter().filter(live).count(),
        groups.iter().filter(live).map(readings).max().unwrap_or(0),
    );
    let counts = |groups| Counts { groups, constants: core.constants, ..Counts::default() };
    let mut evaluator = Evaluator::new(table);
    let whole = evaluator.evaluate(&counts(groups.clone()));
    let single: Vec<Evaluation> =
        (0..repetitions).map(|n| evaluator.values(&counts(only(&groups, n)))).collect();
    let nodes: Vec<Node> =
        core.nodes().into_iter().map(|n| node(table, n, &whole, &single)).collect();
    let counted = if counted == 0 {
        let why = nodes.iter().find_map(|n| n.reason.clone()).unwrap_or_default();
        format!("not measured: {}", Missing::reason(&why))
    } else {
        let how =
            format!("{counted} event groups in separate runs, {repetitions} repetitions each");
        format!("{}; {how}", bottleneck(core, table, &whole))
    };
    Hierarchy { counted, explanation: None, nodes }
}

fn readings(group: &GroupCounts) -> usize {
    match group {
        GroupCounts::Live { readings, .. } => readings.len(),
        _ => 0,
    }
}

/// A node: the median of the repetitions, the lowest and the highest.
fn node(table: &Table, n: u16, whole: &Evaluation, single: &[Evaluation]) -> Node {
    let at = usize::from(n);
    let spec = &table.nodes[at];
    let values: Vec<f64> = single.iter().filter_map(|e| e.nodes[at].quantity.get()).collect();
    let value = median(&values);
    let share = value.is_finite().then_some(value);
    let reason = match (share, &whole.nodes[at].quantity.value) {
        (Some(_), _) => None,
        (None, Err(why)) => Some(why.to_string()),
        (None, Ok(_)) => Some("undefined in every repetition".to_owned()),
    };
    Node {
        id: spec.id.to_string(),
        label: spec.label.to_string(),
        parent: spec.parent.map(|p| table.nodes[usize::from(p)].id.to_string()),
        share,
        low: values.iter().copied().reduce(f64::min),
        high: values.iter().copied().reduce(f64::max),
        reason,
        ..Node::default()
    }
}

/// The bottleneck as text.
fn bottleneck(core: &CorePmu, table: &Table, evaluation: &Evaluation) -> String {
    let shown = core.nodes();
    let flags = Flags::among(table, evaluation, |n| shown.contains(&n));
    let label = |n: u16| table.nodes[usize::from(n)].label.as_str();
    let path: Vec<&str> = flags.path.iter().map(|n| label(*n)).collect();
    let path = path.join(" > ");
    match (flags.undecided, path.is_empty()) {
        (Some(u), true) => format!("undecided: {} or {}", label(u.first), label(u.second)),
        (Some(u), false) => {
            format!("bottleneck {path}; undecided below: {} or {}", label(u.first), label(u.second))
        }
        (None, false) => format!("bottleneck {path}"),
        (None, true) => "no node over its threshold".to_owned(),
    }
}
