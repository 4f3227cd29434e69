//! Recorded samples of loads and stores as text and CSV.

use super::csv::{number, row};
use crate::documents::loads::{
    CriticalRow, EventRow, LevelsRow, LineRow, LoadRow, Loads, VariableRow,
};
use std::fmt::Write as _;

/// The document as text: of each table `most` rows.
pub fn text(document: &Loads, most: usize) -> String {
    let mut out = String::new();
    for event in &document.events {
        head(event, &mut out);
        accesses("load", event, &document.loads, most, &mut out);
        accesses("store", event, &document.stores, most, &mut out);
        variables(event, &document.variables, most, &mut out);
    }
    lines(document, most, &mut out);
    critical(document, most, &mut out);
    hard_branches(document, most, &mut out);
    code_misses(document, most, &mut out);
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn head(event: &EventRow, out: &mut String) {
    let stores = match event.stores {
        0 => String::new(),
        n => format!(", {n} stores"),
    };
    let _ = writeln!(out, "{}: {} loads{stores} in {}", event.name, event.loads, event.source);
    for sentence in &event.bias {
        let _ = writeln!(out, "  {sentence}");
    }
    let shares = match event.shares.as_str() {
        "latency" => "shares are of Σ latency × period",
        _ => "no latencies are recorded: shares are of the samples, by their periods",
    };
    let _ = writeln!(out, "  {shares}");
    if event.others > 0 {
        let _ =
            writeln!(out, "  {} samples of instructions that neither load nor store", event.others);
    }
    if event.inexact > 0 {
        let _ = writeln!(
            out,
            "  {} samples skid: the load is the instruction named or one a few before it",
            event.inexact
        );
    }
}

fn more(all: usize, most: usize, out: &mut String) {
    if all > most {
        let _ = writeln!(out, "  {} more (-n shows more, --format json all)", all - most);
    }
}

/// Levels with their headings: those that any row has.
type Column = (&'static str, fn(&LevelsRow) -> u64);

const COLUMNS: [Column; 8] = [
    ("LFB", |l| l.lfb),
    ("L1", |l| l.l1),
    ("L2", |l| l.l2),
    ("L3", |l| l.l3),
    ("DRAM", |l| l.ram),
    ("remote DRAM", |l| l.remote_ram),
    ("remote cache", |l| l.remote_cache),
    ("other", |l| l.other),
];

fn columns<'a>(all: impl Iterator<Item = &'a LevelsRow> + Clone) -> Vec<Column> {
    COLUMNS.into_iter().filter(|(_, of)| all.clone().any(|row| of(row) > 0)).collect()
}

fn level_cells(columns: &[Column], levels: &LevelsRow) -> String {
    let total: u64 = COLUMNS.iter().map(|(_, of)| of(levels)).sum();
    let cell = |(name, of): &Column| {
        let wide = name.len().max(5) + 2;
        let text = match of(levels) {
            0 => "-".to_owned(),
            n => format!("{:.0} %", 100.0 * n as f64 / total.max(1) as f64),
        };
        format!("{text:>wide$}")
    };
    columns.iter().map(cell).collect()
}

fn level_heads(columns: &[Column]) -> String {
    columns.iter().map(|(name, _)| format!("{name:>wide$}", wide = name.len().max(5) + 2)).collect()
}

fn cycles(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.0}"))
}

fn accesses(what: &str, event: &EventRow, all: &[LoadRow], most: usize, out: &mut String) {
    let all: Vec<&LoadRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let heads = level_heads(&columns);
    let _ = writeln!(out, "\n   share  samples{heads}  cycles: mean    p50    p99  {what}");
    for load in all.iter().take(most) {
        let at = |value: Option<u32>| value.map_or("-".to_owned(), |v| v.to_string());
        let _ = writeln!(
            out,
            "{:6.1} %  {:>7}{}  {:>12}  {:>5}  {:>5}  {}",
            100.0 * load.share,
            load.samples,
            level_cells(&columns, &load.levels),
            cycles(load.latency_mean),
            at(load.latency_p50),
            at(load.latency_p99),
            place(load)
        );
        for detail in details(load) {
            let _ = writeln!(out, "{:18}{detail}", "");
        }
    }
    more(all.len(), most, out);
}

fn source(file: Option<&String>, line: Option<u32>) -> Option<String> {
    let name = file?.rsplit('/').next()?;
    Some(line.map_or(name.to_owned(), |line| format!("{name}:{line}")))
}

fn place(load: &LoadRow) -> String {
    let mut text = load.address.clone();
    match &load.function {
        Some(function) => _ = write!(text, " {function}"),
        None if load.module.is_empty() => text += " outside all known mappings",
        None => _ = write!(text, " {}", load.module),
    }
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
    if let Some(class) = load.pattern.as_ref().or(load.class.as_ref()) {
        code.push(class.clone());
    }
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
    let mut memory = Vec::new();
    let variables: Vec<String> = load
        .variables
        .iter()
        .filter(|one| one.name != "unknown")
        .map(|one| match one.samples == load.samples {
            true => one.name.clone(),
            false => format!("{} ({})", one.name, one.samples),
        })
        .collect();
    if !variables.is_empty() {
        memory.push(format!("data: {}", variables.join(", ")));
    }
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

/// Addresses, of many only the first.
fn shortened(addresses: &[String]) -> String {
    let shown = addresses.iter().take(MOST_SLICE).map(String::as_str).collect::<Vec<_>>().join(" ");
    match addresses.len().saturating_sub(MOST_SLICE) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Addresses shown of a slice.
const MOST_SLICE: usize = 6;

fn variables(event: &EventRow, all: &[VariableRow], most: usize, out: &mut String) {
    let all: Vec<&VariableRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.iter().all(|row| row.kind == "unknown") {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let heads = level_heads(&columns);
    let _ = writeln!(out, "\n   share    loads   stores{heads}  cycles: mean  data");
    for one in all.iter().take(most) {
        let size = one.size.map_or(String::new(), |size| format!(" ({size} bytes)"));
        let of = match one.module.rsplit('/').next() {
            Some(name) if !name.is_empty() => format!(" of {name}"),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "{:6.1} %  {:>7}  {:>7}{}  {:>12}  {}{size}{of}",
            100.0 * one.share,
            one.loads,
            one.stores,
            level_cells(&columns, &one.levels),
            cycles(one.latency_mean),
            one.name,
        );
    }
    more(all.len(), most, out);
}

fn lines(document: &Loads, most: usize, out: &mut String) {
    if document.lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\ncache lines that several threads access, one of which writes");
    for line in document.lines.iter().take(most) {
        line_text(line, out);
    }
    more(document.lines.len(), most, out);
}

fn line_text(line: &LineRow, out: &mut String) {
    let sharing = match line.sharing.as_str() {
        "false" => "false sharing: different bytes",
        "true" => "the same bytes",
        _ => "other accesses were not sampled",
    };
    let process = line.process.map_or(String::new(), |pid| format!(" of process {pid}"));
    let known: Vec<&str> =
        line.variables.iter().map(String::as_str).filter(|name| *name != "unknown").collect();
    let variables =
        if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    let _ = writeln!(
        out,
        "  {}{process}{variables}: {sharing}; {} threads, {} loads, {} writes, {} modified in another core's \
         cache",
        line.address, line.threads, line.loads, line.writes, line.modified
    );
    let _ = writeln!(out, "    offset  bytes   loads  writes  modified  thread and code");
    for one in line.accesses.iter().take(MOST_ACCESSES) {
        let bytes = one.bytes.map_or("?".to_owned(), |bytes| bytes.to_string());
        let thread = one.thread.map_or("?".to_owned(), |thread| thread.to_string());
        let name = one.thread_name.as_ref().map_or(String::new(), |name| format!(" {name}"));
        let cpus: Vec<String> = one.cpus.iter().map(u32::to_string).collect();
        let on = match cpus.is_empty() {
            true => String::new(),
            false => format!(" on CPU {}", cpus.join(" ")),
        };
        let function = one.function.as_ref().map_or(String::new(), |name| format!(" {name}"));
        let at = source(one.file.as_ref(), one.line).map_or(String::new(), |at| format!(" {at}"));
        let _ = writeln!(
            out,
            "    {:>6}  {bytes:>5}  {:>6}  {:>6}  {:>8}  {thread}{name}{on}: {}{function}{at}",
            one.offset, one.loads, one.writes, one.modified, one.address
        );
    }
    if line.accesses.len() > MOST_ACCESSES {
        let _ = writeln!(out, "    {} more (all in JSON)", line.accesses.len() - MOST_ACCESSES);
    }
}

/// Accesses shown of a line.
const MOST_ACCESSES: usize = 16;

fn critical(document: &Loads, most: usize, out: &mut String) {
    if document.critical.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\ncritical loads: > 5 % of the loads, > 20 % of them miss the last cache, addresses neither constant \
         nor a stride (CRISP)"
    );
    let _ = writeln!(out, "  of loads  misses  load");
    for one in document.critical.iter().take(most) {
        let _ = writeln!(
            out,
            "  {:6.1} %  {:>6}  {} {}{}",
            100.0 * one.executed,
            format!("{}{:.0} %", if one.misses_at_least { "≥ " } else { "" }, 100.0 * one.misses),
            one.address,
            one.function.as_deref().unwrap_or(&one.module),
            critical_notes(one)
        );
    }
    more(document.critical.len(), most, out);
}

fn critical_notes(one: &CriticalRow) -> String {
    let mut notes = Vec::new();
    match &one.class {
        Some(class) => notes.push(class.clone()),
        None => notes.push("if its addresses are irregular, which is not known".to_owned()),
    }
    if let Some(slice) = one.slice.as_ref().filter(|slice| !slice.is_empty()) {
        notes.push(format!("slice {}", shortened(slice)));
    }
    match one.parallel {
        Some(misses) => {
            let least = if one.parallel_of.as_deref() == Some("cycles") { "≥ " } else { "" };
            notes.push(format!("MLP {least}{misses:.1}"));
        }
        None => notes.push("MLP not known".to_owned()),
    }
    if one.executed_of == "samples" {
        notes.push("share of the sampled loads, not of executed ones".to_owned());
    }
    if one.misses_of == "samples" {
        notes.push("misses of its samples".to_owned());
    }
    format!(": {}", notes.join("; "))
}

fn hard_branches(document: &Loads, most: usize, out: &mut String) {
    if document.hard_branches.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nhard branches: > 15 % of their executions mispredicted, where these are not known (-) of the taken ones"
    );
    let _ = writeln!(out, "  mispredicted    taken  executions  branch");
    for one in document.hard_branches.iter().take(most) {
        let _ = writeln!(
            out,
            "  {:10.1} %  {:>7}  {:>10}  {} {}",
            100.0 * one.share,
            one.taken,
            one.executions.map_or("-".to_owned(), |n| n.to_string()),
            one.address,
            one.function.as_deref().unwrap_or(&one.module)
        );
    }
    more(document.hard_branches.len(), most, out);
}

fn code_misses(document: &Loads, most: usize, out: &mut String) {
    let all = &document.code_misses;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nlines of code that missed, and blocks 27 to 200 cycles before: prefetch sites"
    );
    let _ = writeln!(out, "   share  samples  line");
    for one in all.iter().take(most) {
        let of = one.function.as_deref().unwrap_or(&one.module);
        let (share, samples) = (100.0 * one.share, one.samples);
        let _ = writeln!(out, "{share:6.1} %  {samples:>7}  {} {of} ({})", one.address, one.name);
        for site in &one.sites {
            let of = site.function.as_deref().unwrap_or(&site.module);
            let _ = writeln!(
                out,
                "{:19}before {:.0} % of them, {:.0} cycles: {} {of} (before {} missed lines)",
                "",
                100.0 * site.coverage,
                site.distance,
                site.address,
                site.fan_out
            );
        }
        if one.reached == 0 {
            let _ = writeln!(out, "{:19}no branch at this distance, or no cycles are recorded", "");
        }
    }
    more(all.len(), most, out);
}

/// Columns of the CSV form.
const CSV: &str = "what,event,module,address,share,samples,lfb,l1,l2,l3,ram,remote_ram,remote_cache,other,\
latency_mean,latency_p50,latency_p90,latency_p99,function,file,line,class,name,loads,writes,modified\n";

/// The document as CSV: one row per load, store, variable, cache line, critical load, hard branch and missed line of code;
/// empty where
/// a column does not apply.
pub fn csv(document: &Loads) -> String {
    let mut out = CSV.to_owned();
    let mut add = |cells: Cells| {
        out += &row(cells.all());
        out.push('\n');
    };
    document.loads.iter().for_each(|load| add(Cells::of("load", load)));
    document.stores.iter().for_each(|store| add(Cells::of("store", store)));
    for one in &document.variables {
        add(Cells {
            what: one.kind.clone(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.clone().unwrap_or_default(),
            share: number(Some(one.share)),
            samples: (one.loads + one.stores).to_string(),
            levels: Some(one.levels.clone()),
            latencies: [number(one.latency_mean), String::new(), String::new(), String::new()],
            name: one.name.clone(),
            counts: [one.loads.to_string(), one.stores.to_string(), String::new()],
            ..Cells::default()
        });
    }
    for one in &document.lines {
        add(Cells {
            what: "line".into(),
            address: one.address.clone(),
            samples: (one.loads + one.writes).to_string(),
            class: one.sharing.clone(),
            name: one.variables.join(" "),
            counts: [one.loads, one.writes, one.modified].map(|n| n.to_string()),
            ..Cells::default()
        });
    }
    for one in &document.critical {
        add(Cells {
            what: "critical".into(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.clone(),
            share: number(Some(one.executed)),
            function: one.function.clone().unwrap_or_default(),
            class: one.class.clone().unwrap_or_default(),
            ..Cells::default()
        });
    }
    for one in &document.hard_branches {
        add(Cells {
            what: "hard_branch".into(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.clone(),
            share: number(Some(one.share)),
            samples: one.taken.to_string(),
            function: one.function.clone().unwrap_or_default(),
            ..Cells::default()
        });
    }
    for one in &document.code_misses {
        add(Cells {
            what: "code_miss".into(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.clone(),
            share: number(Some(one.share)),
            samples: one.samples.to_string(),
            function: one.function.clone().unwrap_or_default(),
            name: one.sites.iter().map(|site| site.address.as_str()).collect::<Vec<_>>().join(" "),
            ..Cells::default()
        });
    }
    out
}

/// The cells of a row of CSV.
#[derive(Default)]
struct Cells {
    what: String,
    event: String,
    module: String,
    address: String,
    share: String,
    samples: String,
    levels: Option<LevelsRow>,
    latencies: [String; 4],
    function: String,
    file: String,
    line: String,
    class: String,
    name: String,
    /// Reads, writes, lines modified in another core's cache.
    counts: [String; 3],
}

impl Cells {
    fn of(what: &str, load: &LoadRow) -> Self {
        let at = |value: Option<u32>| value.map(|v| v.to_string()).unwrap_or_default();
        Self {
            what: what.to_owned(),
            event: load.event.to_string(),
            module: load.module.clone(),
            address: load.address.clone(),
            share: number(Some(load.share)),
            samples: load.samples.to_string(),
            levels: Some(load.levels.clone()),
            latencies: [
                number(load.latency_mean),
                at(load.latency_p50),
                at(load.latency_p90),
                at(load.latency_p99),
            ],
            function: load.function.clone().unwrap_or_default(),
            file: load.file.clone().unwrap_or_default(),
            line: at(load.line),
            class: load.class.clone().unwrap_or_default(),
            counts: [String::new(), String::new(), load.snoop_modified.to_string()],
            ..Self::default()
        }
    }

    fn all(self) -> Vec<String> {
        let levels = COLUMNS.map(|(_, of)| {
            self.levels.as_ref().map(|levels| of(levels).to_string()).unwrap_or_default()
        });
        let Self { what, event, module, address, share, samples, .. } = self;
        let mut all = vec![what, event, module, address, share, samples];
        all.extend(levels);
        all.extend(self.latencies);
        all.extend([self.function, self.file, self.line, self.class, self.name]);
        all.extend(self.counts);
        all
    }
}
