//! A report → a window: its tree, counted or estimated, its functions and blocks, and the software counts.

use ::estimate::Parts;
use ::report::documents::Report;
use ::report::documents::estimate::{Estimate, Row};
use fleet::window::{Binary, Block, Count, Function, Host, Node, Owner, SCHEMA, Source, Window};
use pmu::Target;
use profile::event::EventKind;
use smol_str::{SmolStr, ToSmolStr as _};
use std::collections::BTreeMap;
use std::path::Path;
use tma::Address;

/// What a report does not say.
#[derive(Debug, Clone)]
pub struct About {
    /// The host.
    pub host: String,
    /// Begin, in milliseconds since 1970.
    pub start_ms: i64,
    /// Whether this is the time of a file.
    pub is_file_time: bool,
}

/// The window of a report.
pub(super) fn window(of: &Report, about: About) -> Window {
    let whole = Owner { command: command(of), ..Owner::default() };
    let cpu = software(of, "task_clock_ms").map(|ms| ms / 1e3);
    let is_system = matches!(of.target, Some(Target::System));
    let (begin, end) = of.interval.unwrap_or_default();
    let seconds = of.duration.or(of.interval.map(|_| end - begin));
    let mut window = Window {
        schema: SCHEMA.to_owned(),
        host: host(of, about.host),
        start_ms: about.start_ms.saturating_add((begin * 1e3) as i64),
        seconds,
        busy_seconds: cpu.filter(|_| is_system),
        cost_seconds: None,
        lost: of.sampled.as_ref().map(|sampled| sampled.lost),
        nodes: counted(of, &whole, cpu),
        functions: functions(of, &whole, cpu.filter(|_| !is_system)),
        blocks: blocks(of, &whole),
        counts: counts(of, &whole),
        notes: of.notes.clone(),
    };
    if let Some(estimate) = &of.estimate {
        window.nodes.extend(estimated(estimate, &whole, cpu));
    }
    if about.is_file_time {
        window.notes.push("the end is the time of the report's file".to_owned());
    }
    if seconds.is_none() {
        window.notes.push("the length is not known".to_owned());
    }
    window
}

fn host(of: &Report, name: String) -> Host {
    let uarch = Some(of.uarch.clone()).filter(|uarch| !uarch.is_empty());
    Host { name, uarch, processor: of.title.clone(), tool: of.tool.clone(), ..Host::default() }
}

/// The file name of the command that was measured.
fn command(of: &Report) -> Option<SmolStr> {
    let is_its = matches!(of.target, None | Some(Target::Command));
    let program = of.command.as_ref().filter(|_| is_its)?.first()?;
    Some(file_name(program))
}

fn file_name(path: &str) -> SmolStr {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.unwrap_or(path).to_smolstr()
}

fn software(of: &Report, name: &str) -> Option<f64> {
    of.software.get(name).copied().flatten()
}

/// The counted tree of the whole measurement; parts of it are left out.
fn counted(of: &Report, whole: &Owner, cpu: Option<f64>) -> Vec<Node> {
    let rows = of.nodes.iter().filter(|row| row.place.scope.is_none() && row.place.core.is_none());
    let node = rows.map(|row| Node {
        owner: whole.clone(),
        node: row.id.clone(),
        parent: row.parent.clone(),
        level: row.level,
        share: row.value,
        interval: row.value.zip(row.error).map(|(value, error)| (value - error, value + error)),
        slots: None,
        cpu_seconds: cpu,
        source: Source::Counted,
        missing: row.missing.clone(),
    });
    // Nodes that were not counted stand for themselves only where nothing was estimated in their place.
    node.filter(|node| node.share.is_some() || of.estimate.is_none()).collect()
}

/// The estimated trees: of the program, and of each of its files.
fn estimated(of: &Estimate, whole: &Owner, cpu: Option<f64>) -> Vec<Node> {
    let time = |share: f64| cpu.map(|cpu| cpu * share);
    let mut nodes = tree(&of.program.parts, whole, time(of.covered));
    let mut files: BTreeMap<SmolStr, Vec<&Row>> = BTreeMap::new();
    let divided = of.functions.iter().filter(|row| row.start.is_some() && row.share > 0.0);
    divided.for_each(|row| files.entry(file_name(&row.module)).or_default().push(row));
    for (module, rows) in files {
        let parts = Parts::sum(rows.iter().map(|row| (row.share, &row.parts)));
        let share = rows.iter().map(|row| row.share).sum();
        nodes.extend(tree(&parts, &owner(whole, module), time(share)));
    }
    nodes
}

/// The nodes of an estimated tree, by the names of Intel's.
fn tree(parts: &Parts, owner: &Owner, cpu: Option<f64>) -> Vec<Node> {
    let mut above: Vec<SmolStr> = Vec::new();
    let nodes = parts.tree().into_iter().map(|of| {
        let node = SmolStr::from(of.label.replace(' ', "_"));
        above.truncate(of.depth);
        let parent = above.last().cloned();
        above.push(node.clone());
        let share = of.share;
        let has_value = share.has_value();
        let why = share.reason.as_ref().map(ToString::to_string).filter(|_| !has_value);
        Node {
            owner: owner.clone(),
            node,
            parent,
            level: of.depth as u32 + 1,
            share: has_value.then_some(share.value),
            interval: Some((share.low, share.high)),
            slots: None,
            cpu_seconds: cpu,
            source: Source::Estimated,
            missing: why.or_else(|| (!has_value).then(|| "not known".to_owned())),
        }
    });
    nodes.collect()
}

/// `whole`, in a file of its own.
fn owner(whole: &Owner, module: impl Into<SmolStr>) -> Owner {
    Owner { binary: Some(Binary { build_id: None, module: module.into() }), ..whole.clone() }
}

fn functions(of: &Report, whole: &Owner, cpu: Option<f64>) -> Vec<Function> {
    let event = of.sampled.as_ref().map(|sampled| sampled.event.to_smolstr()).unwrap_or_default();
    // Samples of other events are not in proportion to time.
    let is_time = matches!(EventKind::of(&event), EventKind::Time | EventKind::Cycles);
    let cpu = cpu.filter(|_| is_time);
    let starts = starts(of);
    let rows = of.functions.iter().map(|row| Function {
        owner: owner(whole, row.module.as_str()),
        start: starts
            .get(&(row.name.as_str(), row.module.to_smolstr()))
            .copied()
            .unwrap_or_default(),
        name: Some(row.name.clone()),
        event: event.clone(),
        samples: row.samples,
        cpu_seconds: cpu.map(|cpu| cpu * row.share),
    });
    rows.collect()
}

/// The first addresses of functions, as far as an estimate has them; 0, where no code is, stands for others.
fn starts(of: &Report) -> BTreeMap<(&str, SmolStr), Address> {
    let rows = of.estimate.iter().flat_map(|estimate| &estimate.functions);
    let known =
        rows.filter_map(|row| Some(((row.name.as_str(), file_name(&row.module)), row.start?)));
    known.collect()
}

fn blocks(of: &Report, whole: &Owner) -> Vec<Block> {
    let starts = starts(of);
    let rows = of.blocks.iter().map(|row| {
        let code = &row.code;
        let function = (code.function.as_str(), code.module.to_smolstr());
        Block {
            owner: owner(whole, code.module.as_str()),
            function: starts.get(&function).copied().unwrap_or_default(),
            start: code.start,
            end: code.end,
            samples: code.samples,
            cycles: row.measured.as_ref().and_then(|measured| measured.cycles),
        }
    });
    rows.collect()
}

fn counts(of: &Report, whole: &Owner) -> Vec<Count> {
    let rows = of.software.iter().map(|(event, value)| Count {
        owner: whole.clone(),
        event: event.to_smolstr(),
        value: *value,
        source: Source::Counted,
        missing: of.software_missing.get(event).cloned(),
    });
    rows.collect()
}
