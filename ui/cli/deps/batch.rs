//! `tdtool deps --batch`: rows in, rows out.

use super::Processor;
use crate::commands::block::input;
use bench::batch::rows;
use engine::documents::census::Census;
use engine::render::deps::{HEADER, rejected, row};
use isa::code::parse_hex;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tma::{Error, Result};

/// Analyses all rows of `path`, on one core.
pub fn run(
    path: &Path,
    output: &Path,
    unmodelled: Option<&Path>,
    processor: &Processor,
    settings: &Settings,
) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::failed(format!("cannot write {}", output.display())).because(e);
    let same = |p: &Path| std::fs::canonicalize(p).ok();
    if same(path).is_some() && same(path) == same(output) {
        return Err(Error::usage(format!("{} would overwrite its own input", output.display()))
            .hint("give -o another file"));
    }
    let rows = rows::read(&input::file(path)?)?.rows;
    let mut out = BufWriter::new(File::create(output).map_err(failed)?);
    let mut analyser = Analyser::new(processor.known.latencies.clone());
    let facts = processor.known.core.facts();
    let mut census = Census::default();
    writeln!(out, "{HEADER}").map_err(failed)?;
    for one in &rows {
        let code = match one.fault {
            Some(fault) => Err(Error::failed(fault)),
            None => parse_hex(&one.text).and_then(|bytes| Code::of_bytes(&bytes, facts)),
        };
        let line = match code {
            Ok(code) => {
                let analysis = analyser.analyse(&code, settings);
                census.add(&code, &analysis);
                row(&one.text, &code, &analysis)
            }
            Err(error) => rejected(&one.text, &error.to_string()),
        };
        writeln!(out, "{line}").map_err(failed)?;
    }
    out.flush().map_err(failed)?;
    let Some(path) = unmodelled else { return Ok(()) };
    let text = format!("{}\n{}\n", Census::HEADER, census.rows().join("\n"));
    std::fs::write(path, text)
        .map_err(|e| Error::failed(format!("cannot write {}", path.display())).because(e))
}
