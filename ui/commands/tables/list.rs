//! `tdtool tables list`

use super::print;
use crate::cli::Global;
use std::fmt::Write as _;
use std::process::ExitCode;
use tdtool::Result;

/// One line a table.
pub fn run(global: &Global) -> Result<ExitCode> {
    let library = global.library()?;
    let mut out = String::new();
    let _ =
        writeln!(out, "{:<8} {:>6} {:>5} {:>5}  processors", "name", "levels", "nodes", "infos");
    for name in library.names() {
        match library.load(name) {
            Ok(table) => {
                let nodes = table.tree().count();
                let infos = table.nodes.len() - nodes;
                let (depth, title) = (table.depth(), &table.title);
                let _ = writeln!(out, "{name:<8} {depth:>6} {nodes:>5} {infos:>5}  {title}");
            }
            Err(e) => {
                let _ = writeln!(out, "{name:<8}  {e}");
            }
        }
    }
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}
