//! The options that every command takes.

use crate::config;
use crate::settings::Settings;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tma::cpuid::{Dump, read};
use tma::{Error, Result};

const HEADING: &str = "Global options";

#[derive(Args, Clone)]
pub struct Global {
    /// Use the event table of this microarchitecture, not the detected one
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    pub uarch: Option<String>,
    /// Add or override event tables with the *.toml files in DIR
    #[arg(long, global = true, value_name = "DIR", help_heading = HEADING)]
    pub tables: Option<PathBuf>,
    /// Leave the built-in event tables out, as on a processor that none describes
    #[arg(long, global = true, hide = true)]
    pub no_table: bool,
    /// Believe this dump of CPUID instead of the processor (for tests)
    #[arg(long, global = true, value_name = "FILE", hide = true)]
    pub cpuid: Option<PathBuf>,
    /// Use ASCII characters only
    #[arg(long, global = true, help_heading = HEADING)]
    pub ascii: bool,
    /// Take the self-test's times from FILE, of whatever processor
    #[arg(long, global = true, hide = true, value_name = "FILE", help_heading = HEADING)]
    pub self_test_from: Option<PathBuf>,
    /// Keys and theme of the drill-down [default: ~/.config/tdtool/config.toml]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    pub config: Option<PathBuf>,
}

/// The processors of a dump of CPUID.
///
/// # Errors
/// The file cannot be read, or is no dump.
pub fn dumps(file: &Path) -> Result<Vec<Dump>> {
    let unreadable = |cause: &dyn std::fmt::Display| {
        Error::failed(format!("cannot read the dump of CPUID {}", file.display())).because(cause)
    };
    let text = tma::files::read_text(file, LONGEST_DUMP).map_err(|e| unreadable(&e))?;
    read(&text).map_err(|e| {
        Error::failed(format!("{}: {}", file.display(), e.what()))
            .because(e.cause().unwrap_or_default())
            .hint(e.remedy().unwrap_or_default())
    })
}

/// More than a dump of the largest machine has.
const LONGEST_DUMP: u64 = 64 << 20;

impl Global {
    /// Settings by the options.
    ///
    /// # Errors
    /// The tables in the folder of `--tables`, or the file of `--self-test-from`, cannot be read.
    pub fn settings(&self) -> Result<Settings> {
        let own = engine::library();
        let own = if self.no_table { own.without_tables() } else { own };
        let library = match &self.tables {
            Some(folder) => own.with_folder(folder)?,
            None => own,
        };
        self.self_test_from.as_deref().map(bench::check_self_test).transpose()?;
        let named = self.uarch.as_deref().map(|name| library.resolved(name).map(str::to_owned));
        Ok(Settings {
            uarch: named.transpose()?,
            library: Box::leak(Box::new(library)),
            ascii: self.ascii,
            config: self.config.clone(),
            cache: config::cache_folder(),
            self_test: self.self_test_from.clone(),
            cpuid: self.cpuid.as_deref().map(dumps).transpose()?,
            again: false,
            machine: OnceLock::new(),
            core: OnceLock::new(),
        })
    }
}
