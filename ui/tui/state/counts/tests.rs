//! Counts of documents made by hand.

use super::*;
use profile::hot::HotBlock;
use report::documents::branches;
use report::documents::count::{
    AllocatedAt, AllocationSite, BlockRow, EdgeRow, Kind, Level, LevelShare, LoadLatency,
    LoadMemory, LoopRow, Trips,
};
use tma::Address;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn a_block_has_its_counts_also_if_it_was_counted_in_parts() {
    let module = "/usr/bin/matmul".to_owned();
    let block = |start, count| BlockRow {
        module: module.clone(),
        start: Address(start),
        count,
        ..BlockRow::default()
    };
    let edge = |to, count| EdgeRow {
        module: module.clone(),
        from: Address(0x14),
        to: Address(to),
        count: Some(count),
    };
    let document = Count {
        blocks: vec![block(0x10, 400), block(0x14, 400)],
        edges: vec![edge(0x10, 300), edge(0x20, 100)],
        loops: vec![LoopRow {
            module: module.clone(),
            head: Address(0x10),
            entries: Some(100),
            trips: Trips { mean: Some(4.0), ..Trips::default() },
            ..LoopRow::default()
        }],
        ..Count::default()
    };
    let own = HotBlock { start: 0x10, end: 0x18, share: 0.5, samples: 100, ..HotBlock::default() };
    let block = AnnotatedBlock { block: own, edges: vec![0x10, 0x20], ..AnnotatedBlock::default() };
    let function = HotFunction { path: module, ..HotFunction::default() };
    let found = Counts::new(&document).of(&function, &block, Some(8.0)).unwrap();
    assert_eq!(found.edges, [Some(0.75), Some(0.25)]);
    let counts = Counts::new(&Count { command: words("./matmul 5"), ..document });
    let is_of = |text: &str| counts.is_of(Some(&words(text)));
    assert!(is_of("/usr/bin/matmul 5") && !is_of("./matmul 50") && !counts.is_of(None));
    assert_eq!((found.entries, found.loops), (Some(400), Some((100, 4.0))));
    // Half of 8 s for 400 entries; 2 / √100.
    assert_eq!(found.each, Some(Each::Seconds(0.01, 0.2)));
}

#[test]
fn recorded_branches_give_shares_of_edges_cycles_and_mispredictions() {
    let document = Branches {
        events: vec![branches::EventRow { name: "cycles".into(), ..Default::default() }],
        blocks: vec![branches::BlockRow {
            module: "/a/matmul".into(),
            start: Address(0x10),
            end: Address(0x18),
            count: 400,
            cycles_mean: Some(2.5),
            ..Default::default()
        }],
        edges: vec![branches::EdgeRow {
            module: "/a/matmul".into(),
            from: Some(Address(0x16)),
            to: Some(Address(0x10)),
            count: 300,
            marked: 300,
            mispredicted: Some(30),
            ..Default::default()
        }],
        loops: vec![branches::LoopRow {
            module: "/a/matmul".into(),
            head: Address(0x10),
            trips: branches::TripsRow { at_least: Some(31), ..Default::default() },
            ..Default::default()
        }],
        ..Branches::default()
    };
    let own = HotBlock { start: 0x10, end: 0x18, share: 0.5, samples: 9, ..HotBlock::default() };
    let block = AnnotatedBlock { block: own, edges: vec![0x10, 0x18], ..AnnotatedBlock::default() };
    let function = HotFunction { path: "/b/matmul".into(), ..HotFunction::default() };
    let (_, counts) = Counts::of_events(&document).remove(0);
    let found = counts.of(&function, &block, Some(8.0)).unwrap();
    assert_eq!(found.edges, [Some(0.75), Some(0.25)], "what is not taken falls through");
    assert_eq!((found.entries, found.at_least), (Some(400), Some(31)));
    let expected = Mispredicted { taken: 300, wrong: 30, hard: false };
    assert_eq!((found.each, found.mispredicted), (Some(Each::Cycles(2.5)), Some(expected)));
}

/// A load of another run: what allocated the memory that it reads, in the words of `tdtool count --loads`.
#[test]
fn a_counted_load_has_its_allocation_site() {
    let document = Count {
        loads: vec![LoadRow {
            module: "/usr/bin/matmul".into(),
            address: Address(0x14),
            field: Some("e->next".into()),
            executions: Some(4096),
            class: Some(LoadClass {
                kind: Kind::PointerChase,
                offset: Some(0),
                share: 1.0,
                ..LoadClass::default()
            }),
            levels: vec![LevelShare { level: Level::Memory, share: 0.1, ..LevelShare::default() }],
            latency: Some(LoadLatency { mean: 9.1, ..LoadLatency::default() }),
            memory: Some(LoadMemory {
                sites: vec![AllocatedAt { sites: vec![0], share: 0.97 }],
                other: 0.03,
                ..LoadMemory::default()
            }),
            ..LoadRow::default()
        }],
        allocation_sites: vec![AllocationSite {
            function: "build".into(),
            by: "malloc".into(),
            file: Some("/src/list.c".into()),
            line: Some(14),
            ..AllocationSite::default()
        }],
        ..Count::default()
    };
    let counts = Counts::new(&document);
    let function = HotFunction { path: "matmul".into(), ..HotFunction::default() };
    let expected = "4,096 executions, mean 9.1 ns, e->next, 97 % malloc in build, list.c:14; 3 % not allocated (static \
                    data, stack), DRAM 10 %, pointer chase";
    assert_eq!(counts.load_at(&function, 0x14), Some(expected));
    assert_eq!(counts.load_at(&function, 0x18), None);
}

/// By hand: (10 × 400 + 30 × 40) / 40 cycles; 10 of 40 samples from memory.
#[test]
fn a_block_has_the_sums_of_its_loads() {
    let row = |address: u64, samples, mean, levels| loads::LoadRow {
        module: "/usr/bin/matmul".into(),
        address: address.into(),
        share: samples as f64 / 50.0,
        samples,
        latency_mean: Some(mean),
        levels,
        class: Some(Kind::Stride),
        ..loads::LoadRow::default()
    };
    let document = loads::Loads {
        events: vec![loads::EventRow {
            loads: 50,
            shares: Shares::Latency,
            ..loads::EventRow::default()
        }],
        loads: vec![
            row(0x10, 10, 400.0, loads::LevelsRow { ram: 10, ..loads::LevelsRow::default() }),
            row(0x14, 30, 40.0, loads::LevelsRow { l2: 30, ..loads::LevelsRow::default() }),
            row(0x20, 10, 40.0, loads::LevelsRow { l2: 10, ..loads::LevelsRow::default() }),
        ],
        ..loads::Loads::default()
    };
    let [(_, all)] = &Loads::of_events(&document)[..] else { panic!("one event with loads") };
    let function = HotFunction { path: "matmul".into(), ..HotFunction::default() };
    let block = all.between(&function, 0x10, 0x20).unwrap();
    assert_eq!(block.text(), "80.0 % of loads, 130 cycles, L2 75 %, DRAM 25 %");
    let one = all.at(&function, 0x10).unwrap().text();
    assert_eq!(one, "20.0 % of loads, 400 cycles, DRAM 100 %, stride");
    // As in the text of `tdtool loads`: the operand has its structure, the other variables their samples.
    let known = loads::LoadRow {
        field: Some("e->next".into()),
        of: Some("struct entry".into()),
        variables: vec![
            loads::VariableOf { name: "heap".into(), samples: 6 },
            loads::VariableOf { name: "table".into(), samples: 4 },
        ],
        ..document.loads[0].clone()
    };
    let text = "20.0 % of loads, 400 cycles, operand e->next (struct entry), heap (6), table (4), DRAM 100 %, stride";
    assert_eq!(LoadSamples::of(&known).text(), text);
    assert_eq!(all.between(&function, 0x30, 0x40), None);
}
