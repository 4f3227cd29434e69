//! Finds the nodes that the sampled events locate and the event that a user means by `--by`, and writes folded
//! stacks and flame graphs of a profile, for files and pages.

use crate::hot::described;
use profile::counts::{Match, Names};
use profile::event::Event;
use profile::hot::Profile;
use profile::recording::About;
use report::documents::Report;
use report::documents::estimate::{Estimate, Part, Share};
use report::documents::report_code::{EventFunction, EventRow};
use report::flame::{self, Breakdown};
use std::path::Path;
use std::sync::Arc;
use tma::error::nearest;
use tma::tables::{Library, NodeKind, Table, select};
use tma::{Error, Result};

/// Functions listed for each event.
const LISTED: usize = 5;
/// `PERF_TYPE_RAW`.
const RAW: u32 = 4;

/// The tables of a recording, and the nodes of their trees that each event locates.
pub(crate) struct Located {
    tables: Vec<Arc<Table>>,
    /// By event: ids and labels.
    nodes: Vec<Vec<(String, String)>>,
}

impl Located {
    /// For a recording: with the table that is forced, that of its counts, or that of its processor.
    pub(crate) fn new(
        library: &Library,
        forced: Option<&str>,
        report: &Report,
        about: &About,
    ) -> Self {
        let names: Vec<String> = match forced {
            Some(name) => vec![name.to_owned()],
            None if !report.uarch.is_empty() => {
                report.uarch.split('+').map(str::to_owned).collect()
            }
            None => about.cpuid.as_deref().map(|id| described(library, id)).unwrap_or_default(),
        };
        let tables: Vec<Arc<Table>> =
            names.iter().filter_map(|name| library.load(name).ok()).collect();
        let resolvers: Vec<Names<'_>> = tables.iter().map(|table| Names::new(table)).collect();
        let of = |event: &Event| {
            let mut found: Vec<(String, String)> = Vec::new();
            for (table, names) in tables.iter().zip(&resolvers) {
                for node in nodes(table, names, event) {
                    if !found.contains(&node) {
                        found.push(node);
                    }
                }
            }
            found
        };
        let nodes = about.events.iter().map(of).collect();
        Self { tables, nodes }
    }

    /// The tables of the processor.
    pub(super) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// The event that `by` means: its name, or a node that it locates.
    ///
    /// # Errors
    /// None was sampled.
    pub(crate) fn chosen(&self, by: &str, events: &[Event]) -> Result<usize> {
        let plain = |name: &str| name.to_lowercase().replace([' ', '-'], "_");
        let without = |name: &str| match name.rsplit_once(':') {
            Some((base, letters)) if letters.bytes().all(|b| b"ukhgpP".contains(&b)) => {
                base.to_owned()
            }
            _ => name.to_owned(),
        };
        let named = |event: &Event| {
            let of = |name: &str| plain(name) == plain(by);
            of(&event.name) || of(&without(&event.name)) || self.same_event(by, event)
        };
        let is_node = |nodes: &Vec<(String, String)>| {
            nodes.iter().any(|(id, label)| plain(id) == plain(by) || plain(label) == plain(by))
        };
        let found = events.iter().position(named).or_else(|| self.nodes.iter().position(is_node));
        found.ok_or_else(|| self.not_sampled(by, events))
    }

    fn same_event(&self, by: &str, event: &Event) -> bool {
        self.tables.iter().any(|table| {
            let names = Names::new(table);
            let id = |name: &str| match names.resolve(name) {
                Match::Event { id, .. } => Some(id),
                _ => None,
            };
            id(by).is_some_and(|by| id(&event.name) == Some(by))
        })
    }

    fn not_sampled(&self, by: &str, events: &[Event]) -> Error {
        let sampled: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
        let error = Error::usage(format!("no sampled event locates {by}"));
        let mut locate: Vec<String> = Vec::new();
        for table in &self.tables {
            let nodes = select(table, by).unwrap_or_default();
            locate.extend(
                nodes.iter().flat_map(|n| table.nodes[usize::from(*n)].spec.locate.clone()),
            );
        }
        locate.dedup();
        let error = error.because(match locate.is_empty() {
            true => format!("the samples are of {}", sampled.join(", ")),
            false => {
                format!("{} would; the samples are of {}", locate.join(" or "), sampled.join(", "))
            }
        });
        let known = self.nodes.iter().flatten().map(|(id, _)| id.as_str());
        match nearest(by, known.chain(sampled.iter().copied())) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None if locate.is_empty() && self.tables.is_empty() => {
                error.hint("name the processor's table with --uarch, or a sampled event")
            }
            None => error.hint(
                "record it beside others: `tdtool record --node NODE -e cycles -o FILE -- COMMAND`",
            ),
        }
    }

    /// Rows of the events, if there are several.
    pub(super) fn rows(&self, profile: &Profile) -> Vec<EventRow> {
        let row = |(event, samples): (usize, u64)| EventRow {
            name: profile.events.get(event).cloned().unwrap_or_default(),
            samples,
            nodes: self.nodes.get(event).into_iter().flatten().map(|n| n.0.clone()).collect(),
            labels: self.nodes.get(event).into_iter().flatten().map(|n| n.1.clone()).collect(),
            functions: profile
                .by_event(event, LISTED)
                .into_iter()
                .map(|(function, of)| EventFunction::new(function, of))
                .collect(),
        };
        profile.event_samples().into_iter().enumerate().map(row).collect()
    }

    /// The nodes that the time of functions goes to, where they were counted and their events sampled: a node's slots
    /// are attributed to functions by their shares of its event.
    pub(super) fn breakdown(&self, report: &Report, profile: &Profile) -> Breakdown {
        let time = profile.time_event();
        let nodes: Vec<(usize, &str, f64)> = report
            .nodes
            .iter()
            .filter(|row| row.domain.as_deref() == Some("Slots") && !row.mismeasured)
            .filter_map(|row| {
                let event =
                    self.nodes.iter().position(|n| n.iter().any(|(id, _)| *id == row.id))?;
                Some((event, row.label.as_str(), row.value?))
            })
            .collect();
        let located = |id: &str| {
            report.nodes.iter().any(|row| {
                row.parent.as_deref() == Some(id) && nodes.iter().any(|n| n.1 == row.label)
            })
        };
        // Parents of located nodes would count twice.
        let labels: Vec<&str> = report
            .nodes
            .iter()
            .filter(|row| located(&row.id))
            .map(|row| row.label.as_str())
            .collect();
        let nodes: Vec<_> = nodes.into_iter().filter(|n| !labels.contains(&n.1)).collect();
        let (Some(time), false) = (time, nodes.is_empty()) else { return Breakdown::default() };
        let mut breakdown =
            Breakdown::of("counted, divided among functions by the samples of its event");
        for (index, function) in profile.functions.iter().enumerate() {
            let shares = profile.event_shares(index, std::slice::from_ref(&(0..u64::MAX)));
            let of = |event: usize| shares.get(event).map_or(0.0, |s| s.share);
            if of(time) > 0.0 {
                let part = |(event, label, value): &(usize, &str, f64)| {
                    ((*label).to_owned(), value * of(*event) / of(time))
                };
                let parts: Vec<(String, f64)> = nodes.iter().map(part).collect();
                breakdown.insert(&function.name, &function.module, &parts);
            }
        }
        breakdown
    }
}

/// The nodes of a table's tree that an event locates.
fn nodes(table: &Table, names: &Names<'_>, event: &Event) -> Vec<(String, String)> {
    let by_encoding = || {
        let extra = match event.config1 {
            0 => String::new(),
            value => format!(",config1={value:#x}"),
        };
        names.resolve(&format!("cpu/config={:#x}{extra}/", event.config))
    };
    let found = match names.resolve(&event.name) {
        Match::Unknown if event.kind == RAW => by_encoding(),
        found => found,
    };
    let Match::Event { id, .. } = found else { return Vec::new() };
    let same: Vec<&str> = std::iter::once(id)
        .chain(names.same_count(id))
        .map(|id| table.events[usize::from(id)].name.as_str())
        .collect();
    let locates = |n: &&tma::tables::Node| {
        n.kind == NodeKind::Tree && n.spec.locate.iter().any(|name| same.contains(&name.as_str()))
    };
    table.nodes.iter().filter(locates).map(|n| (n.id.to_string(), n.label.to_string())).collect()
}

/// The note on samples without call chains.
const NO_CHAINS: &str =
    "the samples have no call chains: every stack is one function; record with -g";

/// Where stacks go.
pub(super) struct Outputs<'a> {
    /// Folded; `-` is standard output.
    pub folded: Option<&'a Path>,
    /// Whether the last frame of a folded stack is a node.
    pub nodes: bool,
    /// As a flame graph.
    pub flame_graph: Option<&'a Path>,
    /// As a profile of pprof.
    pub pprof: Option<&'a Path>,
    /// In callgrind's format.
    pub callgrind: Option<&'a Path>,
    /// As samples over time in the report.
    pub timeline: bool,
    /// As a flame graph in the report.
    pub page: bool,
}

/// The estimated parts of the time of functions.
pub(super) fn estimated(estimate: &Estimate) -> Breakdown {
    let mut breakdown = Breakdown::of("estimated");
    for row in &estimate.functions {
        let named = |(part, of): (Part, &Share)| (part.label().to_owned(), of.value);
        let shares: Vec<(String, f64)> = row.parts.iter().map(named).collect();
        // Frames have the file's name.
        let module = row.module.rsplit('/').next().unwrap_or_default();
        breakdown.insert(&row.name, module, &shares);
    }
    breakdown
}

/// Writes folded stacks and a flame graph, where they are asked for.
pub(super) fn stacks(
    report: &mut Report,
    profile: &mut Profile,
    to: &Outputs<'_>,
    breakdown: &Breakdown,
) -> Result<()> {
    let stacks = profile.stacks();
    let files = [to.folded, to.flame_graph, to.pprof, to.callgrind];
    if files.iter().any(Option::is_some) && !profile.has_chains() {
        report.notes.push(NO_CHAINS.to_owned());
    }
    if let Some(path) = to.folded {
        let lines = flame::folded(&stacks, to.nodes.then_some(breakdown));
        flame::write_folded(&lines, path)?;
    }
    let is_other = to.pprof.is_some() || to.callgrind.is_some() || to.timeline;
    if to.flame_graph.is_some() || to.page || is_other {
        let mut notes = profile.notes.clone();
        if !profile.has_chains() {
            notes.push(NO_CHAINS.to_owned());
        }
        let about = flame::About { title: report.name(), event: profile.event.clone(), notes };
        if let Some(path) = to.pprof {
            let lined = profile.lined_stacks();
            flame::write_pprof(&flame::pprof(&lined, breakdown, &about), path)?;
        }
        if let Some(path) = to.callgrind {
            let costs = flame::calls(profile, &stacks, breakdown, &about);
            flame::write_callgrind(&costs, path)?;
        }
        if to.timeline {
            let taken = profile.timeline();
            report.timeline = Some(flame::timed(taken, breakdown, &about));
        }
        let graph = flame::graph(&stacks, breakdown, about);
        if let Some(path) = to.flame_graph {
            flame::write_flame_graph(&graph, path)?;
        }
        report.flame_graph = to.page.then_some(graph);
    }
    if breakdown.is_empty() && to.nodes {
        let note =
            "the nodes of folded stacks are not known: no node was counted or sampled by function";
        report.notes.push(note.to_owned());
    }
    Ok(())
}
