//! Loads and stores, variables and members of structures, and cache lines that threads share, as text.

use crate::documents::loads::{
    EventRow, FieldRow, LevelsRow, LineAccessRow, LineRow, LoadRow, Loads, VariableKind,
    VariableRow,
};
use crate::format::{joined, source};
use crate::render::width::{Cell, Page, Rows, Subject, Worth};
use loads::recorded::Sharing;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tma::Address;

pub(super) fn more(all: usize, most: usize, out: &mut String) {
    if all > most {
        let _ = writeln!(out, "  {} more (-n shows more, --format json all)", all - most);
    }
}

/// Levels with their headings: those that any row has.
pub(super) type Column = (&'static str, fn(&LevelsRow) -> u64);

pub(super) const COLUMNS: [Column; 8] = [
    ("LFB", |l| l.lfb),
    ("L1", |l| l.l1),
    ("L2", |l| l.l2),
    ("L3", |l| l.l3),
    ("DRAM", |l| l.ram),
    ("remote DRAM", |l| l.remote_ram),
    ("remote cache", |l| l.remote_cache),
    ("other", |l| l.other),
];

pub(super) fn columns<'a>(all: impl Iterator<Item = &'a LevelsRow> + Clone) -> Vec<Column> {
    COLUMNS.into_iter().filter(|(_, of)| all.clone().any(|row| of(row) > 0)).collect()
}

/// Shares of the levels; their headings without `levels`.
fn level_cells(columns: &[Column], levels: Option<&LevelsRow>) -> Vec<Cell> {
    let total = |levels| COLUMNS.iter().map(|(_, of)| of(levels)).sum::<u64>();
    let cell = |(name, of): &Column| {
        let wide = name.len().max(5) + 2;
        let text = match levels.map(|levels| (of(levels), total(levels))) {
            None => (*name).to_owned(),
            Some((0, _)) => "-".to_owned(),
            Some((n, total)) => format!("{:.0} %", 100.0 * n as f64 / total.max(1) as f64),
        };
        (Worth::Little, format!("{text:>wide$}"))
    };
    columns.iter().map(cell).collect()
}

pub(super) fn cycles(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.0}"))
}

/// Addresses, of many only the first.
pub(super) fn shortened(addresses: &[Address]) -> String {
    let shown = joined(addresses.iter().take(MOST_SLICE));
    match addresses.len().saturating_sub(MOST_SLICE) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Addresses shown of a slice.
const MOST_SLICE: usize = 6;

pub(super) fn accesses(
    what: &str,
    event: &EventRow,
    all: &[LoadRow],
    Rows { most, page }: Rows,
    out: &mut String,
) {
    let all: Vec<&LoadRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let cells = |share: &str, samples: &str, levels: Vec<Cell>, [mean, p50, p99]: [&str; 3]| {
        let mut cells =
            vec![(Worth::All, format!("{share:>8}")), (Worth::Some, format!("  {samples:>7}"))];
        cells.extend(levels);
        cells.push((Worth::Some, format!("  {mean:>12}")));
        cells.extend([p50, p99].map(|one| (Worth::Little, format!("  {one:>5}"))));
        cells
    };
    let heads = ["cycles: mean", "p50", "p99"];
    out.push('\n');
    page.heading(out, &cells("share", "samples", level_cells(&columns, None), heads), what);
    let below = if page.is_below(80) { 4 } else { 18 };
    for load in all.iter().take(most) {
        let at = |value: Option<u32>| value.map_or("-".to_owned(), |v| v.to_string());
        let share = format!("{:.1} %", 100.0 * load.share);
        let levels = level_cells(&columns, Some(&load.levels));
        let of_latency = [cycles(load.latency_mean), at(load.latency_p50), at(load.latency_p99)];
        let of_latency = of_latency.each_ref().map(String::as_str);
        let name = match &load.function {
            Some(function) => function,
            None if load.module.is_empty() => "outside all known mappings",
            None => &load.module,
        };
        let subject = Subject { place: &load.address.to_string(), name, after: &code(load) };
        page.row(out, &cells(&share, &load.samples.to_string(), levels, of_latency), subject);
        for detail in details(load) {
            let _ = writeln!(out, "{:below$}{detail}", "");
        }
    }
    more(all.len(), most, out);
}

/// Source line and instruction.
fn code(load: &LoadRow) -> String {
    let mut text = String::new();
    if let Some(source) = source(load.file.as_ref(), load.line) {
        let _ = write!(text, " {source}");
    }
    if let Some(instruction) = &load.instruction {
        let _ = write!(text, ": {instruction}");
    }
    text
}

fn details(load: &LoadRow) -> Vec<String> {
    let mut code = Vec::new();
    if let Some(block) = &load.block {
        code.push(format!("block {}..{}", block.start, block.end));
    }
    code.extend(load.pattern.clone().or(load.class.map(|class| class.to_string())));
    for (depth, one) in load.loops.iter().enumerate() {
        let trips = match (one.trips, one.trips_at_least) {
            (Some(mean), _) => format!(" ({mean:.1} trips)"),
            (None, Some(least)) => format!(" (≥ {least} trips)"),
            (None, None) => String::new(),
        };
        let what = if depth == 0 { "loop" } else { "in loop" };
        let pattern = one.pattern.as_ref().filter(|_| depth > 0);
        let pattern = pattern.map_or(String::new(), |pattern| format!(": {pattern}"));
        code.push(format!("{what} {}{trips}{pattern}", one.head));
    }
    if let Some(slice) = load.slice.as_ref().filter(|slice| !slice.is_empty()) {
        code.push(format!("slice {}", shortened(slice)));
    }
    let mut memory: Vec<String> = load.operand().into_iter().collect();
    memory.extend(load.data().map(|data| format!("data: {data}")));
    let part = |n: u64| format!("{:.0} %", 100.0 * n as f64 / load.samples.max(1) as f64);
    let counts = [
        (load.tlb_walks.unwrap_or(0), "page walk"),
        (load.tlb_second.unwrap_or(0), "second TLB"),
        (load.snoop_modified, "modified in another core's cache"),
        (load.snoop_hits, "in another core's cache"),
        (load.locked, "locked"),
    ];
    memory.extend(
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what} {}", part(*n))),
    );
    [code, memory].iter().filter(|all| !all.is_empty()).map(|all| all.join(", ")).collect()
}

/// The cells of a row; of its heading those that it is given.
fn data_cells(texts: [&str; 3], levels: Vec<Cell>, mean: &str) -> Vec<Cell> {
    let [share, loads, stores] = texts;
    let mut cells = vec![
        (Worth::All, format!("{share:>8}")),
        (Worth::Some, format!("  {loads:>7}")),
        (Worth::Some, format!("  {stores:>7}")),
    ];
    cells.extend(levels);
    cells.push((Worth::Some, format!("  {mean:>12}")));
    cells
}

const HEADS: [&str; 3] = ["share", "loads", "stores"];

fn numbers(share: f64, loads: u64, stores: u64) -> [String; 3] {
    [format!("{:.1} %", 100.0 * share), loads.to_string(), stores.to_string()]
}

pub(super) fn variables(
    event: &EventRow,
    all: &[VariableRow],
    Rows { most, page }: Rows,
    out: &mut String,
) {
    let all: Vec<&VariableRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.iter().all(|row| row.kind == VariableKind::Unknown) {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    out.push('\n');
    page.heading(out, &data_cells(HEADS, level_cells(&columns, None), "cycles: mean"), "data");
    let below = if page.is_below(80) { 4 } else { 28 };
    for one in all.iter().take(most) {
        let size = one.size.map_or(String::new(), |size| format!(" ({size} bytes)"));
        let of = match one.module.rsplit('/').next() {
            Some(name) if !name.is_empty() => format!(" of {name}"),
            _ => String::new(),
        };
        let numbers = numbers(one.share, one.loads, one.stores);
        let levels = level_cells(&columns, Some(&one.levels));
        let cells =
            data_cells(numbers.each_ref().map(String::as_str), levels, &cycles(one.latency_mean));
        let after = format!("{size}{of}");
        page.row(out, &cells, Subject { place: "", name: &one.name, after: &after });
        if one.kind == VariableKind::Heap {
            let _ =
                writeln!(out, "{:below$}- which allocation is not known: a recording has none", "");
        }
        members(one, page, below, out);
    }
    more(all.len(), most, out);
}

/// The members of a variable, if it has any.
fn members(of: &VariableRow, page: Page, below: usize, out: &mut String) {
    let all = of.members.iter().filter(|member| member.name != of.name);
    for one in all.clone().take(MOST_MEMBERS) {
        let [share, loads, stores] = numbers(one.share, one.loads, one.stores);
        let cells = [
            (Worth::All, format!("{share:>8}")),
            (Worth::Some, format!("  {loads:>7}")),
            (Worth::Some, format!("  {stores:>7}")),
        ];
        let after = format!(", mean {} cycles", cycles(one.latency_mean));
        page.row(out, &cells, Subject { place: "-", name: &one.name, after: &after });
    }
    if all.clone().count() > MOST_MEMBERS {
        let _ = writeln!(out, "{:below$}- {} more", "", all.count() - MOST_MEMBERS);
    }
}

/// Members shown of a variable.
const MOST_MEMBERS: usize = 6;

/// Members of structures, with the structure that they are in.
pub(super) fn fields(
    event: &EventRow,
    all: &[FieldRow],
    Rows { most, page }: Rows,
    out: &mut String,
) {
    let all: Vec<&FieldRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let cells = |texts: [&str; 3], levels: Vec<Cell>, mean: &str, offset: &str| {
        let mut cells = data_cells(texts, levels, mean);
        cells.push((Worth::Some, format!("  {offset:>6}")));
        cells
    };
    let heads = cells(HEADS, level_cells(&columns, None), "cycles: mean", "offset");
    out.push('\n');
    page.heading(out, &heads, "member of a structure, by the operands");
    for one in all.iter().take(most) {
        let numbers = numbers(one.share, one.loads, one.stores);
        let cells = cells(
            numbers.each_ref().map(String::as_str),
            level_cells(&columns, Some(&one.levels)),
            &cycles(one.latency_mean),
            &one.offset.to_string(),
        );
        let after = format!(": {}", one.member);
        page.row(out, &cells, Subject { place: "", name: &one.of, after: &after });
    }
    more(all.len(), most, out);
}

pub(super) fn lines(document: &Loads, Rows { most, page }: Rows, out: &mut String) {
    if document.lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\ncache lines that several threads access, one of which writes");
    for line in document.lines.iter().take(most) {
        line_text(line, page, out);
    }
    more(document.lines.len(), most, out);
}

fn line_text(line: &LineRow, page: Page, out: &mut String) {
    let sharing = match line.sharing {
        Sharing::Different => "false sharing: different bytes",
        Sharing::Same => "the same bytes",
        Sharing::Unknown => "other accesses were not sampled",
    };
    let process = line.process.map_or(String::new(), |pid| format!(" of process {pid}"));
    let known: Vec<&str> =
        line.variables.iter().map(String::as_str).filter(|name| *name != "unknown").collect();
    let variables =
        if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    let cpus: BTreeSet<u32> =
        line.accesses.iter().flat_map(|one| one.cpus.iter().copied()).collect();
    let on = if cpus.is_empty() { String::new() } else { format!(" on {} CPUs", cpus.len()) };
    let _ = writeln!(
        out,
        "  {}{process}{variables}: {sharing}; {} threads{on}, {} loads, {} writes; {}",
        line.address,
        line.threads,
        line.loads,
        line.writes,
        found_modified(line)
    );
    let heads = ["offset", "bytes", "loads", "writes", "HITM", "of them", "cycles"];
    page.heading(out, &line_cells(heads), "data, thread and code");
    for one in line.accesses.iter().take(MOST_ACCESSES) {
        access_text(one, line.modified, page, out);
    }
    if line.accesses.len() > MOST_ACCESSES {
        let _ = writeln!(out, "    {} more (all in JSON)", line.accesses.len() - MOST_ACCESSES);
    }
}

/// `12 found modified in another core's cache (HITM; 3 on another node), 40 % of all`.
fn found_modified(line: &LineRow) -> String {
    let remote = match line.modified_remote {
        0 => String::new(),
        n => format!("; {n} on another node"),
    };
    let share = line.share.filter(|share| *share > 0.0);
    let share = share.map_or(String::new(), |share| format!(", {:.1} % of all", 100.0 * share));
    format!("{} found modified in another core's cache (HITM{remote}){share}", line.modified)
}

fn line_cells(texts: [&str; 7]) -> [Cell; 7] {
    let [offset, bytes, loads, writes, hitm, part, cycles] = texts;
    [
        (Worth::All, format!("    {offset:>6}")),
        (Worth::Little, format!("  {bytes:>5}")),
        (Worth::Some, format!("  {loads:>6}")),
        (Worth::Some, format!("  {writes:>6}")),
        (Worth::Some, format!("  {hitm:>4}")),
        (Worth::Little, format!("  {part:>7}")),
        (Worth::Little, format!("  {cycles:>6}")),
    ]
}

fn access_text(one: &LineAccessRow, modified: u64, page: Page, out: &mut String) {
    let bytes = one.bytes.map_or("?".to_owned(), |bytes| bytes.to_string());
    let part = match one.modified {
        0 => "-".to_owned(),
        n => format!("{:.1} %", 100.0 * n as f64 / modified.max(1) as f64),
    };
    let field = one.field.as_ref().map_or(String::new(), |field| format!("{field}, "));
    let thread = one.thread.map_or("?".to_owned(), |thread| thread.to_string());
    let name = one.thread_name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let cpus: Vec<String> = one.cpus.iter().map(u32::to_string).collect();
    let on = match cpus.is_empty() {
        true => String::new(),
        false => format!(" on CPU {}", cpus.join(" ")),
    };
    let at = source(one.file.as_ref(), one.line).map_or(String::new(), |at| format!(" {at}"));
    let place = format!("{field}{thread}{name}{on}: {}", one.address);
    let numbers = [u64::from(one.offset), one.loads, one.writes, one.modified];
    let [offset, loads, writes, hitm] = &numbers.map(|number| number.to_string());
    let texts = [offset, &bytes, loads, writes, hitm, &part, &cycles(one.latency_mean)];
    let function = one.function.as_deref().unwrap_or_default();
    let subject = Subject { place: &place, name: function, after: &at };
    page.row(out, &line_cells(texts.map(String::as_str)), subject);
}

/// Accesses shown of a line.
const MOST_ACCESSES: usize = 16;
