//! The options that every command takes, and errors of an option's value, which include the remedy: they follow the
//! option in one message.

use crate::config;
use crate::settings::Settings;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{error, fmt};
use tma::cpuid::{Dump, read};
use tma::shell::quoted;
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

/// Form of what is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

/// As [`Format`], of what has no rows.
#[derive(Clone, Copy, ValueEnum)]
pub enum TextOrJson {
    Text,
    Json,
}

/// Parser of a number between these.
pub fn number(least: u64, most: u64) -> RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=most)
}

/// The processors of a dump of CPUID.
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

/// An error of an option's value.
#[derive(Debug)]
pub enum Invalid {
    /// No time in seconds.
    Seconds,
    /// No address in a file.
    Address,
    /// No share in percent.
    Percent,
    /// No level of a tree.
    Level,
    /// No number of a process, but this.
    Process(String),
    /// No number of a thread.
    Thread,
    /// A pipe without a name.
    NoPipe,
    /// No number of an open file, but this.
    Descriptor(String),
    /// No file for a flame graph.
    Picture,
    /// No kind of call chains.
    CallChains,
    /// No size of a copy of the stack, which has at most so many bytes.
    Stack(u16),
    /// No number of milliseconds.
    Interval,
    /// An interval below this one, in milliseconds.
    Short(u64),
    /// No number of functions, but this.
    Functions(String),
    /// No number of blocks.
    Blocks,
    /// No time with its unit.
    Time,
    /// No size.
    Size,
    /// No label.
    Label,
    /// No initial value.
    Init(Error),
}

impl error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "seconds are above 0 and at most 86400",
            Self::Address => "an address is like 0x4327",
            Self::Percent => "a share is above 0 and at most 100",
            Self::Level => {
                "levels are 1 to 9; `tdtool tables show` shows how deep a tree is, and without --level \
                 the deepest level that needs no multiplexing is measured"
            }
            Self::Process(name) => {
                let name = quoted(&[name]);
                return write!(f, "a process is given by its number; `pgrep {name}` finds it");
            }
            Self::Thread => "a thread is given by its number; `ps -eL` lists them",
            Self::NoPipe => "the pipe has no name; try --control fifo:PATH[,ACK]",
            Self::Descriptor(name) => {
                return write!(f, "`{name}` is no number of an open file; try fd:3");
            }
            Self::Picture => "a flame graph is .svg or .html; try --flamegraph flame.svg",
            Self::CallChains => "call chains are fp, lbr or dwarf[,BYTES]",
            Self::Stack(largest) => {
                return write!(f, "the copy of the stack has 8 to {largest} bytes");
            }
            Self::Interval => {
                "an interval is a whole number of milliseconds; try --interval 1000"
            }
            Self::Short(shortest) => {
                return write!(
                    f,
                    "the shortest interval is {shortest} ms, because reading the counters takes time; \
                     try --interval 1000"
                );
            }
            Self::Functions(name) => {
                let name = quoted(&[name]);
                return write!(
                    f,
                    "a report takes how many to show; `--annotate {name}` shows one, `tdtool count --functions \
                     {name} -- COMMAND` counts it"
                );
            }
            Self::Blocks => {
                "a report takes how many to show; `tdtool block FILE:0xADDRESS` measures one"
            }
            Self::Time => "times are above 0 and at most a day: 200ms, 10s, 5m, 1h",
            Self::Size => "a size is a number of bytes, or like 64K, 100M, 1G",
            Self::Label => "a label is NAME=VALUE; try --label region=eu-1",
            Self::Init(error) => {
                error.fmt(f)?;
                return error.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"));
            }
        })
    }
}

/// A label of a host: `region=eu-1`.
pub fn label(text: &str) -> std::result::Result<(String, String), Invalid> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or(Invalid::Label)
}
