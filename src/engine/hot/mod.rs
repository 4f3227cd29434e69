//! Hot code of a recording with samples, in whatever file it is (also a temporary one), and source files of its
//! programs. `hottest` has the functions of a command that hold most of its samples.

pub mod hottest;

use pmu::machine::describing;
use profile::counts::folder_error;
use profile::kept::{self, unnamed};
use profile::recording::Stream;
use profile::{perfdata, session};
use report::documents::{evidence, report_file};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tma::tables::Library;
use tma::{Cpu, Error, Result};

/// The kind of a file, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A session of tdtool with samples in it.
    Session,
    /// perf.data.
    PerfData,
    /// The evidence of an estimate.
    Evidence,
    /// A document of tdtool.
    Document,
    /// Counts only, or something else.
    Other,
}

/// The kind of the file.
///
/// # Errors
/// It cannot be read.
pub fn kind(path: &Path) -> Result<FileKind> {
    if path == Path::new("-") {
        return kind_of_input(path);
    }
    let cannot = |e: std::io::Error| {
        let error = Error::failed(format!("cannot read {}", path.display()));
        match e.kind() {
            // Commands have no `.csv`.
            std::io::ErrorKind::NotFound if path.extension().is_some() => {
                error.because("there is no such file")
            }
            std::io::ErrorKind::NotFound => error.because("there is no such file").hint(format!(
                "to measure a command of that name: `tdtool report -- {}`",
                tma::shell::quoted(&[path])
            )),
            _ => error.because(e),
        }
    };
    if path.is_dir() {
        // A folder of `perf record --threads`.
        if path.join("data").is_file() {
            return Ok(FileKind::PerfData);
        }
        return Err(folder_error(path));
    }
    let mut start = Vec::new();
    let file = kept::open(path).map_err(cannot)?;
    file.take(START).read_to_end(&mut start).map_err(cannot)?;
    kind_of(path, &start)
}

/// Bytes by which a file is known.
const START: u64 = 64;

/// The kind of a file that begins in this way.
fn kind_of(path: &Path, start: &[u8]) -> Result<FileKind> {
    Ok(if perfdata::recognise(start) {
        match perfdata::holds_counts(path) {
            true => FileKind::Other,
            false => FileKind::PerfData,
        }
    } else if start.starts_with(&session::MAGIC) && session::has_samples(path)? {
        FileKind::Session
    } else if evidence::recognise(start) {
        FileKind::Evidence
    } else if report_file::recognise(start) {
        FileKind::Document
    } else {
        FileKind::Other
    })
}

/// The kind of standard input. A text is read from its begin later; the parts of a recording are read in an order of
/// their own, so it is saved in a file.
fn kind_of_input(path: &Path) -> Result<FileKind> {
    let cannot = |e| Error::failed("cannot read standard input").because(e);
    let mut input = std::io::stdin().lock();
    let start = input.fill_buf().map_err(cannot)?;
    let is_recording = perfdata::recognise(start) || start.starts_with(&session::MAGIC);
    if !is_recording && kept::Packing::of(start).is_none() && kept::kept(path).is_none() {
        return kind_of(path, start);
    }
    drop(input);
    let mut start = Vec::new();
    let file = kept::open(path).map_err(cannot)?;
    file.take(START).read_to_end(&mut start).map_err(cannot)?;
    kind_of(path, &start)
}

/// The samples of a session that is still written, without call chains; `None` where it has none yet.
///
/// # Errors
/// As [`stream`].
pub fn growing(path: &Path) -> Result<Option<Stream>> {
    match kind(path)? {
        FileKind::Session => session::open_growing(path).map(Some),
        _ => Ok(None),
    }
}

/// The samples of a file, to be read one by one; `None` where it has none. Without `chains`, call chains
/// may be left out.
///
/// # Errors
/// It cannot be read, or is damaged before its first record.
pub fn stream(path: &Path, chains: bool) -> Result<Option<Stream>> {
    match kind(path)? {
        FileKind::Session => session::open(path, chains).map(Some),
        FileKind::PerfData => perfdata::open(path, chains).map(Some),
        FileKind::Evidence | FileKind::Document | FileKind::Other => Ok(None),
    }
}

/// The tables of the processor that perf identified: `GenuineIntel,6,140,1`.
pub(crate) fn described(library: &Library, cpuid: &str) -> Vec<String> {
    let mut parts = cpuid.split(',');
    let vendor = parts.next().unwrap_or_default().to_owned();
    let mut number = || parts.next().and_then(|text| text.trim().parse().ok());
    let (Some(family), Some(model)) = (number(), number()) else { return Vec::new() };
    let stepping = number().unwrap_or(0);
    let cpu = Cpu { vendor, family, model, stepping, ..Cpu::default() };
    describing(&cpu, library).unwrap_or_default().into_iter().map(|(name, _)| name).collect()
}

/// Largest source file read, in bytes.
const LARGEST: u64 = 64 << 20;

/// Why a source file is missing.
enum NoSource {
    /// It is nowhere.
    NoFile,
    /// This is not a file.
    Other(PathBuf),
    /// It cannot be read.
    Unread(io::Error),
}

impl fmt::Display for NoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("no such file"),
            Self::Other(place) => write!(f, "{} is no source file", place.display()),
            Self::Unread(error) => error.fmt(f),
        }
    }
}

/// Source files read so far.
pub(crate) struct Sources<'a> {
    roots: &'a [PathBuf],
    /// When the program was written.
    built: Option<SystemTime>,
    files: BTreeMap<String, std::result::Result<Vec<String>, NoSource>>,
    newer: Vec<String>,
}

impl<'a> Sources<'a> {
    /// Looks below `roots` first; `program` is the path of the program.
    pub(crate) fn new(roots: &'a [PathBuf], program: &str) -> Self {
        let built = std::fs::metadata(program).and_then(|m| m.modified()).ok();
        Self { roots, built, files: BTreeMap::new(), newer: Vec::new() }
    }

    /// The text of a line, from 1.
    pub(crate) fn line(&mut self, file: &str, line: u32) -> Option<String> {
        if !self.files.contains_key(file) {
            let lines = self.read(file);
            self.files.insert(file.to_owned(), lines);
        }
        let number = usize::try_from(line).ok()?.checked_sub(1)?;
        self.files.get(file)?.as_ref().ok()?.get(number).cloned()
    }

    /// Why files are missing.
    pub(crate) fn missing(&self) -> Vec<String> {
        let why = |(file, lines): (&String, &std::result::Result<_, NoSource>)| {
            let error = lines.as_ref().err()?;
            Some(format!("the source {file} was not found: {error}"))
        };
        let missing: Vec<String> = self.files.iter().filter_map(why).collect();
        let is_helpful = !missing.is_empty() && self.roots.is_empty();
        let remedy = is_helpful.then(|| "--symfs DIR also looks for sources below DIR".to_owned());
        missing.into_iter().chain(remedy).collect()
    }

    /// Files that may not be what was compiled.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |file: &String| {
            format!("{file} has changed since the program was written: lines may be of other code")
        };
        self.newer.iter().map(note).collect()
    }

    fn read(&mut self, file: &str) -> std::result::Result<Vec<String>, NoSource> {
        let inside = Path::new(file).strip_prefix("/").unwrap_or(Path::new(file));
        let name = Path::new(file).file_name();
        let below = self.roots.iter().flat_map(|root| {
            [Some(root.join(inside)), name.map(|name| root.join(name))].into_iter().flatten()
        });
        let places: Vec<PathBuf> = below.chain([PathBuf::from(file)]).collect();
        let mut error = NoSource::NoFile;
        for place in places {
            match std::fs::metadata(&place) {
                Ok(about) if about.is_file() => {
                    if about.modified().ok().zip(self.built).is_some_and(|(a, b)| a > b) {
                        self.newer.push(file.to_owned());
                    }
                    let bytes = tma::files::read(&place, LARGEST).map_err(NoSource::Unread)?;
                    let text = String::from_utf8_lossy(&bytes);
                    // Control characters could drive the terminal.
                    let shown =
                        |line: &str| tma::text::name(&line.replace('\t', "    ")).into_owned();
                    return Ok(text.lines().map(shown).collect());
                }
                Ok(_) => error = NoSource::Other(place),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => error = NoSource::Unread(e),
            }
        }
        Err(error)
    }
}

/// A file without a name: it is gone when this is dropped, and however this process ends.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    _file: File,
}

impl Temporary {
    /// Where this process can open it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of writing to it, as one of its folder: nobody knows its path.
    pub fn explained(&self, error: Error) -> Error {
        if !error.what().contains(&*self.path.to_string_lossy()) {
            return error;
        }
        let folder = std::env::temp_dir();
        let what = format!("cannot keep the samples in {}", folder.display());
        Error::failed(what).because(error.cause().unwrap_or("it cannot be written")).hint(REMEDY)
    }

    /// A new one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self> {
        let folder = std::env::temp_dir();
        let file = unnamed(&folder).map_err(|e| {
            Error::failed(format!("cannot make a file in {}", folder.display()))
                .because(e)
                .hint(REMEDY)
        })?;
        Ok(Self { path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(), _file: file })
    }
}

/// The remedy where samples have no room.
const REMEDY: &str = "set TMPDIR to a folder with free space, or leave out the code with --no-code";
