//! Loads tables, embedded at build time or added and overridden by a directory, and finds which processors each is
//! for.

mod names;

use super::embedded::{Bundle, Embedded, Packed};
use super::schema::TableFile;
use super::texts::Texts;
use super::{CoreKind, Signature, Table};
use crate::Cpu;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

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
/// assert!(error.remedy().is_some_and(|hint| hint.contains("did you mean `zen4`?")));
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
        for (name, files) in [("latency", &mut self.latencies), ("ports", &mut self.ports)] {
            let inside = folder.join(name);
            if inside.is_dir() {
                files.extend(toml_files(&inside)?);
            }
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
        text_of(name, ["latency", "latencies"], &self.latencies, self.bundle.latencies)
    }

    /// The text of the file of ports called `name`, and where it comes from.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn ports(&self, name: &str) -> Result<(String, String)> {
        text_of(name, ["ports", "ports"], &self.ports, self.bundle.ports)
    }
}

/// The text of the file `name` that the facts of a table refer to: `own`, or `built_in`. It is of a `folder`, and the
/// facts have it as `key`.
fn text_of(
    name: &str,
    [folder, key]: [&str; 2],
    own: &BTreeMap<String, PathBuf>,
    built_in: &[(&str, Packed)],
) -> Result<(String, String)> {
    if let Some(path) = own.get(name) {
        return Ok((read(path)?, path.display().to_string()));
    }
    let Some((_, packed)) = built_in.iter().find(|(own, _)| *own == name) else {
        return Err(Error::failed(format!("no file of {key} is called `{name}`")).hint(format!(
            "`{key}` under [facts] names a file of events/{folder} or of DIR/{folder} of --tables DIR"
        )));
    };
    let origin = format!("{folder}/{name} (built in)");
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
        .map_err(|e| crate::error::unreadable(path, &e))
}

/// Processors that a table is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// CPUID vendor string, or `any`.
    pub vendor: String,
    /// Kind of core on hybrids.
    pub core: Option<CoreKind>,
    /// Name of the core PMU.
    pub pmu: String,
    /// How closely it describes a processor of this family, model and stepping: by stepping 2 or
    /// 3, by model 1, by family 0; `None`: not at all.
    pub rank: Option<u8>,
    /// CPUID signature of such a core.
    pub signature: Option<Arc<Signature>>,
    /// Whether it is the user's own (`--tables`).
    pub is_own: bool,
}

impl Library {
    /// Processors that table `name` is for, and how well it describes one of this family, model and stepping.
    pub fn head(&self, name: &str, cpu: &Cpu) -> Result<Head> {
        let rank = |rules: &mut dyn Iterator<Item = (u32, &[u32], &[u32])>| {
            rules
                .filter(|(own, models, steppings)| {
                    *own == cpu.family
                        && (models.is_empty() || models.contains(&cpu.model))
                        && (steppings.is_empty() || steppings.contains(&cpu.stepping))
                })
                .map(|(_, models, steppings)| {
                    u8::from(!models.is_empty()) + u8::from(!steppings.is_empty())
                })
                .max()
        };
        let known = self.known(name)?.0;
        if let Source::Embedded(table) = known.source {
            let signature = || table.signature().map(Arc::new);
            let mut rules = table.rules.iter().map(|r| (r.family, r.models, r.steppings));
            return Ok(Head {
                vendor: table.vendor.to_owned(),
                core: table.core,
                pmu: table.pmu.to_owned(),
                rank: rank(&mut rules),
                signature: known.signature.get_or_init(signature).clone(),
                is_own: false,
            });
        }
        let (text, origin) = self.text(name)?;
        let file = Table::read(&text, &origin)?;
        let mut rules = file.matches.iter().map(|r| (r.family, &r.models[..], &r.steppings[..]));
        let rank = rank(&mut rules);
        let TableFile { vendor, core, pmu, signature, .. } = file;
        let signature = known.signature.get_or_init(|| signature.map(Arc::new)).clone();
        Ok(Head { vendor, core, pmu, rank, signature, is_own: true })
    }

    /// The table of the same vendor for the model of the same family that is nearest by its number.
    pub fn nearest(&self, vendor: &str, family: u32, model: u32) -> Result<Option<String>> {
        let mut best: Option<(u32, String)> = None;
        for name in self.names() {
            let rules: Vec<(u32, Vec<u32>)> = match self.known(name)?.0.source {
                Source::Embedded(t) if t.vendor == vendor => {
                    t.rules.iter().map(|r| (r.family, r.models.to_vec())).collect()
                }
                Source::Embedded(_) => continue,
                Source::File(_) => {
                    let (text, origin) = self.text(name)?;
                    let file = Table::read(&text, &origin)?;
                    let rules = file.matches.into_iter().map(|r| (r.family, r.models));
                    rules.filter(|_| file.vendor == vendor).collect()
                }
            };
            for (_, models) in rules.into_iter().filter(|(own, _)| *own == family) {
                let distance = models.iter().map(|m| m.abs_diff(model)).min().unwrap_or(0);
                if best.as_ref().is_none_or(|(least, _)| distance < *least) {
                    best = Some((distance, name.to_owned()));
                }
            }
        }
        Ok(best.map(|(_, name)| name))
    }
}
