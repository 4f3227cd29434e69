//! Call stacks, with what their time goes to, written to files.
//!
//! | file | concern |
//! |---|---|
//! | `graph` | [`Breakdown`]: shares of nodes in the time of each function; stacks as text and as a flame graph |
//! | `differential` | stacks of two sides merged to one flame graph |
//! | `profiles` | stacks as costs of functions and calls, as a profile of pprof, as samples over time |

mod differential;
mod graph;
mod profiles;

use crate::documents::flame::{Costs, FlameGraph};
use crate::files::write_whole;
use crate::render::{flame, formats};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use tma::{Error, Result};

pub use differential::{StackSide, differential};
pub use graph::{About, Breakdown, folded, graph};
pub use profiles::{calls, pprof, timed};

/// Writes folded stacks; `-` is standard output.
///
/// # Errors
/// The file cannot be written.
pub fn write_folded(lines: &[(String, u64)], path: &Path) -> Result<()> {
    let mut text = String::new();
    for (stack, samples) in lines {
        let _ = writeln!(text, "{stack} {samples}");
    }
    write_whole(path, text.as_bytes(), &[], "--folded")
}

/// Writes a flame graph: a page of HTML if the name ends so, else SVG.
///
/// # Errors
/// The file cannot be written.
pub fn write_flame_graph(graph: &FlameGraph, path: &Path) -> Result<()> {
    let is_page = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("html"));
    let text = if is_page { flame::html(graph) } else { flame::svg(graph) };
    write_whole(path, text.as_bytes(), &[], "--flamegraph")
}

/// Writes a profile of pprof, compressed.
///
/// # Errors
/// The file cannot be written.
pub fn write_pprof(profile: &[u8], path: &Path) -> Result<()> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    let compressed = out.write_all(profile).and_then(|()| out.finish());
    let compressed =
        compressed.map_err(|e| Error::failed("cannot compress the profile").because(e))?;
    write_whole(path, &compressed, &[], "--pprof")
}

/// Writes costs in callgrind's format.
///
/// # Errors
/// The file cannot be written.
pub fn write_callgrind(costs: &Costs, path: &Path) -> Result<()> {
    write_whole(path, formats::callgrind_text(costs).as_bytes(), &[], "--callgrind")
}
