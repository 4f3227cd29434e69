//! Enters bounds and verdict into the nodes of the top-down tree.

use super::cycles::Cycles;
use super::explainer::Findings;
use crate::measurement::bound_names::{
    CAUSES, DEPENDENCY, FORWARDING, FRONT_END, L1_ACCESS, PORTS, SLOTS, WIDTH,
};
use crate::measurement::{Class, Verdict};
use crate::{Hierarchy, Measurement, Node};
use tma::tables::Level1;

/// A node of the tree, and the bounds that belong to it.
struct BoundNode {
    id: &'static str,
    label: &'static str,
    /// Label of its parent.
    parent: Option<&'static str>,
    class: Option<Class>,
    /// The largest of these bounds.
    bounds: &'static [&'static str],
}

/// The node of assists, which only a block has that is bound by them.
const ASSISTS: &str = "Assists";

/// The nodes with bounds; level 1 has the ids of the processor's table.
const BOUND_NODES: [BoundNode; 10] = [
    bound_node("Retiring", "Retiring", None, Some(Class::IssueWidth), &[SLOTS, WIDTH]),
    bound_node(ASSISTS, ASSISTS, Some("Retiring"), None, &CAUSES),
    bound_node("Frontend_Bound", "Frontend Bound", None, None, &[FRONT_END]),
    bound_node(
        "Fetch_Bandwidth",
        "Fetch Bandwidth",
        Some("Frontend Bound"),
        Some(Class::FrontEnd),
        &[FRONT_END],
    ),
    bound_node("Backend_Bound", "Backend Bound", None, None, &[PORTS, DEPENDENCY]),
    bound_node("Core_Bound", "Core Bound", Some("Backend Bound"), None, &[PORTS, DEPENDENCY]),
    bound_node("Ports_Utilization", "Ports", Some("Core Bound"), Some(Class::Ports), &[PORTS]),
    bound_node(
        "Dependency",
        "Dependency",
        Some("Core Bound"),
        Some(Class::Dependency),
        &[DEPENDENCY],
    ),
    bound_node(
        "L1_Bound",
        "L1 Bound",
        Some("Backend Bound"),
        Some(Class::L1Access),
        &[FORWARDING, L1_ACCESS],
    ),
    bound_node(
        "Store_Fwd_Blk",
        "Store Forward",
        Some("L1 Bound"),
        Some(Class::StoreForwarding),
        &[FORWARDING],
    ),
];

const fn bound_node(
    id: &'static str,
    label: &'static str,
    parent: Option<&'static str>,
    class: Option<Class>,
    bounds: &'static [&'static str],
) -> BoundNode {
    BoundNode { id, label, parent, class, bounds }
}

/// Enters bounds and verdict into the nodes. The verdict gets what could not be measured, and whether counters
/// disagree.
pub fn enter(measurement: &mut Measurement, findings: &Findings, verdict: Verdict) -> Verdict {
    let bounds: Vec<Option<Cycles>> = {
        let all = || findings.bounds.iter().chain(&measurement.bounds);
        let largest = |spec: &BoundNode| {
            let own = all().filter(|b| spec.bounds.contains(&b.name) && !b.refuted);
            own.map(Cycles::of_bound).reduce(Cycles::max)
        };
        BOUND_NODES.iter().map(largest).collect()
    };
    let measured = measurement.hierarchy.is_measured();
    let disagreement = disagreement(&measurement.hierarchy, verdict.class);
    let by_assists = matches!(verdict.class, Class::Assist(_));
    for (spec, bound) in BOUND_NODES.iter().zip(bounds) {
        if spec.id == ASSISTS && !by_assists {
            continue;
        }
        let is_verdict = spec.class == Some(verdict.class) || spec.id == ASSISTS;
        let known = measurement.hierarchy.nodes.iter_mut().find(|n| n.label == spec.label);
        match known {
            Some(node) => {
                set_bound(node, bound);
                node.is_verdict = is_verdict;
            }
            None if !measured || bound.is_some() => {
                let parent = spec.parent.map(|label| id_of(&measurement.hierarchy, label));
                let mut node = Node {
                    id: spec.id.to_owned(),
                    label: spec.label.to_owned(),
                    parent,
                    reason: Some("a bound is not a share of slots".to_owned()),
                    is_verdict,
                    ..Node::default()
                };
                set_bound(&mut node, bound);
                measurement.hierarchy.nodes.push(node);
            }
            None => {}
        }
    }
    in_tree_order(&mut measurement.hierarchy.nodes);
    let mut why = verdict.why;
    if !findings.missing.is_empty() {
        why += &format!("; not measured: {}", findings.missing.join("; "));
    }
    if let (true, Some(differs)) = (measured, disagreement) {
        why += &format!("; {differs}");
    }
    measurement.bounds.extend(findings.bounds.iter().cloned());
    Verdict { why, ..verdict }
}

fn set_bound(node: &mut Node, bound: Option<Cycles>) {
    node.bound = bound.map(|cycles| cycles.best);
    (node.bound_low, node.bound_high) = (bound.map(|c| c.low), bound.map(|c| c.high));
}

/// Sorts parents before their children, children after their parent in their original order.
fn in_tree_order(nodes: &mut Vec<Node>) {
    let ids: Vec<String> = nodes.iter().map(|n| n.id.clone()).collect();
    // Nodes without a known parent are roots.
    let mut pending: Vec<Node> = Vec::new();
    let is_root = |n: &Node| n.parent.as_ref().is_none_or(|p| !ids.contains(p));
    for node in std::mem::take(nodes) {
        match is_root(&node) {
            true => nodes.push(node),
            false => pending.push(node),
        }
    }
    let mut at = 0;
    while at < nodes.len() {
        let id = Some(nodes[at].id.clone());
        let (children, others): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|n| n.parent == id);
        nodes.splice(at + 1..at + 1, children);
        pending = others;
        at += 1;
    }
    // A cycle of parents has no root; it keeps its order.
    nodes.extend(pending);
}

fn id_of(hierarchy: &Hierarchy, label: &str) -> String {
    let known = hierarchy.nodes.iter().find(|n| n.label == label).map(|n| n.id.clone());
    let usual = || BOUND_NODES.iter().find(|p| p.label == label).map(|p| p.id.to_owned());
    known.or_else(usual).unwrap_or_else(|| label.to_owned())
}

/// The node with the most slots by the counters, if that contradicts the verdict.
fn disagreement(hierarchy: &Hierarchy, class: Class) -> Option<String> {
    let expected = match class {
        Class::FrontEnd => Level1::FrontendBound,
        Class::IssueWidth => Level1::Retiring,
        Class::Ports | Class::Dependency | Class::StoreForwarding | Class::L1Access => {
            Level1::BackendBound
        }
        Class::Assist(_) | Class::Undecided | Class::Unexplained => return None,
    };
    let level_1 = hierarchy.nodes.iter().filter(|n| n.parent.is_none());
    let (largest, share) =
        level_1.filter_map(|n| Some((n, n.share?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (Level1::of(&largest.id) != Some(expected)).then(|| {
        format!(
            "the counters disagree: {} has the largest share of slots, {:.0} %",
            largest.label,
            100.0 * share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::model::Evidence;
    use crate::{Bound, Measurement, rejected};
    use isa::deps::{Analysis, Code};

    fn findings(bounds: &[(&'static str, f64)]) -> Findings {
        let bound = |(name, cycles): &(&'static str, f64)| {
            let how = "measured".to_owned();
            Bound { name, cycles: *cycles, low: *cycles, high: *cycles, how, ..Bound::default() }
        };
        Findings {
            evidence: Evidence { time: Cycles::exact(3.0), ..Evidence::default() },
            bounds: bounds.iter().map(bound).collect(),
            analysis: Analysis::default(),
            code: Code::of_bytes(&[0x90], tma::Core::default().facts()).unwrap(),
            form: "unrolled",
            missing: vec!["slots: unstable".to_owned()],
        }
    }

    #[test]
    fn a_refuted_bound_is_in_no_node() {
        let mut measurement = measurement();
        let mut findings = findings(&[(PORTS, 2.0), (DEPENDENCY, 22.0)]);
        findings.bounds[1].refuted = true;
        enter(&mut measurement, &findings, judged(Class::Unexplained));
        let of =
            |label: &str| measurement.hierarchy.nodes.iter().find(|n| n.label == label).unwrap();
        assert_eq!(of("Dependency").bound, None);
        assert_eq!(of("Core Bound").bound, Some(2.0));
        assert_eq!(measurement.bounds.len(), 2);
    }

    fn judged(class: Class) -> Verdict {
        Verdict { class, why: "so it is".to_owned() }
    }

    /// A document with level 1 as the abstract tree has it, without counts.
    fn measurement() -> Measurement {
        let mut measurement = rejected("90", "made up".to_owned(), &tma::Core::default());
        let level_1 = ["Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"];
        let named: Vec<_> = level_1.map(|id| (id.to_owned(), id.replace('_', " "))).into();
        measurement.hierarchy = Hierarchy::not_measured("no PMU counts here", &named);
        measurement
    }

    #[test]
    fn children_follow_their_parents() {
        let mut measurement = measurement();
        let findings = findings(&[(PORTS, 1.0), (DEPENDENCY, 3.0)]);
        let verdict = enter(&mut measurement, &findings, judged(Class::Dependency));
        let labels: Vec<_> = measurement.hierarchy.nodes.iter().map(|n| n.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "Frontend Bound",
                "Fetch Bandwidth",
                "Bad Speculation",
                "Backend Bound",
                "Core Bound",
                "Ports",
                "Dependency",
                "L1 Bound",
                "Store Forward",
                "Retiring"
            ]
        );
        let of =
            |label: &str| measurement.hierarchy.nodes.iter().find(|n| n.label == label).unwrap();
        assert!(of("Dependency").is_verdict && !of("Ports").is_verdict);
        assert_eq!(of("Core Bound").bound, Some(3.0));
        assert_eq!(of("Store Forward").bound, None);
        assert_eq!(verdict.class, Class::Dependency);
        assert_eq!(verdict.why, "so it is; not measured: slots: unstable");
    }

    #[test]
    fn counters_stand_beside_the_bounds_and_may_disagree() {
        let counted = |backend: f64| {
            let mut measurement = measurement();
            let shares = [0.1, 0.0, backend, 0.9 - backend];
            for (node, share) in measurement.hierarchy.nodes.iter_mut().zip(shares) {
                (node.share, node.reason) = (Some(share), None);
            }
            measurement.hierarchy.nodes.push(Node {
                id: "Core_Bound".to_owned(),
                label: "Core Bound".to_owned(),
                parent: Some("Backend_Bound".to_owned()),
                share: Some(backend),
                ..Node::default()
            });
            let findings = findings(&[(DEPENDENCY, 3.0)]);
            let verdict = enter(&mut measurement, &findings, judged(Class::Dependency));
            (measurement.hierarchy, verdict.why)
        };
        let (agrees, why) = counted(0.8);
        assert!(!why.contains("disagree"), "{why}");
        let core = agrees.nodes.iter().find(|n| n.label == "Core Bound").unwrap();
        assert_eq!((core.share, core.bound), (Some(0.8), Some(3.0)));
        let position = |label: &str| agrees.nodes.iter().position(|n| n.label == label);
        assert_eq!(position("Dependency"), position("Core Bound").map(|at| at + 1));
        let (_, why) = counted(0.2);
        assert!(why.contains("Retiring has the largest share of slots, 70 %"), "{why}");
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let node = |id: &str, parent: &str| Node {
            id: id.to_owned(),
            parent: Some(parent.to_owned()),
            ..Node::default()
        };
        let mut nodes = vec![node("a", "b"), node("b", "a")];
        in_tree_order(&mut nodes);
        assert_eq!(nodes.len(), 2);
    }
}
