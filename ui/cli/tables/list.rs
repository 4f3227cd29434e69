//! `tdtool tables list`

use super::print;
use crate::cli::Global;
use pmu::machine::{Machine, choose};
use std::fmt::Write as _;
use std::process::ExitCode;
use tma::Result;

/// One line a table; `*` marks those of this processor.
pub fn run(global: &Global) -> Result<ExitCode> {
    let library = global.library()?;
    // A table whose head cannot be read is told of in its own line.
    let here = choose(&Machine::detect(), &library, None).unwrap_or_default();
    let mut out = String::new();
    let _ =
        writeln!(out, "  {:<8} {:>6} {:>5} {:>5}  processors", "name", "levels", "nodes", "infos");
    for name in library.names() {
        let mark = if here.iter().any(|t| t.table == name) { '*' } else { ' ' };
        match library.load(name) {
            Ok(table) => {
                let nodes = table.tree().count();
                let (depth, infos) = (table.depth(), table.nodes.len() - nodes);
                let title = &table.title;
                let _ = writeln!(out, "{mark} {name:<8} {depth:>6} {nodes:>5} {infos:>5}  {title}");
            }
            Err(e) => {
                let _ = writeln!(out, "{mark} {name:<8} {e}");
            }
        }
    }
    out += match here.as_slice() {
        [] => "\nno table matches this processor: --uarch NAME forces one\n",
        _ => "\n* this processor\n",
    };
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}
