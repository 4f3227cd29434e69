//! Zen 1 to 3: no event counts slots, so every node is an estimate and says how it errs.
//!
//! Available events: ops dispatched and ops retired (their difference never retired), cycles with an empty op queue
//! (nothing to dispatch), and cycles in which a dispatch group waited for tokens of a full resource (these overlap).

use super::slots::{Generation, Vendor};
use anyhow::{Result, ensure};
use tma::tables::schema::NodeSpec;

/// A resource whose lack of tokens holds up dispatch.
struct Resource {
    id: &'static str,
    label: &'static str,
    /// Without the common prefix `de_dis_dispatch_token_stalls`.
    stalls: &'static [&'static str],
}

const RETIRED: &str =
    "Ops retired over width x cycles. With SMT the other thread's slots count as unused.";
const SPECULATION: &str = "Ops dispatched minus ops retired, over width x cycles: ops in flight at the \
                           edges count too, and slots lost to recovery are not in it.";
const QUEUE: &str = "Share of cycles with an empty op queue: leaves out cycles in which too few ops \
                     came, and takes in the refill after a mispredict.";
const REST: &str = "What the other level-1 estimates leave over; takes in all their errors, and with \
                    SMT the other thread's slots.";
const SPLIT: &str =
    "Bad speculation split by retired mispredicts and resyncs, as if each cost the same.";

/// Zen 1: only dispatched and retired ops and some tokens; no event shows an idle front end.
pub fn zen1(g: &Generation, vendor: &Vendor) -> Result<Vec<NodeSpec>> {
    let rest = "frontend_or_backend_bound";
    let mut nodes = speculation(g, "uops_dispatched");
    nodes.push(NodeSpec {
        label: Some("Frontend or Backend Bound".into()),
        estimate: Some(format!("{REST} No event of Zen 1 tells the two ends apart.").into()),
        ..top(rest, "1 - (bad_speculation + retiring)", "> 0.35", REST)
    });
    let resources = [
        Resource {
            id: "backend_bound_memory",
            label: "Address Generation",
            stalls: &["0.agsq_token_stall"],
        },
        Resource {
            id: "backend_bound_integer",
            label: "Integer Resources",
            stalls: &[
                "0.alu_token_stall",
                "0.alsq1_token_stall",
                "0.alsq2_token_stall",
                "0.alsq3_token_stall",
                "0.alsq3_0_token_stall",
            ],
        },
        Resource {
            id: "backend_bound_retire",
            label: "Retire Queue",
            stalls: &["0.retire_token_stall"],
        },
    ];
    nodes.extend(tokens(rest, "> 0.35", &resources, "", vendor)?);
    nodes.push(retiring(g));
    Ok(nodes)
}

/// Zen 2: with the op queue and every kind of token.
pub fn zen2(g: &Generation, vendor: &Vendor) -> Result<Vec<NodeSpec>> {
    let resources = [
        Resource {
            id: "backend_bound_memory",
            label: "Load and Store Queues",
            stalls: &[
                "1.load_queue_token_stall",
                "1.store_queue_token_stall",
                "0.agsq_token_stall",
            ],
        },
        Resource {
            id: "backend_bound_integer",
            label: "Integer Resources",
            stalls: &[
                "1.int_phy_reg_file_token_stall",
                "0.alu_token_stall",
                "0.alsq1_token_stall",
                "0.alsq2_token_stall",
                "0.alsq3_0_token_stall",
            ],
        },
        Resource {
            id: "backend_bound_fp",
            label: "FP Resources",
            stalls: &["1.fp_sch_rsrc_stall", "1.fp_reg_file_rsrc_stall", "1.fp_misc_rsrc_stall"],
        },
        Resource {
            id: "backend_bound_retire",
            label: "Retire Queue",
            stalls: &["0.retire_token_stall"],
        },
    ];
    with_queue(g, "uops_dispatched", &resources, "", vendor)
}

/// Zen 3: as Zen 2, with macro-ops and unified schedulers.
pub fn zen3(g: &Generation, vendor: &Vendor) -> Result<Vec<NodeSpec>> {
    let dispatched = "de_dis_cops_from_decoder.disp_op_type.any_integer_dispatch \
                      + de_dis_cops_from_decoder.disp_op_type.any_fp_dispatch";
    let resources = [
        Resource {
            id: "backend_bound_memory",
            label: "Load and Store Queues",
            stalls: &["1.load_queue_rsrc_stall", "1.store_queue_rsrc_stall", "2.agsq_token_stall"],
        },
        Resource {
            id: "backend_bound_integer",
            label: "Integer Resources",
            stalls: &[
                "1.int_phy_reg_file_rsrc_stall",
                "2.int_sch0_token_stall",
                "2.int_sch1_token_stall",
                "2.int_sch2_token_stall",
                "2.int_sch3_token_stall",
            ],
        },
        Resource {
            id: "backend_bound_fp",
            label: "FP Resources",
            stalls: &[
                "1.fp_sch_rsrc_stall",
                "1.fp_reg_file_rsrc_stall",
                "1.fp_flush_recovery_stall",
            ],
        },
        Resource {
            id: "backend_bound_retire",
            label: "Retire Queue",
            stalls: &["2.retire_token_stall"],
        },
    ];
    let unselected = " Also counts cycles in which the other thread was selected.";
    with_queue(g, dispatched, &resources, unselected, vendor)
}

fn with_queue(
    g: &Generation,
    dispatched: &str,
    resources: &[Resource],
    remark: &str,
    vendor: &Vendor,
) -> Result<Vec<NodeSpec>> {
    let queue = "de_dis_uop_queue_empty_di0 / ls_not_halted_cyc";
    let mut nodes = vec![NodeSpec {
        label: Some("Frontend Bound".into()),
        domain: Some("Clocks".into()),
        locate: vec!["ic_cache_fill_sys".into(), "ic_tag_hit_miss.instruction_cache_miss".into()],
        ..top("frontend_bound", queue, "> 0.15", QUEUE)
    }];
    nodes[0].locate.retain(|e| vendor.events.contains_key(e));
    nodes.extend(speculation(g, dispatched));
    nodes.push(NodeSpec {
        label: Some("Backend Bound".into()),
        ..top("backend_bound", "1 - (frontend_bound + bad_speculation + retiring)", "> 0.2", REST)
    });
    nodes.extend(tokens("backend_bound", "> 0.2", resources, remark, vendor)?);
    nodes.push(retiring(g));
    Ok(nodes)
}

fn top(id: &str, formula: &str, over: &str, estimate: &str) -> NodeSpec {
    NodeSpec {
        id: id.into(),
        level: 1,
        formula: formula.into(),
        domain: Some("Slots".into()),
        over: Some(format!("{id} {over}")),
        estimate: Some(estimate.into()),
        groups: vec!["PipelineL1".into()],
        ..Default::default()
    }
}

fn retiring(g: &Generation) -> NodeSpec {
    let formula = format!("{} / ({} * ls_not_halted_cyc)", g.retired, g.width);
    NodeSpec { label: Some("Retiring".into()), ..top("retiring", &formula, "> 0.7", RETIRED) }
}

/// Bad speculation and its two children.
fn speculation(g: &Generation, dispatched: &str) -> Vec<NodeSpec> {
    let (width, retired) = (g.width, g.retired);
    let formula = format!("({dispatched} - {retired}) / ({width} * ls_not_halted_cyc)");
    let child = |id: &str, label: &str, event: &str| NodeSpec {
        id: id.into(),
        label: Some(label.into()),
        parent: Some("bad_speculation".into()),
        level: 2,
        formula: format!("bad_speculation * {event} / (ex_ret_brn_misp + ex_ret_brn_resync)"),
        domain: Some("Slots".into()),
        over: Some(format!("{id} > 0.1 and bad_speculation > 0.15")),
        estimate: Some(SPLIT.into()),
        locate: vec![event.into()],
        groups: vec!["PipelineL2".into(), "bad_speculation_group".into()],
        ..Default::default()
    };
    vec![
        NodeSpec {
            label: Some("Bad Speculation".into()),
            ..top("bad_speculation", &formula, "> 0.15", SPECULATION)
        },
        child("bad_speculation_mispredicts", "Branch Mispredicts", "ex_ret_brn_misp"),
        child("bad_speculation_pipeline_restarts", "Pipeline Restarts", "ex_ret_brn_resync"),
    ]
}

/// The token stalls below `parent`: each resource by the longest of its stalls.
fn tokens(
    parent: &str,
    parent_over: &str,
    resources: &[Resource],
    remark: &str,
    vendor: &Vendor,
) -> Result<Vec<NodeSpec>> {
    let mut nodes = Vec::new();
    for r in resources {
        let events: Vec<String> =
            r.stalls.iter().map(|s| format!("de_dis_dispatch_token_stalls{s}")).collect();
        for event in &events {
            ensure!(vendor.events.contains_key(event), "no event {event}");
        }
        let (longest, how) = match events.as_slice() {
            [one] => (one.clone(), "Share of cycles, not slots, in which dispatch waited for it"),
            all => (
                format!("max({})", all.join(", ")),
                "Share of cycles, not slots, by the longest of its stalls, which overlap: at \
                 least so many",
            ),
        };
        nodes.push(NodeSpec {
            id: r.id.into(),
            label: Some(r.label.into()),
            parent: Some(parent.into()),
            level: 2,
            formula: format!("{longest} / ls_not_halted_cyc"),
            domain: Some("Clocks".into()),
            over: Some(format!("{} > 0.1 and {parent} {parent_over}", r.id)),
            estimate: Some(
                format!("{how}; resources overlap, so they do not add up.{remark}").into(),
            ),
            groups: vec!["PipelineL2".into(), format!("{parent}_group")],
            ..Default::default()
        });
    }
    Ok(nodes)
}
