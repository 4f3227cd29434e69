//! `tdtool deps --batch`: rows in, rows out.

use crate::cli::code::read;
use bench::batch::rows;
use engine::core_model::CoreModel;
use engine::documents::census::Census;
use engine::render::deps::{HEADER, rejected, row};
use isa::code::parse_hex;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tma::{Error, Result};

/// Analyses all rows of `path`.
pub fn run(
    path: &Path,
    output: &Path,
    unmodelled: Option<&Path>,
    model: &CoreModel,
    settings: &Settings,
) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| {
        Error::failed(format!("cannot write {}", path.display())).because(e)
    };
    let rows = rows::read(&read::rows(path, output)?)?.rows;
    let file = File::create(output).map_err(|e| failed(output, e))?;
    let mut out = BufWriter::new(file);
    let mut analyser = Analyser::new(model.latencies.clone());
    let facts = model.core.facts();
    let mut census = Census::default();
    writeln!(out, "{HEADER}").map_err(|e| failed(output, e))?;
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
        writeln!(out, "{line}").map_err(|e| failed(output, e))?;
    }
    out.flush().map_err(|e| failed(output, e))?;
    let Some(path) = unmodelled else { return Ok(()) };
    let text = format!("{}\n{}\n", Census::HEADER, census.rows().join("\n"));
    std::fs::write(path, text).map_err(|e| failed(path, e))
}
