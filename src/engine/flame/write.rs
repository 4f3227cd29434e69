//! Folded stacks and flame graphs, written to files.

use crate::documents::flame::FlameGraph;
use crate::render::flame;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use tma::{Error, Result};

/// Writes folded stacks; `-` is standard output.
///
/// # Errors
/// The file cannot be written.
pub fn write_folded(lines: &[(String, u64)], path: &Path) -> Result<()> {
    let mut text = String::new();
    for (stack, samples) in lines {
        let _ = writeln!(text, "{stack} {samples}");
    }
    let written = match path.as_os_str() == "-" {
        // Not by its name in /dev: that would cut off what a file holds already.
        true => std::io::stdout().lock().write_all(text.as_bytes()),
        false => std::fs::write(path, text),
    };
    // A reader that went away (| head) has what it wanted.
    let written = written.or_else(|e| match e.kind() == ErrorKind::BrokenPipe {
        true => Ok(()),
        false => Err(e),
    });
    written.map_err(|e| {
        Error::failed(format!("cannot write folded stacks to {}", path.display()))
            .because(e)
            .hint("choose another place with --folded")
    })
}

/// Writes a flame graph: a page of HTML if the name ends so, else SVG.
///
/// # Errors
/// The file cannot be written.
pub fn write_flame_graph(graph: &FlameGraph, path: &Path) -> Result<()> {
    let is_page = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("html"));
    let text = if is_page { flame::html(graph) } else { flame::svg(graph) };
    std::fs::write(path, text).map_err(|e| {
        Error::failed(format!("cannot write the flame graph to {}", path.display()))
            .because(e)
            .hint("choose another place with --flamegraph")
    })
}
