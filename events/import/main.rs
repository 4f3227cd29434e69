//! `tdtool-import [VENDOR_DATA] [EVENTS] [--check | --verify]` writes `events/intel` and
//! `events/amd` from vendor files. Run by hand when vendors publish.
//!
//! VENDOR_DATA (default `../shared`) holds `perfmon/`, `perfmon-linux/` and `amdzen/`; EVENTS
//! (default `events`) receives one TOML per microarchitecture. The same input gives the same
//! bytes. `--check` writes nothing and fails where a file differs; `--verify` evaluates the
//! tables against the vendor's own fully expanded formulas on random counts.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod amd;
mod cores;
mod emit;
mod encoding;
mod formulas;
mod intel;
mod linux;
mod machines;
mod perfmon;
mod sheet;
mod sources;
mod verify;

use anyhow::{Context, Result, bail};
use emit::Generated;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Reads one vendor's files below the given folder and makes its tables.
type Importer = fn(&Path) -> Result<Vec<Generated>>;

/// Compares one vendor's tables with what the vendor computes; returns how many values agree.
type Verifier = fn(&Path) -> Result<usize>;

const IMPORTERS: [Importer; 2] = [intel::tables, amd::tables];
const VERIFIERS: [Verifier; 1] = [verify::verify];

#[derive(PartialEq)]
enum Mode {
    Write,
    Check,
    Verify,
}

fn main() -> Result<()> {
    let mut mode = Mode::Write;
    let mut folders = Vec::new();
    for arg in env::args().skip(1) {
        match arg.as_str() {
            "--check" => mode = Mode::Check,
            "--verify" => mode = Mode::Verify,
            _ if arg.starts_with('-') => {
                bail!(
                    "unknown option {arg}\nusage: tdtool-import [VENDOR_DATA] [EVENTS] [--check | --verify]"
                )
            }
            _ => folders.push(PathBuf::from(arg)),
        }
    }
    let mut folders = folders.into_iter();
    let vendor = folders.next().unwrap_or_else(|| "../shared".into());
    let events = folders.next().unwrap_or_else(|| "events".into());
    if mode == Mode::Verify {
        for verify in VERIFIERS {
            println!("{} values agree", verify(&vendor)?);
        }
        return Ok(());
    }
    let mut different = 0;
    for import in IMPORTERS {
        for made in import(&vendor)? {
            let path = events.join(made.folder).join(format!("{}.toml", made.table.name));
            let text = emit::text(&made).with_context(|| path.display().to_string())?;
            if fs::read_to_string(&path).is_ok_and(|old| old == text) {
                println!("same     {}", path.display());
            } else if mode == Mode::Check {
                different += 1;
                println!("differs  {}", path.display());
            } else {
                fs::create_dir_all(events.join(made.folder))?;
                fs::write(&path, text).with_context(|| path.display().to_string())?;
                println!("written  {}", path.display());
            }
        }
    }
    if different > 0 {
        bail!("{different} tables differ from what the vendor's files give");
    }
    Ok(())
}
