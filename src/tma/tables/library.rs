//! Where tables come from: embedded at build time, added or overridden by a directory.
//!
//! | file | concern |
//! |---|---|
//! | `names` | tables by the names that users type |
//! | `processors` | [`Head`]: which processors a table is for |
//! | `event_names` | which tables have events of given names |

mod event_names;
mod names;
mod processors;

use super::embedded::{Bundle, Embedded};
use super::packed::Packed;
use super::texts::Texts;
use super::{Signature, Table};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use processors::Head;

/// All known tables; each is decoded when it is asked for.
///
/// ```
/// use std::path::Path;
/// use tma::Cpu;
/// use tma::tables::{Bundle, Library};
///
/// // Nothing is built in here; the program embeds the tables of the crate `events`.
/// static NOTHING: Bundle =
///     Bundle { tables: &[], event_names: &[], plain_names: &[], texts: &[], latencies: &[], ports: &[] };
/// let library = Library::new(&NOTHING).with_folder(Path::new("../../events/amd"))?;
/// assert!(library.names().any(|name| name == "zen4"));
///
/// // An EPYC 9654 (Genoa) is family 25, model 17, stepping 1: CPUID leaf 1 of the processor.
/// let genoa = Cpu { family: 25, model: 17, stepping: 1, ..Cpu::default() };
/// assert!(library.head("zen4", &genoa)?.rank.is_some());
/// assert!(library.head("zen5", &genoa)?.rank.is_none());
/// assert_eq!(library.load("zen4")?.pipeline.width, 6, "AMD, optimization guide for family 19h");
///
/// let error = library.load("zen44").unwrap_err();
/// assert!(error.remedy().is_some_and(|hint| hint.contains("did you mean `--uarch zen4`?")));
/// assert_eq!(library.load("EPYC 9004")?.name, "zen4", "a name of its title");
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Library {
    bundle: &'static Bundle,
    tables: BTreeMap<String, Known>,
    latencies: BTreeMap<String, PathBuf>,
    ports: BTreeMap<String, PathBuf>,
    folder: Option<PathBuf>,
}

/// A table: where it comes from, and itself and its signature once they were asked for.
#[derive(Debug, Clone)]
struct Known {
    source: Source,
    table: OnceLock<Arc<Table>>,
    signature: OnceLock<Option<Arc<Signature>>>,
}

impl From<Source> for Known {
    fn from(source: Source) -> Self {
        Self { source, table: OnceLock::new(), signature: OnceLock::new() }
    }
}

#[derive(Debug, Clone)]
enum Source {
    Embedded(&'static Embedded),
    File(PathBuf),
}

impl Library {
    /// The tables that are built in.
    pub fn new(bundle: &'static Bundle) -> Self {
        let source = |t: &'static Embedded| (t.name.to_owned(), Source::Embedded(t).into());
        let tables = bundle.tables.iter().map(source).collect();
        let (latencies, ports) = (BTreeMap::new(), BTreeMap::new());
        Self { bundle, tables, latencies, ports, folder: None }
    }

    /// Without the tables that are built in.
    #[must_use]
    pub fn without_tables(mut self) -> Self {
        self.tables.clear();
        self
    }

    /// Texts on nodes and metrics.
    pub fn texts(&self) -> Texts {
        Texts::new(self.bundle.texts)
    }

    /// Adds the `*.toml` files of `folder`, and those of `folder/latency` and `folder/ports`; a file
    /// named as an embedded one replaces it.
    ///
    /// # Errors
    /// The folder cannot be read, or holds no table.
    pub fn with_folder(mut self, folder: &Path) -> Result<Self> {
        let added = toml_files(folder)?;
        if added.is_empty() {
            return Err(Error::failed(format!("no *.toml table in {}", folder.display())).hint(
                "--tables takes a folder of table files; docs/reference/tables.md describes them",
            ));
        }
        self.tables.extend(added.into_iter().map(|(name, path)| (name, Source::File(path).into())));
        let latencies = folder.join("latency");
        if latencies.is_dir() {
            self.latencies.extend(toml_files(&latencies)?);
        }
        let ports = folder.join("ports");
        if ports.is_dir() {
            self.ports.extend(toml_files(&ports)?);
        }
        self.folder = Some(folder.to_owned());
        Ok(self)
    }

    /// The folder that was added last.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Names of all tables, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The TOML text of table `name` and where it comes from.
    ///
    /// # Errors
    /// No such table (with the nearest name), or its file cannot be read.
    pub fn text(&self, name: &str) -> Result<(String, String)> {
        let (known, origin) = self.known(name)?;
        let text = match &known.source {
            Source::File(path) => read(path)?,
            Source::Embedded(_) => toml::to_string(&self.load(name)?.to_file())
                .map_err(|e| Error::failed(format!("{origin}: cannot be written")).because(e))?,
        };
        Ok((text, origin))
    }

    /// Table `name`, ready for use.
    ///
    /// # Errors
    /// As [`Library::text`] and [`Table::parse`].
    pub fn load(&self, name: &str) -> Result<Arc<Table>> {
        let (known, origin) = self.known(name)?;
        if let Some(table) = known.table.get() {
            return Ok(table.clone());
        }
        let table = match &known.source {
            Source::Embedded(table) => table.table()?,
            Source::File(path) => Table::parse(&read(path)?, &origin)?,
        };
        Ok(known.table.get_or_init(|| Arc::new(table)).clone())
    }

    /// The text of the file of latencies called `name`, and where it comes from.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn latencies(&self, name: &str) -> Result<(String, String)> {
        if let Some(path) = self.latencies.get(name) {
            return Ok((read(path)?, path.display().to_string()));
        }
        match self.bundle.latencies.iter().find(|(own, _)| *own == name) {
            Some((_, packed)) => built_in(*packed, format!("latency/{name} (built in)")),
            None => Err(Error::failed(format!("no file of latencies is called `{name}`")).hint(
                "`latencies` under [facts] names a file of events/latency or of DIR/latency of \
                 --tables DIR",
            )),
        }
    }

    /// The text of the file of ports called `name`, and where it comes from.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn ports(&self, name: &str) -> Result<(String, String)> {
        if let Some(path) = self.ports.get(name) {
            return Ok((read(path)?, path.display().to_string()));
        }
        match self.bundle.ports.iter().find(|(own, _)| *own == name) {
            Some((_, packed)) => built_in(*packed, format!("ports/{name} (built in)")),
            None => Err(Error::failed(format!("no file of ports is called `{name}`")).hint(
                "`ports` under [facts] names a file of events/ports or of DIR/ports of --tables DIR",
            )),
        }
    }
}

/// A built-in text, and where it comes from.
fn built_in(packed: Packed, origin: String) -> Result<(String, String)> {
    match packed.text() {
        Ok(text) => Ok((text, origin)),
        Err(e) => Err(Error::failed(format!("{origin}: cannot be decoded")).because(e)),
    }
}

/// The `*.toml` files of a folder, by name.
fn toml_files(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let unreadable = |e: std::io::Error| {
        Error::failed(format!("cannot read the tables in {}", folder.display()))
            .because(e)
            .hint("--tables DIR names a folder of event tables, *.toml")
    };
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|e| e == "toml")
            && let Some(name) = path.file_stem().and_then(|s| s.to_str())
        {
            found.insert(name.to_owned(), path);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    crate::files::read_text(path, crate::files::LONGEST_TEXT)
        .map_err(|e| Error::failed(format!("cannot read {}", path.display())).because(e))
}
