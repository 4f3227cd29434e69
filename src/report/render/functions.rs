//! The functions of a program, and the blocks of one, as text and CSV.

use super::csv;
use super::width::{Page, Subject, Worth};
use crate::documents::block::FunctionList;
use crate::format::several;
use isa::program::FunctionBlocks;
use std::fmt::Write as _;

/// One line per function.
pub fn list_text(list: &FunctionList, page: Page) -> String {
    let (file, count, shown) = (&list.file, list.count, list.functions.len());
    let which = if shown < count { format!(", the {shown} largest") } else { String::new() };
    let mut out = format!("{file}: {}{which}\n", several(count as u64, "function"));
    let cells = |start: &str, bytes: &str| {
        [(Worth::All, format!("{start:>10}")), (Worth::Some, format!("  {bytes:>7}"))]
    };
    page.heading(&mut out, &cells("address", "bytes"), "name");
    for one in &list.functions {
        let name = one.name.as_deref().unwrap_or("(no symbol)");
        let subject = Subject { name, ..Subject::default() };
        page.row(&mut out, &cells(&one.start.to_string(), &one.bytes.to_string()), subject);
    }
    let _ = writeln!(
        out,
        "tdtool block --list {file}:NAME, or {file}:0xADDRESS, lists the blocks of one"
    );
    page.fitted(out)
}

/// A row for each function, below the columns.
pub fn list_rows(list: &FunctionList) -> String {
    let mut out = "start,bytes,name,symbol\n".to_owned();
    for one in &list.functions {
        let (name, symbol) = (one.name.as_deref(), one.symbol.as_deref());
        let (start, bytes) = (one.start.to_string(), one.bytes.to_string());
        let fields = [&*start, &*bytes, name.unwrap_or(""), symbol.unwrap_or("")];
        out += &csv::line(fields);
    }
    out
}

/// One line per block; `ascii`: ASCII characters only.
pub fn blocks_text(list: &FunctionBlocks, ascii: bool, page: Page) -> String {
    let dots = if ascii { "..." } else { "…" };
    let blocks = several(list.blocks.len() as u64, "block");
    let mut out = format!("{}: {blocks}\n", list.function);
    let places: Vec<String> =
        list.blocks.iter().map(|b| format!("{}..{}", b.start, b.end)).collect();
    let wide = places.iter().map(String::len).max().unwrap_or(0).max("addresses".len());
    let cells = |number: &str, place: &str, rest: [&str; 3]| {
        let [count, depth, of] = rest;
        [
            (Worth::All, format!("{number:>7}")),
            (Worth::Some, format!("  {place:<wide$}")),
            (Worth::Little, format!("  {count:>12}")),
            (Worth::Little, format!("  {depth:>5}")),
            (Worth::Little, format!("  {of:>4}")),
        ]
    };
    page.heading(&mut out, &cells("+N", "addresses", ["instructions", "loops", "loop"]), "code");
    for (block, place) in list.blocks.iter().zip(&places) {
        let number = format!("+{}", block.number);
        let code = match block.instructions {
            0 | 1 => block.first.clone(),
            _ => format!("{} {dots} {}", block.first, block.last),
        };
        let (count, depth) = (block.instructions, block.loop_depth);
        let of = block.innermost_loop.map_or(String::new(), |l| format!("@{l}"));
        let rest = [&*count.to_string(), &depth.to_string(), &of];
        let subject = Subject { name: &code, ..Subject::default() };
        page.row(&mut out, &cells(&number, place, rest), subject);
    }
    if !list.loops.is_empty() {
        out += "     @N  first block  blocks\n";
    }
    for one in &list.loops {
        let (number, head) = (format!("@{}", one.number), format!("+{}", one.head));
        let _ = writeln!(out, "{number:>7}  {head:>11}  {:>6}", one.blocks.len());
    }
    page.fitted(out)
}

/// A row for each block, below the columns.
pub fn blocks_rows(list: &FunctionBlocks) -> String {
    let mut out = "number,start,end,instructions,loop_depth,first,last,innermost_loop\n".to_owned();
    for b in &list.blocks {
        let (number, count) = (b.number.to_string(), b.instructions.to_string());
        let depth = b.loop_depth.to_string();
        let of = b.innermost_loop.map_or(String::new(), |l| l.to_string());
        out += &csv::line([&number, &b.start, &b.end, &count, &depth, &b.first, &b.last, &of]);
    }
    out
}
