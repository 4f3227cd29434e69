//! An invented program: its tree, its functions, the blocks of one of them, a measured block.

use super::arrives;
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use profile::files::Gap;
use profile::hot::{
    Annotated, AnnotatedBlock, AnnotatedLine, HotBlock, HotFunction, Skid, Summary,
};
use report::documents::report::{CountRow, Place};
use report::documents::report_file::Explanation;
use report::documents::{NodeRow, Report, Source};
use std::collections::HashMap;
use std::sync::Arc;

/// A node; the values that are not arguments are the same for all.
pub fn node(id: &str, parent: Option<&str>, level: u32, value: f64, flagged: bool) -> NodeRow {
    NodeRow {
        id: id.into(),
        label: id.replace('_', " ").into(),
        parent: parent.map(Into::into),
        level,
        value: Some(value),
        error: Some(0.012),
        no_error: None,
        running: Some(1.0),
        over: Some(flagged),
        flagged,
        bottleneck: false,
        mismeasured: false,
        split: false,
        missing: None,
        no_pmu: false,
        estimate: None,
        domain: Some("slots".into()),
        related: Vec::new(),
        locate: vec!["MEM_LOAD_RETIRED.L3_MISS:pp".into()],
        counts: vec![CountRow {
            event: "TOPDOWN.SLOTS".into(),
            value: Some(12_345_678.0),
            running: Some(1.0),
            missing: None,
        }],
        place: Place::default(),
    }
}

/// Memory-bound by DRAM.
pub fn report() -> Report {
    let mut report = Report::new(Source::Pmu);
    report.uarch = "skx".into();
    report.title = "Skylake-X".into();
    report.subject = vec!["./matmul".into(), "naive".into()];
    report.duration = Some(3.21);
    report.level = 3;
    report.nodes = vec![
        node("Frontend_Bound", None, 1, 0.041, false),
        node("Bad_Speculation", None, 1, 0.012, false),
        node("Backend_Bound", None, 1, 0.712, true),
        node("Retiring", None, 1, 0.235, false),
        node("Fetch_Latency", Some("Frontend_Bound"), 2, 0.03, false),
        node("Memory_Bound", Some("Backend_Bound"), 2, 0.601, true),
        node("Core_Bound", Some("Backend_Bound"), 2, 0.111, false),
        node("L1_Bound", Some("Memory_Bound"), 3, 0.05, false),
        node("DRAM_Bound", Some("Memory_Bound"), 3, 0.44, true),
    ];
    report.nodes[8].bottleneck = true;
    report
}

/// Five functions, the hottest first.
pub fn hot() -> Summary {
    let function = |name: &str, module: &str, share: f64, line: Option<u32>| HotFunction {
        name: name.into(),
        short: name.into(),
        module: module.into(),
        path: format!("/usr/bin/{module}"),
        share,
        samples: (share * 4000.0) as u64,
        file: line.map(|_| "/src/matmul.c".into()),
        line,
        start: 0x1950,
        end: 0x1a80,
        ..HotFunction::default()
    };
    let mut functions = vec![
        function("multiply", "matmul", 0.9, Some(17)),
        function("std::vector<double>::operator[]", "matmul", 0.05, Some(4)),
        function("memset", "libc.so.6", 0.03, None),
        function("fill", "matmul", 0.015, Some(9)),
        function("[kernel] clear_page", "[kernel]", 0.005, None),
    ];
    functions[4].gap = Some(Gap::Unreadable(std::io::Error::other("it is the kernel's").into()));
    Summary {
        functions,
        event: "cpu-clock".into(),
        skid: Skid::Timer,
        samples: 4000,
        lost: 0,
        events: vec!["cpu-clock".into()],
        ..Summary::default()
    }
}

/// Three nested loops, the innermost hot.
pub fn annotated() -> Annotated {
    let line = |address: u64, bytes: &[u8], text: &str, samples: u64, number: u32| AnnotatedLine {
        address,
        bytes: bytes.to_vec(),
        text: text.into(),
        samples,
        share: samples as f64 / 4000.0,
        source: Some(("/src/matmul.c".into(), number)),
    };
    let block = |start, end, depth, samples: u64, edges: &[u64], lines| AnnotatedBlock {
        block: HotBlock {
            function: 0,
            start,
            end,
            share: samples as f64 / 4000.0,
            samples,
            loop_depth: depth,
            file: Some("/src/matmul.c".into()),
            line: Some(21),
            inlined: None,
        },
        edges: edges.to_vec(),
        lines,
        ..AnnotatedBlock::default()
    };
    let entry = block(
        0x1950,
        0x1953,
        0,
        0,
        &[0x1953],
        vec![line(0x1950, &[0x48, 0x31, 0xc0], "xor rax,rax", 0, 18)],
    );
    let mut inner = block(
        0x1953,
        0x195f,
        2,
        3500,
        &[0x1953, 0x195f],
        vec![
            line(0x1953, &[0xf2, 0x0f, 0x59, 0x06], "mulsd xmm0,qword ptr [rsi]", 3000, 21),
            line(0x1957, &[0x48, 0x01, 0xd6], "add rsi,rdx", 400, 21),
            line(0x195a, &[0xff, 0xc9], "dec ecx", 60, 20),
            line(0x195c, &[0x75, 0xf5], "jne 0x1953", 40, 20),
        ],
    );
    inner.is_head = true;
    inner.back_to = Some(0x1953);
    let mut exit =
        block(0x195f, 0x1962, 0, 100, &[], vec![line(0x195f, &[0xff, 0xe0], "jmp rax", 100, 25)]);
    exit.unresolved = true;
    Annotated {
        function: hot().functions[0].clone(),
        blocks: vec![entry, inner, exit],
        skid: None,
        notes: Vec::new(),
    }
}

/// The whole example on a screen of 80 × 24.
pub fn measured() -> State {
    let mut state = State::new(Screen::Tree, Look::default());
    update(&mut state, Action::Resize(80, 24));
    let explanation = Explanation {
        meaning: Some("Slots in which loads wait for main memory.".into()),
        causes: Some("A working set larger than the last-level cache.".into()),
        next: Some("Block the loops, or change the order in which data lie.".into()),
        formula: "CYCLE_ACTIVITY.STALLS_L3_MISS / CLKS".into(),
        over: Some("DRAM_Bound > 0.1".into()),
    };
    let key = ("skx".to_owned(), "DRAM_Bound".to_owned());
    let explanations = Arc::new(HashMap::from([(key, explanation)]));
    arrives(&mut state, BackgroundResult::Explained(explanations));
    arrives(&mut state, BackgroundResult::Report(Box::new(report())));
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    state
}

/// The report of a block.
pub fn block_report() -> bench::Measurement {
    use bench::{
        Assumed, Assumption, Bound, FormResult, Forms, Line, Mode, Outcome, Status, Throughput,
    };
    let form = |cycles: f64, copies| FormResult {
        cycles: Some(cycles),
        low: Some(cycles - 0.01),
        high: Some(cycles + 0.01),
        copies,
        reason: None,
    };
    let mut report = bench::rejected("f20f5906", String::new(), &tma::Core::default());
    report.status = Status::Ok;
    report.reason = None;
    report.block.instructions = vec![Line {
        offset: "0x0".into(),
        bytes: "f20f5906".into(),
        text: "mulsd xmm0,qword ptr [rsi]".into(),
        ..Line::default()
    }];
    let modes = vec![Mode { cycles: 4.0, share: 0.9 }, Mode { cycles: 4.25, share: 0.1 }];
    report.throughput =
        Some(Throughput { cycles: 4.0, low: 3.99, high: 4.01, modes, clock: "tsc" });
    report.ipc = Some(0.25);
    report.forms = Some(Forms { unrolled: form(4.0, 100), looped: form(4.02, 10) });
    report.assumptions = vec![
        Assumption {
            name: Assumed::L1Data,
            outcome: Outcome::Held,
            how: "the lines touched fit".into(),
        },
        Assumption {
            name: Assumed::LineCrossing,
            outcome: Outcome::Violated,
            how: "an access crosses a line of 64 bytes".into(),
        },
        Assumption {
            name: Assumed::PageFaults,
            outcome: Outcome::Unchecked,
            how: "no counter".into(),
        },
    ];
    let bound = |name, cycles| Bound {
        name,
        cycles,
        low: cycles,
        high: cycles,
        how: "measured".into(),
        ..Bound::default()
    };
    let path = vec!["mulsd xmm0,qword ptr [rsi]".to_owned()];
    report.bounds = vec![bound("front-end", 1.0), Bound { path, ..bound("dependency", 4.0) }];
    let why = "register dependencies broken: 1.00 of 4.00 cycles remain".to_owned();
    let verdict = bench::Verdict { class: bench::Class::Dependency, why };
    report.hierarchy.explanation = Some(bench::Explanation::Verdict(verdict, String::new()));
    report.samples.accepted = 192;
    report
}
