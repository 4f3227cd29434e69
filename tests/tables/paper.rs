//! The tree of the top-down paper, worked out by hand.

use super::{assert_values, evaluate, table};
use tma::quantity::Missing;

/// Counts for the paper's tree: 1000 cycles of a machine four wide.
const PAPER: [(&str, f64); 18] = [
    ("Clocks", 1000.0),
    ("TotalSlots", 4000.0),
    ("FetchBubbles", 600.0),
    ("FetchBubbles[≥MIW]", 100.0),
    ("SlotsIssued", 1800.0),
    ("SlotsRetired", 1400.0),
    ("RecoveryBubbles", 200.0),
    ("BrMispredRetired", 30.0),
    ("MachineClears", 10.0),
    ("MsSlotsRetired", 100.0),
    ("OpsExecuted[=FEW]", 600.0),
    ("MemStalls.AnyLoad", 350.0),
    ("MemStalls.L1miss", 280.0),
    ("MemStalls.L2miss", 240.0),
    ("MemStalls.L3miss", 200.0),
    ("MemStalls.Stores", 50.0),
    ("ExtMemOutstanding[≥1]", 400.0),
    ("ExtMemOutstanding[≥THRESHOLD]", 100.0),
];

#[test]
fn the_papers_tree_is_as_its_formulas_give_it_by_hand() {
    let expect = [
        ("Frontend_Bound", 0.15),
        ("Fetch_Latency", 0.1),
        ("Fetch_Bandwidth", 0.05),
        ("Bad_Speculation", 0.15),
        ("Branch_Mispredicts", 0.1125),
        ("Machine_Clears", 0.0375),
        ("Retiring", 0.35),
        ("MicroSequencer", 0.025),
        ("Base", 0.325),
        ("Backend_Bound", 0.35),
        ("ExecutionStalls", 0.6),
        ("BrMispredFraction", 0.75),
        ("Memory_Bound", 0.4),
        ("Core_Bound", 0.2),
        ("L1_Bound", 0.07),
        ("L2_Bound", 0.04),
        ("L3_Bound", 0.04),
        ("Ext_Memory_Bound", 0.2),
        ("Stores_Bound", 0.05),
        ("MEM_Bandwidth", 0.25),
        ("MEM_Latency", 0.15),
    ];
    assert_values("paper", &PAPER, &expect);
    assert_eq!(table("paper").nodes.len(), expect.len());
}

#[test]
fn what_was_not_counted_is_missing_and_not_zero() {
    let table = table("paper");
    let without: Vec<_> = PAPER.iter().copied().filter(|(e, _)| *e != "FetchBubbles").collect();
    let evaluation = evaluate(&table, &without);
    let result = |id: &str| &evaluation.nodes[usize::from(table.node(id).unwrap())];
    for id in ["Frontend_Bound", "Fetch_Bandwidth", "Backend_Bound"] {
        let why = result(id).quantity.value.as_ref().unwrap_err();
        assert!(matches!(why, Missing::NotMeasured(_)), "{id}: {why}");
        assert_eq!(result(id).over, None, "{id}");
    }
    assert!(result("Retiring").quantity.value.is_ok());
}
