//! `tdtool deps --batch`: rows in, rows out.

use crate::cli::code::read;
use bench::batch::rows;
use engine::deps::DepsAnalyser;
use engine::documents::census::Census;
use engine::files::write_whole;
use engine::render::census;
use engine::render::deps::HEADER;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tma::{Error, Result};

/// Analyses all rows of `path`.
pub fn run(
    path: &Path,
    output: &Path,
    unmodelled: Option<&Path>,
    analyser: &mut DepsAnalyser,
    seeds: u32,
) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| {
        Error::failed(format!("cannot write {}", path.display())).because(e)
    };
    let rows = rows::read(&read::rows(path, output)?)?.rows;
    let file = File::create(output).map_err(|e| failed(output, e))?;
    let mut out = BufWriter::new(file);
    let mut counted = Census::default();
    writeln!(out, "{HEADER}").map_err(|e| failed(output, e))?;
    for one in &rows {
        let line = analyser.row(one, seeds, &mut counted);
        writeln!(out, "{line}").map_err(|e| failed(output, e))?;
    }
    out.flush().map_err(|e| failed(output, e))?;
    let Some(path) = unmodelled else { return Ok(()) };
    write_whole(path, census::rows(&counted).as_bytes(), &[], "--unmodelled")
}
