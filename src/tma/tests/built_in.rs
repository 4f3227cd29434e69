//! Node lists, texts and checks on the tables that are built in.
#![allow(clippy::unwrap_used)]

use tma::Error;
use tma::tables::texts::variant;
use tma::tables::validate::{Severity, findings};
use tma::tables::{Level1, NodeKind, select};

fn ids(table: &str, list: &str) -> Vec<String> {
    let table = events::library().load(table).expect("table");
    let chosen = select(&table, list).expect("selection");
    chosen.into_iter().map(|n| table.nodes[usize::from(n)].id.to_string()).collect()
}

fn refusal(table: &str, list: &str) -> Error {
    let table = events::library().load(table).expect("table");
    select(&table, list).expect_err("refusal")
}

#[test]
fn a_name_takes_one_node_whatever_its_case() {
    assert_eq!(ids("paper", "l1_BOUND"), ["L1_Bound"]);
    assert_eq!(ids("paper", "Backend_Bound.Memory_Bound.L1_Bound"), ["L1_Bound"]);
}

#[test]
fn a_star_takes_the_subtree_and_a_level_cuts_it_as_in_toplev() {
    let below = ["L1_Bound", "L2_Bound", "L3_Bound", "Ext_Memory_Bound", "Stores_Bound"];
    let level3 = ids("paper", "Memory_Bound*/3");
    assert_eq!(level3[0], "Memory_Bound");
    assert_eq!(level3[1..], below);
    assert_eq!(ids("paper", "Memory_Bound*/2"), ["Memory_Bound"]);
    assert!(ids("paper", "Memory_Bound*").contains(&"MEM_Latency".to_owned()));
}

#[test]
fn a_caret_adds_the_ancestors() {
    let expect = ["Backend_Bound", "Memory_Bound", "Ext_Memory_Bound", "MEM_Latency"];
    assert_eq!(ids("paper", "^MEM_Latency"), expect);
    assert_eq!(ids("paper", "MEM_Latency^"), expect);
}

#[test]
fn signs_change_the_whole_tree() {
    let all = ids("paper", "*");
    let without = ids("paper", "-Memory_Bound*,-Core_Bound");
    assert_eq!(without.len(), all.len() - 9);
    assert!(!without.contains(&"MEM_Latency".to_owned()));
    assert!(ids("zen4", "+IPC").contains(&"IPC".to_owned()));
    assert_eq!(ids("zen4", "backend_bound*,-backend_bound_cpu").len(), 2);
}

#[test]
fn a_wildcard_takes_the_tree_before_metrics_and_a_tag_takes_what_carries_it() {
    assert_eq!(ids("zen4", "*").len(), 13);
    assert!(ids("zen4", "l2_*").iter().all(|id| id.starts_with("l2_")));
    assert_eq!(ids("zen4", "PipelineL1").len(), 5);
}

#[test]
fn what_is_unknown_is_refused_with_the_nearest_name() {
    let error = refusal("zen4", "backend_bond");
    assert_eq!(error.kind(), tma::ErrorKind::Usage);
    assert!(error.remedy().is_some_and(|r| r.contains("`backend_bound`")), "{error:?}");
    assert!(refusal("zen4", "backend_bound*/x").what().contains("is not a level"));
    assert!(refusal("zen4", "backend_bound_cpu/1").what().contains("selects no node"));
    assert!(refusal("zen4", "-*").what().contains("selects no node"));
}

#[test]
fn the_tables_have_no_errors_and_no_warnings() {
    let library = events::library();
    for name in library.names() {
        let (text, _) = library.text(name).expect("embedded");
        let bad: Vec<String> = findings(name, &text, library.texts())
            .iter()
            .filter(|f| f.severity > Severity::Note)
            .map(ToString::to_string)
            .collect();
        assert!(bad.is_empty(), "{name}: {bad:#?}");
    }
}

#[test]
fn a_variant_goes_before_the_plain_text() {
    let texts = events::library().texts();
    let get = |table, variant| texts.lookup(NodeKind::Tree, "Frontend_Bound", table, variant);
    let plain = get("skx", None).expect("text");
    assert_ne!(Some(plain), get("adl-e", variant(None, Some(tma::tables::CoreKind::E))));
    assert_ne!(Some(plain), get("paper", Some("paper")));
    assert_eq!(Some(plain), get("skx", Some("nothing")));
}

#[test]
fn zen5_reads_zen4s_texts_under_its_own_names() {
    let texts = events::library().texts();
    let get = |id| texts.lookup(NodeKind::Tree, id, "zen5", None);
    assert!(get("backend_bound_by_memory").is_some());
    assert_eq!(get("backend_bound_by_memory"), get("backend_bound_memory"));
}

#[test]
fn every_tree_begins_with_nodes_of_level_1() {
    let library = events::library();
    let mut trees = 0;
    for name in library.names() {
        let table = library.load(name).unwrap();
        let level_1 = || table.tree().filter(|(_, node)| node.level == 1);
        for one in Level1::ALL {
            let named = || level_1().filter(|(_, node)| Level1::of(&node.id) == Some(one));
            assert!(named().count() <= 1, "{name}: {one:?}");
            assert!(named().all(|(_, node)| node.label == one.label()), "{name}: {one:?}");
        }
        let is_whole = |one: &Level1| level_1().any(|(_, node)| Level1::of(&node.id) == Some(*one));
        trees += usize::from(Level1::ALL.iter().all(is_whole));
    }
    assert!(trees > 25, "only {trees} trees have all four");
}
