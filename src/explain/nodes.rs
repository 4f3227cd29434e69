//! Bounds and verdict under the names of the top-down tree.

use super::evidence::{DEPENDENCY, FORWARDING, FRONT_END, Found, PORTS, SLOTS};
use super::model::{Class, Judgement};
use crate::block::{Hierarchy, Node, Report};

/// A node that tables may have, and the bound that it stands for.
struct Place {
    id: &'static str,
    label: &'static str,
    /// Label of its parent.
    parent: Option<&'static str>,
    class: Option<Class>,
    /// The largest of these bounds.
    bounds: &'static [&'static str],
}

/// The tree's nodes that bounds speak of; level 1 has the ids of the processor's table.
const PLACES: [Place; 9] = [
    place("Retiring", "Retiring", None, Some(Class::IssueWidth), &[SLOTS]),
    place("Frontend_Bound", "Frontend Bound", None, None, &[FRONT_END]),
    place(
        "Fetch_Bandwidth",
        "Fetch Bandwidth",
        Some("Frontend Bound"),
        Some(Class::FrontEnd),
        &[FRONT_END],
    ),
    place("Backend_Bound", "Backend Bound", None, None, &[PORTS, DEPENDENCY]),
    place("Core_Bound", "Core Bound", Some("Backend Bound"), None, &[PORTS, DEPENDENCY]),
    place("Ports_Utilization", "Ports", Some("Core Bound"), Some(Class::Ports), &[PORTS]),
    place("Dependency", "Dependency", Some("Core Bound"), Some(Class::Dependency), &[DEPENDENCY]),
    place("L1_Bound", "L1 Bound", Some("Backend Bound"), None, &[FORWARDING]),
    place(
        "Store_Fwd_Blk",
        "Store Forward",
        Some("L1 Bound"),
        Some(Class::StoreForwarding),
        &[FORWARDING],
    ),
];

const fn place(
    id: &'static str,
    label: &'static str,
    parent: Option<&'static str>,
    class: Option<Class>,
    bounds: &'static [&'static str],
) -> Place {
    Place { id, label, parent, class, bounds }
}

/// Puts what was found into the report.
pub fn enter(report: &mut Report, found: &Found, judgement: &Judgement, jumps: bool) {
    let bounds: Vec<Option<f64>> = {
        let all = || found.bounds.iter().chain(&report.bounds);
        let largest = |place: &Place| {
            let own = all().filter(|b| place.bounds.contains(&b.name));
            own.map(|b| b.cycles).reduce(f64::max)
        };
        PLACES.iter().map(largest).collect()
    };
    let measured = report.hierarchy.is_measured();
    let disagreement = disagreement(&report.hierarchy, judgement.class);
    for (place, bound) in PLACES.iter().zip(bounds) {
        let known = report.hierarchy.nodes.iter_mut().find(|n| n.label == place.label);
        match known {
            Some(node) => {
                node.bound = bound;
                node.is_verdict = place.class == Some(judgement.class);
            }
            None if !measured || bound.is_some() => {
                let parent = place.parent.map(|label| id_of(&report.hierarchy, label));
                let node = Node {
                    id: place.id.to_owned(),
                    label: place.label.to_owned(),
                    parent,
                    reason: Some("a bound is no share of the slots".to_owned()),
                    bound,
                    is_verdict: place.class == Some(judgement.class),
                    ..Node::default()
                };
                report.hierarchy.nodes.push(node);
            }
            None => {}
        }
    }
    let form = match found.form {
        "loop" => " of the loop form",
        _ => "",
    };
    let jump = if jumps { ", without its jump" } else { "" };
    let verdict = format!("{}{form}{jump}: {}", judgement.class.name(), judgement.why);
    report.hierarchy.bound = Some(judgement.class.name());
    report.hierarchy.verdict = match (measured, disagreement) {
        (true, Some(differs)) => format!("{verdict}; {differs}"),
        _ => verdict,
    };
    report.bounds.extend(found.bounds.iter().cloned());
}

/// Says why there is no verdict.
pub fn not_explained(report: &mut Report, why: &str) {
    report.hierarchy.verdict += &format!("; no verdict: {why}");
}

fn id_of(hierarchy: &Hierarchy, label: &str) -> String {
    let known = hierarchy.nodes.iter().find(|n| n.label == label).map(|n| n.id.clone());
    let usual = || PLACES.iter().find(|p| p.label == label).map(|p| p.id.to_owned());
    known.or_else(usual).unwrap_or_else(|| label.to_owned())
}

/// Where counters have the block's slots go, if that contradicts the verdict.
fn disagreement(hierarchy: &Hierarchy, class: Class) -> Option<String> {
    let expected = match class {
        Class::FrontEnd => "Frontend Bound",
        Class::IssueWidth => "Retiring",
        Class::Ports | Class::Dependency | Class::StoreForwarding => "Backend Bound",
        Class::Undecided | Class::Unexplained => return None,
    };
    let level_1 = hierarchy.nodes.iter().filter(|n| n.parent.is_none());
    let largest = level_1
        .filter_map(|n| Some((n.label.as_str(), n.share?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (largest.0 != expected).then(|| {
        format!(
            "the counters disagree: {} has most of the slots, {:.0} %",
            largest.0,
            100.0 * largest.1
        )
    })
}
