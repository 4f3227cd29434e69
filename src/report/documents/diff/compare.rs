//! Compares the code of two sides: matches it, and sorts it by the time that it gains or loses.

use super::matched::{self, Pairs};
use super::row::{CodeDiff, CodeRow, DiffRow, Matched, Side};
use super::timed::{Kind, Timed, has_time, rows};
use crate::documents::report::{Place, Report};
use std::collections::HashMap;

/// Compares the code of the runs of A with that of B; `None` where a side has none.
pub fn code(a: &[Report], b: &[Report]) -> Option<CodeDiff> {
    let in_time = a.iter().chain(b).all(has_time);
    let unit = if in_time { "ms" } else { "ratio" };
    let [of_a, of_b] = [a, b].map(|reports| Sorted::of(rows(reports, in_time)));
    if of_a.functions.is_empty() || of_b.functions.is_empty() {
        return None;
    }
    let (mut of_a, mut of_b) = (of_a, of_b);
    [of_a.functions, of_b.functions] = matched::joined([of_a.functions, of_b.functions]);
    let found = matched::functions(&of_a.functions, &of_b.functions);
    let mut functions = compared(&found, &of_a.functions, &of_b.functions, unit);
    let numbers = by_change(&mut functions);
    let own = Numbers::of(&found, &numbers, of_a.functions.len(), of_b.functions.len());
    let [in_a, in_b] = [
        own.of_pieces(&own.a, &of_a.functions, &of_a.pieces),
        own.of_pieces(&own.b, &of_b.functions, &of_b.pieces),
    ];
    let found = matched::pieces(&of_a.pieces, &in_a, &of_b.pieces, &in_b);
    let mut pieces = compared(&found, &of_a.pieces, &of_b.pieces, unit);
    for ((row, _), (a, b, _)) in pieces.iter_mut().zip(found.all()) {
        row.function = a.and_then(|a| in_a[a]).or(b.and_then(|b| in_b[b]));
    }
    by_change(&mut pieces);
    let (loops, blocks): (Vec<_>, Vec<_>) =
        pieces.into_iter().partition(|(_, kind)| *kind == Kind::Loop);
    let plain = |rows: Vec<(CodeRow, Kind)>| rows.into_iter().map(|(row, _)| row).collect();
    let program = of_a.program.as_ref().zip(of_b.program.as_ref());
    let program = program.map(|(a, b)| CodeRow {
        time: DiffRow { id: "program".into(), label: "estimated part".into(), ..time(a, b, unit) },
        ..row(Some(a), Some(b), Matched::Name, unit)
    });
    let is_single = a.len().min(b.len()) < 2;
    let (functions, loops, blocks) = (plain(functions), plain(loops), plain(blocks));
    Some(CodeDiff { program, functions, loops, blocks, is_single })
}

/// The rows of one side by what they are.
struct Sorted {
    program: Option<Timed>,
    functions: Vec<Timed>,
    pieces: Vec<Timed>,
}

impl Sorted {
    fn of(rows: Vec<Timed>) -> Self {
        let mut sorted = Self { program: None, functions: Vec::new(), pieces: Vec::new() };
        for row in rows {
            match row.kind {
                Kind::Program => sorted.program = Some(row),
                Kind::Function => sorted.functions.push(row),
                Kind::Loop | Kind::Block => sorted.pieces.push(row),
            }
        }
        sorted
    }
}

/// Numbers of the compared functions, by their number on each side.
struct Numbers {
    a: Vec<Option<usize>>,
    b: Vec<Option<usize>>,
}

impl Numbers {
    /// `numbers` has where each pair is now.
    fn of(found: &Pairs, numbers: &[usize], a: usize, b: usize) -> Self {
        let mut all = Self { a: vec![None; a], b: vec![None; b] };
        for (pair, (a, b, _)) in found.all().into_iter().enumerate() {
            if let Some(a) = a {
                all.a[a] = Some(numbers[pair]);
            }
            if let Some(b) = b {
                all.b[b] = Some(numbers[pair]);
            }
        }
        all
    }

    /// The function of each loop and block of a side: of its name and module, the last one that begins before it.
    fn of_pieces(
        &self,
        own: &[Option<usize>],
        functions: &[Timed],
        pieces: &[Timed],
    ) -> Vec<Option<usize>> {
        let mut by_name: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
        for (number, function) in functions.iter().enumerate() {
            by_name.entry((&function.name, &function.module)).or_default().push(number);
        }
        let of = |piece: &Timed| {
            let source = matched::plain(&piece.name);
            let module = piece.module.as_str();
            let exact = by_name.get(&(piece.name.as_str(), module));
            let all = exact.or_else(|| by_name.get(&(source.as_str(), module)))?;
            let before = all.iter().filter(|i| functions[**i].start <= piece.start);
            own[*before.max_by_key(|i| functions[**i].start).or(all.first())?]
        };
        pieces.iter().map(of).collect()
    }
}

fn compared(found: &Pairs, a: &[Timed], b: &[Timed], unit: &str) -> Vec<(CodeRow, Kind)> {
    let of = |(in_a, in_b, how): (Option<usize>, Option<usize>, Matched)| {
        let (one, other) = (in_a.map(|i| &a[i]), in_b.map(|i| &b[i]));
        let kind = one.or(other).map_or(Kind::Block, |row| row.kind);
        (row(one, other, how, unit), kind)
    };
    found.all().into_iter().map(of).collect()
}

/// Sorts rows by how much they gain or lose; of one that only one side has, all. Where each of them is now.
fn by_change(rows: &mut Vec<(CodeRow, Kind)>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|x, y| rows[*y].0.change().total_cmp(&rows[*x].0.change()));
    let mut now = vec![0; rows.len()];
    for (place, old) in order.iter().enumerate() {
        now[*old] = place;
    }
    let mut old: Vec<Option<(CodeRow, Kind)>> = rows.drain(..).map(Some).collect();
    rows.extend(order.iter().filter_map(|i| old[*i].take()));
    now
}

fn side(row: &Timed, unit: &str) -> Side {
    Side {
        id: row.name.clone(),
        label: row.short.clone(),
        level: 0,
        value: row.value,
        error: row.error,
        unit: unit.to_owned(),
        place: Place::default(),
    }
}

fn time(a: &Timed, b: &Timed, unit: &str) -> DiffRow {
    let (a, b) = (side(a, unit), side(b, unit));
    DiffRow::of(&a, Some(&a), Some(&b))
}

fn row(a: Option<&Timed>, b: Option<&Timed>, matched: Matched, unit: &str) -> CodeRow {
    let both = [a, b];
    let (of_a, of_b) = (a.map(|a| side(a, unit)), b.map(|b| side(b, unit)));
    let named = of_a.as_ref().or(of_b.as_ref());
    let named = named.cloned().unwrap_or_else(|| Side { unit: unit.into(), ..Side::default() });
    let parts = a.zip(b).map(|(a, b)| parts(a, b, unit)).unwrap_or_default();
    CodeRow {
        module: a.or(b).map(|row| row.module.clone()).unwrap_or_default(),
        function: None,
        start: both.map(|row| row.and_then(|row| row.start)),
        end: both.map(|row| row.and_then(|row| row.end)),
        matched,
        time: DiffRow::of(&named, of_a.as_ref(), of_b.as_ref()),
        bottleneck: both.map(|row| row.and_then(|row| row.bottleneck)),
        cycles_per_entry: both.map(|row| row.and_then(|row| row.cycles_per_entry)),
        entries: both.map(|row| row.and_then(|row| row.entries)),
        level1: both.map(|row| row.and_then(|row| row.level1)),
        parts,
    }
}

/// The parts of both, the largest change first. Each error is that to the other value's side.
fn parts(a: &Timed, b: &Timed, unit: &str) -> Vec<DiffRow> {
    let part = |((id, label, of_a), (_, _, of_b)): (&Part, &Part)| {
        let is_more = of_b[0] > of_a[0];
        let error = |ends: &[f64; 3], up: bool| {
            if up { ends[2] - ends[0] } else { ends[0] - ends[1] }
        };
        let one = |value: f64, error: f64| Side {
            id: (*id).to_owned(),
            label: (*label).to_owned(),
            value: Some(value),
            error: Some(error),
            unit: unit.to_owned(),
            ..Side::default()
        };
        let of_a = one(of_a[0], error(of_a, is_more));
        let of_b = one(of_b[0], error(of_b, !is_more));
        DiffRow::of(&of_a, Some(&of_a), Some(&of_b))
    };
    let mut all: Vec<DiffRow> = a.parts.iter().zip(&b.parts).map(part).collect();
    all.sort_by(|x, y| y.change().total_cmp(&x.change()));
    all
}

type Part = (&'static str, &'static str, [f64; 3]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::diff::Judgement;
    use crate::documents::estimate::Instruction;
    use crate::documents::estimate::{Estimate, Parts, Row, Share};
    use crate::documents::report::Source;
    use crate::documents::report_code::Sampled;
    use tma::Address;

    /// A loop of `sum` with this code and share, of which so much is Memory Bound ± 0.05.
    fn piece(start: u64, code: &[&str], share: f64, memory: f64) -> Row {
        let instruction =
            |text: &&str| Instruction { text: (*text).into(), ..Instruction::default() };
        let (low, high) = (memory - 0.05, memory + 0.05);
        let memory_bound = Share { value: memory, low, high, ..Share::default() };
        Row {
            name: "sum(int*)".into(),
            module: "/bin/old/p".into(),
            start: Some(start.into()),
            end: Some((start + 16).into()),
            share,
            parts: Parts { memory_bound, ..Parts::default() },
            code: code.iter().map(instruction).collect(),
            ..Row::default()
        }
    }

    /// A run of so many milliseconds and 10,000 samples.
    fn run(ms: f64, loops: Vec<Row>, blocks: Vec<Row>) -> Report {
        let mut report = Report::new(Source::NoPmu);
        report.software.insert("task_clock_ms".into(), Some(ms));
        report.sampled =
            Some(Sampled { event: "cpu-clock".into(), samples: 10_000, ..Sampled::default() });
        let share = loops.iter().chain(&blocks).map(|row| row.share).sum();
        let function = Row { share, ..piece(0x1100, &[], share, 0.5) };
        let (functions, covered) = (vec![function], share);
        report.estimate =
            Some(Estimate { covered, functions, loops, blocks, ..Estimate::default() });
        report
    }

    const CHASE: [&str; 3] = ["mov rax,[rax]", "dec ecx", "jne 0x1140"];
    const MOVED: [&str; 3] = ["mov rax,[rax]", "dec ecx", "jne 0x2240"];
    const OTHER: [&str; 3] = ["mov rbx,[rbx]", "dec edx", "jne 0x2280"];
    const ADD: [&str; 2] = ["add rax,rbx", "ret"];

    /// By hand: 0.6 of 1000 ms against 0.5 of 400 ms; of those 0.9 and 0.4 are Memory Bound.
    #[test]
    fn code_that_moved_is_the_same_and_its_parts_are_in_time() {
        let loops = vec![piece(0x1140, &CHASE, 0.6, 0.9), piece(0x1180, &CHASE, 0.1, 0.5)];
        let a = run(1000.0, loops, vec![piece(0x11c0, &ADD, 0.1, 0.0)]);
        let loops = vec![piece(0x2240, &MOVED, 0.5, 0.4), piece(0x2280, &OTHER, 0.2, 0.5)];
        let b = run(400.0, loops, vec![piece(0x22c0, &["imul rax,rbx", "ret"], 0.1, 0.0)]);
        let found = code(&[a], &[b]).unwrap();
        let [first, second] = &found.loops[..] else { panic!("{:?}", found.loops) };
        assert_eq!((first.time.a, first.time.b), (Some(600.0), Some(200.0)));
        assert_eq!((first.matched, first.time.judgement), (Matched::Shape, Judgement::Less));
        assert_eq!(first.start, [0x1140, 0x2240].map(|at| Some(Address(at))));
        let memory = &first.parts[0];
        assert_eq!((memory.id.as_str(), memory.judgement), ("memory_bound", Judgement::Less));
        assert!((memory.difference.unwrap() + 460.0).abs() < 1e-9, "540 to 80: {memory:?}");
        assert_eq!(second.matched, Matched::Mnemonics, "its registers are others");
        assert_eq!(found.blocks.len(), 2, "an addition is no multiplication: {:?}", found.blocks);
        assert!(found.blocks.iter().all(|row| row.time.judgement == Judgement::Absent));
        let function = &found.functions[0];
        assert_eq!((function.time.label.as_str(), function.module.as_str()), ("sum", "p"));
        assert!(found.loops.iter().all(|row| row.function == Some(0)));
        assert!(found.is_single);
    }

    /// By hand: 500, 510, 520 ms: s = 10, and 4.303 × 10 ÷ √3 = 24.8.
    #[test]
    fn the_error_of_several_runs_is_how_they_differ() {
        let of = |ms: f64| run(ms, vec![piece(0x1140, &CHASE, 0.5, 0.5)], Vec::new());
        let (a, b) = ([1000.0, 1020.0, 1040.0].map(of), [1100.0, 1100.0, 1100.0].map(of));
        let found = code(&a, &b).unwrap();
        let time = &found.functions[0].time;
        assert_eq!((time.a, time.difference), (Some(510.0), Some(40.0)));
        assert!((time.margin.unwrap() - 24.84).abs() < 0.01, "{time:?}");
        assert_eq!((time.judgement, found.is_single), (Judgement::More, false));
    }

    #[test]
    fn samples_of_misses_are_shares_and_no_time() {
        let mut of = run(1000.0, vec![piece(0x1140, &CHASE, 0.5, 0.5)], Vec::new());
        of.sampled.as_mut().unwrap().event = "cache-misses".into();
        of.estimate = None;
        of.functions.push(crate::documents::report_code::FunctionRow {
            name: "sum".into(),
            share: 0.5,
            ..Default::default()
        });
        let found = code(&[of.clone()], &[of]).unwrap();
        assert_eq!(found.functions[0].time.unit, "ratio");
        assert_eq!(found.functions[0].time.a, Some(0.5));
        assert!(code(&[Report::new(Source::NoPmu)], &[Report::new(Source::NoPmu)]).is_none());
    }
}
