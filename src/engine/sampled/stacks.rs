//! Folded stacks and flame graphs of a profile, for files and pages.

use profile::hot::Profile;
use report::documents::Report;
use report::documents::estimate::{Estimate, Part, Share};
use report::flame::{self, Breakdown};
use std::path::Path;
use tma::Result;

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
