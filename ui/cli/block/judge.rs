//! `tdtool block --batch`, and with `--against` the predictions of a cost model beside its rows.

use super::arguments::{BlockArgs, Format};
use super::batch;
use crate::cli::code::read::file;
use crate::cli::output::{page, print};
use bench::Options;
use engine::judge::judge;
use report::render::{block, json};
use std::path::Path;
use std::process::ExitCode;
use tma::{Error, Result};

/// Measures the rows of `input`, then judges the predictions, if there are any.
pub fn batch(
    input: &Path,
    output: &Path,
    args: &BlockArgs,
    options: &Options,
    ascii: bool,
) -> Result<ExitCode> {
    let Some(predictions) = &args.against else {
        return match args.format {
            Format::Text => batch::run(input, output, args, options, ascii),
            _ => Err(Error::usage("--format does not apply to the rows of --batch")
                .hint("the results are CSV; with --against, --format is that of the evaluation")),
        };
    };
    // Before the batch, which may take long.
    let predictions = file(Path::new(predictions))?;
    let predictions = String::from_utf8_lossy(&predictions);
    let code = batch::run(input, output, args, options, ascii)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let results = std::fs::read_to_string(output)
        .map_err(|e| Error::failed(format!("cannot read {}", output.display())).because(e))?;
    let found = judge(&results, &predictions)?;
    print(&match args.format {
        Format::Json => json::pretty(&found)?,
        _ => page(None).fitted(block::model_errors(&found)),
    })?;
    Ok(code)
}
