//! `tdtool export`: windows, reports and recordings as tables in Parquet files.

use super::options::{Global, label};
use super::recordings::{present, reading};
use crate::message;
use clap::Args;
use engine::exported::{Ask, labelled, of_file};
use fleet::parquet::{Export, Exported};
use fleet::ring::{self, Damaged};
use std::path::PathBuf;
use std::process::ExitCode;
use tma::text::several;
use tma::{Error, Result};

#[derive(Args)]
#[command(after_help = "\
Examples:
  tdtool export --parquet fleet --ring /var/lib/tdtool
  tdtool report --format json -- ./program > report.json
  tdtool export --parquet fleet --host web1 report.json

Windows that are there already are replaced. docs/guide/fleet has queries.")]
pub struct ExportArgs {
    /// Windows, reports (`report --format json`) or recordings; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "ring", conflicts_with = "ring")]
    files: Vec<PathBuf>,
    /// Export the windows that `record --ring` keeps in DIR
    #[arg(long, value_name = "DIR")]
    ring: Option<PathBuf>,
    /// Write tables to this folder, as Parquet files by day and host
    #[arg(long, value_name = "FOLDER", required = true)]
    parquet: PathBuf,
    /// Host of reports and recordings; windows have their own
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Begin of reports and recordings, ms since 1970 [default: time of the file]
    #[arg(long, value_name = "MS")]
    start: Option<i64>,
    /// Label of the hosts: region, service, instance_type, cost_per_hour, …; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
}

pub fn run(global: &Global, args: &ExportArgs) -> Result<ExitCode> {
    let settings = global.settings()?;
    present(&args.files, "to make one: `tdtool report --format json --output FILE -- COMMAND`")?;
    let ask = Ask {
        host: args.host.clone(),
        start_ms: args.start,
        labels: args.label.iter().cloned().collect(),
        uarch: settings.uarch.clone(),
    };
    if args.host.as_deref() == Some("") {
        return Err(Error::usage("--host is empty").hint("give the host's name"));
    }
    let files: Vec<PathBuf> = args.files.iter().chain(&args.ring).cloned().collect();
    let done = reading(&files, || {
        let mut export = Export::new(&args.parquet)?;
        for file in &args.files {
            for window in of_file(settings.library, &ask, file)? {
                export.add(&window)?;
            }
        }
        if let Some(folder) = &args.ring {
            for found in ring::read(folder)? {
                match found {
                    Ok(window) => export.add(&labelled(window, &ask))?,
                    Err(Damaged { path, defect }) => {
                        let what = format!("{} is not exported: {defect}", path.display());
                        message::always(&what, Some("remove it: the other windows are whole"));
                    }
                }
            }
        }
        export.finish()
    })?;
    note(&done, args);
    Ok(ExitCode::SUCCESS)
}

fn note(done: &Exported, args: &ExportArgs) {
    let Exported { windows, files, rows, bytes } = *done;
    message::note(&format!(
        "{} exported: {} in {} of {} ({bytes} bytes)",
        several(windows, "window"),
        several(rows, "row"),
        several(files, "file"),
        args.parquet.display()
    ));
}
