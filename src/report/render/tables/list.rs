//! All tables, one per line.

use pmu::machine::TableMatch;
use std::fmt::Write as _;
use tma::tables::Library;

/// The tables of `library`; `*` marks those of `here`, this processor.
pub fn list(library: &Library, here: &[TableMatch]) -> String {
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
    out += match here {
        [] => "\nno table matches this processor: --uarch NAME forces one\n",
        _ => "\n* this processor\n",
    };
    out
}
