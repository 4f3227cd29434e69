//! The functions of a program as text and CSV.

use super::csv;
use super::width::{Page, Subject, Worth};
use crate::documents::block::FunctionList;
use std::fmt::Write as _;

/// One line per function.
pub fn text(list: &FunctionList, page: Page) -> String {
    let (file, count, shown) = (&list.file, list.count, list.functions.len());
    let which = if shown < count { format!(", the {shown} largest") } else { String::new() };
    let plural = if count == 1 { "" } else { "s" };
    let mut out = format!("{file}: {count} function{plural}{which}\n");
    let cells = |start: &str, bytes: &str| {
        [(Worth::All, format!("{start:>10}")), (Worth::Some, format!("  {bytes:>7}"))]
    };
    let head = Subject { after: "name", ..Subject::default() };
    page.row(&mut out, &cells("address", "bytes"), head);
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
pub fn rows(list: &FunctionList) -> String {
    let mut out = "start,bytes,name,symbol\n".to_owned();
    for one in &list.functions {
        let (name, symbol) = (one.name.as_deref(), one.symbol.as_deref());
        let (start, bytes) = (one.start.to_string(), one.bytes.to_string());
        let fields = [&*start, &*bytes, name.unwrap_or(""), symbol.unwrap_or("")];
        out += &csv::row(fields);
        out.push('\n');
    }
    out
}
