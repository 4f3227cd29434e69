//! An invented estimate.

use super::arrives;
use super::example::{hot, report};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use bench::Class;
use report::documents::count::{Level, LevelShare};
use report::documents::estimate::SourceLine;
use report::documents::estimate::{
    Bottleneck, Estimate, Part, Parts, Row, Run, Share, ShareSource,
};
use report::documents::estimate::{Causes, Instruction};
use report::documents::{Purpose, Source};
use std::collections::BTreeMap;
use tma::Address;

fn share(value: f64, source: ShareSource) -> Share {
    let (low, high) = ((value - 0.03_f64).max(0.0), (value + 0.04_f64).min(1.0));
    Share { value, low, high, source, reason: None }
}

pub fn parts(retiring: f64, core: f64, memory: f64) -> Parts {
    let mut unexplained = share(1.0 - retiring - core - memory, ShareSource::Residual);
    unexplained.reason = Some("stores that miss are not divided".into());
    Parts {
        retiring: share(retiring, ShareSource::Counted),
        bad_speculation: share(0.0, ShareSource::Bounded),
        fetch_bandwidth: share(0.0, ShareSource::Bounded),
        fetch_latency: share(0.0, ShareSource::Bounded),
        core_bound: share(core, ShareSource::Isolated),
        memory_bound: share(memory, ShareSource::Inferred),
        unexplained,
        ..Parts::default()
    }
}

fn row(
    name: &str,
    place: Option<(u64, u64)>,
    of: f64,
    bottleneck: Option<Part>,
    parts: Parts,
) -> Row {
    let sentence = match bottleneck {
        None => "Undecided between Core Bound 40 % (37-44 %) and Memory Bound 38 % (35-42 %).",
        Some(Part::CoreBound) => "Core Bound: 60 % (57-64 %) of its time goes to ports (divider).",
        _ => "Memory Bound: 70 % (67-74 %) of its time goes to loads that miss the first cache.",
    };
    Row {
        name: name.into(),
        module: "/usr/bin/mix".into(),
        start: place.map(|(start, _)| Address(start)),
        end: place.map(|(_, end)| Address(end)),
        share: of,
        bottleneck: bottleneck.map(Bottleneck::from).unwrap_or_default(),
        parts,
        sentence: sentence.into(),
        next: "tdtool prefetch -- ./mix".into(),
        ..Row::default()
    }
}

/// A pointer chase, a divider loop, the kernel.
pub fn estimate() -> Estimate {
    let line = |address: u64, bytes: &str, text: &str, samples: u64| Instruction {
        address: Address(address),
        bytes: bytes.into(),
        text: text.into(),
        samples,
        share: samples as f64 / 1000.0,
        ..Instruction::default()
    };
    let mut load = line(0x1140, "488b00", "mov rax,qword ptr [rax]", 20);
    load.critical = true;
    let level = |level, share| LevelShare { level, share, ..LevelShare::default() };
    load.levels = vec![level(Level::L3, 0.2), level(Level::Memory, 0.8)];
    load.causes = Some(Causes { retiring: 0.01, backend_bound: 0.8, ..Causes::default() });
    let why = |name: &str, why: &str| (name.to_owned(), why.to_owned());
    let chase = Row {
        cycles_per_entry: Some(212.5),
        isolated: Some(4.0),
        entries: Some(1_234_567.0),
        bound: Some(Class::Dependency),
        trips: Some(1000.0),
        critical_cycles: Some(4.0),
        reasons: BTreeMap::from([why("mispredicted", "branches were not recorded")]),
        code: vec![
            load,
            line(0x1143, "ffc9", "dec ecx", 560),
            line(0x1145, "75f9", "jne 0x1140", 20),
        ],
        ..row("chase", Some((0x1140, 0x1147)), 0.6, Some(Part::MemoryBound), parts(0.02, 0.1, 0.7))
    };
    let tail = row("chase", Some((0x1147, 0x1150)), 0.01, None, parts(0.1, 0.4, 0.38));
    let mut kernel = row("[kernel]", None, 0.06, None, Parts::default());
    kernel.module.clear();
    kernel.next.clear();
    kernel.parts.unexplained = share(1.0, ShareSource::Residual);
    kernel.parts.unexplained.reason = Some("the kernel's time is not analysed".into());
    let mut of_chase =
        row("chase", Some((0x1140, 0x1150)), 0.61, Some(Part::MemoryBound), parts(0.02, 0.1, 0.7));
    let source = |number: u32, text: &str, share: f64, code: &[Instruction]| SourceLine {
        file: "/src/mix.c".into(),
        line: number,
        text: Some(text.into()),
        share,
        bottleneck: Part::MemoryBound.into(),
        parts: parts(0.02, 0.1, 0.7),
        code: code.to_vec(),
    };
    of_chase.lines = vec![
        source(6, "for (long i = 0; i < n; i++)", 0.02, &chase.code[2..]),
        source(7, "    p = next[p];", 0.58, &chase.code[..2]),
    ];
    Estimate {
        covered: 0.94,
        runs: vec![
            Run { run: Purpose::Samples, seconds: 1.0 },
            Run { run: Purpose::Counts, seconds: 1.5 },
        ],
        functions: vec![
            of_chase,
            row(
                "divide(int)",
                Some((0x1160, 0x1180)),
                0.33,
                Some(Part::CoreBound),
                parts(0.2, 0.6, 0.0),
            ),
            kernel,
        ],
        loops: vec![
            chase.clone(),
            row(
                "divide(int)",
                Some((0x1168, 0x1178)),
                0.33,
                Some(Part::CoreBound),
                parts(0.2, 0.6, 0.0),
            ),
        ],
        blocks: vec![chase, tail],
        program: Row { share: 0.94, ..row("./mix", None, 0.94, None, parts(0.1, 0.4, 0.38)) },
        deterministic: Some(true),
        ..Estimate::default()
    }
}

/// A command without a PMU, sampled: what `tdtool -- CMD` shows first.
pub fn sampled() -> State {
    let mut state = State::new(Screen::Tree, Look::default());
    update(&mut state, Action::Resize(80, 32));
    let mut bare = report();
    bare.source = Source::NoPmu;
    bare.nodes.iter_mut().for_each(|node| node.value = None);
    arrives(&mut state, BackgroundResult::Report(Box::new(bare)));
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    arrives(
        &mut state,
        BackgroundResult::Offer("in further runs: the first counts, about 3 s".into()),
    );
    state
}

/// The example, estimated.
pub fn estimated() -> State {
    let mut state = sampled();
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    state
}
