//! The AMD tables: against metrics that perf printed on a real Zen 4, and against values worked out
//! by hand.

use super::{assert_values, counts, table, value};
use crate::support::files::shared;
use std::collections::BTreeMap;
use std::fs;
use tma::tables::Const;
use tma::tree::Evaluator;

/// What `perf stat -M PipelineL2` counted and printed on a Zen 4, first block of
/// KeithJH/kinematics-demo (MIT).
const RECORDED: &str = "\
0,event,ex_ret_brn_misp,47641469,24.94
0,event,de_src_op_disp.all,57926321273,24.94
0,event,resyncs_or_nc_redirects,2152589,24.94
0,event,ls_not_halted_cyc,61729721447,24.94
0,event,ex_ret_ops,55104498184,24.94
0,event,ex_no_retire.load_not_complete,35573254326,25.03
0,event,de_no_dispatch_per_slot.backend_stalls,299048140951,25.03
0,event,ex_no_retire.not_complete,47689982568,25.03
0,event,ls_not_halted_cyc,61713748438,25.03
0,event,ex_ret_ucode_ops,168680672,24.95
0,event,ls_not_halted_cyc,61763800440,24.95
0,event,ex_ret_ops,55164197902,24.95
0,event,de_no_dispatch_per_slot.no_ops_from_frontend,12892057596,25.08
0,event,\"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/\",1761848048,25.08
0,event,ls_not_halted_cyc,61799648939,25.08
0,metric,bad_speculation_mispredicts,0.7,
0,metric,bad_speculation_pipeline_restarts,0.0,
0,metric,backend_bound_cpu,20.5,
0,metric,backend_bound_memory,60.2,
0,metric,retiring_fastpath,14.8,
0,metric,retiring_microcode,0.0,
0,metric,frontend_bound_bandwidth,0.6,
0,metric,frontend_bound_latency,2.9,
";

/// Events in their groups, and the metrics perf printed for them.
type Block = (Vec<Vec<(String, f64)>>, Vec<(String, f64)>);

/// Checks every block of a recording; returns how many figures agree.
fn check_recording(text: &str) -> usize {
    let table = table("zen4");
    let mut blocks: BTreeMap<u32, Block> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines().filter(|l| !l.starts_with("block,")) {
        let (block, rest) = line.split_once(',').unwrap();
        let (kind, rest) = rest.split_once(',').unwrap();
        let (rest, running) = rest.rsplit_once(',').unwrap();
        let (name, value) = rest.rsplit_once(',').unwrap();
        let (groups, metrics) = blocks.entry(block.parse().unwrap()).or_default();
        let value: f64 = value.parse().unwrap();
        if kind == "metric" {
            metrics.push((name.to_owned(), value));
            continue;
        }
        let name = match name.trim_matches('"').split_once(",cmask=0x") {
            Some((event, mask)) => {
                format!("{}:c{}", event.trim_start_matches("cpu/"), mask.trim_end_matches('/'))
            }
            None => name.to_owned(),
        };
        // The events of one group share their running time.
        if groups.is_empty() || last != format!("{block} {running}") {
            groups.push(Vec::new());
            last = format!("{block} {running}");
        }
        groups.last_mut().unwrap().push((name, value));
    }
    let mut agree = 0;
    for (block, (groups, metrics)) in &blocks {
        let evaluation = Evaluator::new(&table).values(&counts(&table, groups));
        for (id, printed) in metrics {
            let percent = 100.0 * value(&table, &evaluation, id);
            // perf prints one decimal.
            let place = format!("block {block} {id}");
            assert!((percent - printed).abs() <= 0.0501, "{place}: {percent}, perf {printed}");
            agree += 1;
        }
    }
    agree
}

#[test]
fn zen4_gives_the_figures_that_perf_printed() {
    assert_eq!(check_recording(RECORDED), 8);
    if let Some(all) = shared("recordings/perf-stat/zen4-pipeline.csv") {
        assert!(check_recording(&fs::read_to_string(all).unwrap()) > 8);
    }
}

#[test]
fn zen5_divides_eight_slots_a_cycle() {
    // 1000 cycles, 8000 slots: 800 + 4000 + 400 unused, 2800 dispatched, 2400 of them retired.
    let events = [
        ("ls_not_halted_cyc", 1000.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 800.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend:c8", 50.0),
        ("de_no_dispatch_per_slot.backend_stalls", 4000.0),
        ("de_no_dispatch_per_slot.smt_contention", 400.0),
        ("de_src_op_disp.all", 2800.0),
        ("ex_ret_ops", 2400.0),
        ("ex_ret_brn_misp", 30.0),
        ("bp_redirects.resync", 10.0),
        ("ex_no_retire.load_not_complete", 300.0),
        ("ex_no_retire.not_complete", 400.0),
        ("ex_ret_ucode_ops", 240.0),
    ];
    let expect = [
        ("frontend_bound", 0.1),
        ("backend_bound", 0.5),
        ("smt_contention", 0.05),
        ("bad_speculation", 0.05),
        ("retiring", 0.3),
        ("frontend_bound_by_latency", 0.05),
        ("frontend_bound_by_bandwidth", 0.05),
        ("bad_speculation_from_mispredicts", 0.0375),
        ("bad_speculation_from_pipeline_restarts", 0.0125),
        ("backend_bound_by_memory", 0.375),
        ("backend_bound_by_cpu", 0.125),
        ("retiring_from_fastpath", 0.27),
        ("retiring_from_microcode", 0.03),
    ];
    assert_values("zen5", &events, &expect);
}

#[test]
fn zen2_estimates_from_queues_and_tokens() {
    // 1000 cycles, 6000 slots; 2400 dispatched, 1800 retired; 150 cycles with an empty queue.
    let events = [
        ("ls_not_halted_cyc", 1000.0),
        ("uops_dispatched", 2400.0),
        ("ex_ret_cops", 1800.0),
        ("de_dis_uop_queue_empty_di0", 150.0),
        ("ex_ret_brn_misp", 9.0),
        ("ex_ret_brn_resync", 1.0),
        ("de_dis_dispatch_token_stalls1.load_queue_token_stall", 200.0),
        ("de_dis_dispatch_token_stalls1.store_queue_token_stall", 80.0),
        ("de_dis_dispatch_token_stalls0.agsq_token_stall", 10.0),
        ("de_dis_dispatch_token_stalls0.retire_token_stall", 40.0),
    ];
    let expect = [
        ("retiring", 0.3),
        ("bad_speculation", 0.1),
        ("bad_speculation_mispredicts", 0.09),
        ("bad_speculation_pipeline_restarts", 0.01),
        ("frontend_bound", 0.15),
        ("backend_bound", 0.45),
        ("backend_bound_memory", 0.2),
        ("backend_bound_retire", 0.04),
    ];
    assert_values("zen2", &events, &expect);
}

#[test]
fn before_zen4_every_node_says_why_it_is_an_estimate() {
    for name in ["zen1", "zen2", "zen3"] {
        let table = table(name);
        assert!(table.tree().count() >= 8, "{name}");
        for (_, node) in table.tree() {
            assert!(node.spec.estimate.is_some(), "{name} {}", node.id);
        }
    }
    for name in ["zen4", "zen5"] {
        assert!(table(name).tree().all(|(_, n)| n.spec.estimate.is_none()), "{name}");
    }
}

#[test]
fn no_amd_node_or_metric_needs_more_than_the_core_counts() {
    for name in ["zen1", "zen2", "zen3", "zen4", "zen5"] {
        let table = table(name);
        for node in &table.nodes {
            let events = table.events_of(table.node(&node.id).unwrap(), false);
            assert!(!events.is_empty(), "{name} {}: no event", node.id);
            assert!(events.len() <= 6, "{name} {}", node.id);
        }
    }
}

#[test]
fn zen4s_clock_needs_no_wall_time() {
    let table = table("zen4");
    let events = vec![
        ("ls_not_halted_cyc".to_owned(), 3_000.0),
        ("ls_not_halted_p0_cyc.p0_freq_cyc".to_owned(), 2_000.0),
    ];
    let mut counts = counts(&table, &[events]);
    counts.constants[Const::TscHz.index()] = Some(2.4e9);
    let evaluation = Evaluator::new(&table).values(&counts);
    // 1.5 cycles for each tick of a 2.4 GHz reference.
    assert!((value(&table, &evaluation, "GHz") - 3.6).abs() < 1e-12);
}
