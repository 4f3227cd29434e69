//! Cache lines that threads share as text.

use super::cells::{cycles, heading, more, source};
use crate::documents::loads::{LineAccessRow, LineRow, Loads};
use crate::render::width::{Cell, Page, Rows, Subject, Worth};
use loads::recorded::Sharing;
use std::collections::BTreeSet;
use std::fmt::Write as _;

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
    heading(out, page, &cells(heads), "data, thread and code");
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

fn cells(texts: [&str; 7]) -> [Cell; 7] {
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
    page.row(out, &cells(texts.map(String::as_str)), subject);
}

/// Accesses shown of a line.
const MOST_ACCESSES: usize = 16;
