//! Hot code of a recording with samples, in whatever file it is (also a temporary one), and source files of its
//! programs. `hottest` has the functions of a command that hold most of its samples.

pub mod hottest;

use nix::sys::memfd::{MFdFlags, memfd_create};
use pmu::machine::describing;
use profile::counts::FileKind;
use profile::kept::unnamed;
use profile::recording::Stream;
use profile::{perfdata, session};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tma::tables::Library;
use tma::{Cpu, Error, Result};

/// The samples of a session that is still written, without call chains; `None` where it has none yet.
///
/// # Errors
/// As [`stream`].
pub fn growing(path: &Path) -> Result<Option<Stream>> {
    match FileKind::of(path)? {
        FileKind::Session if session::has_samples(path)? => session::open_growing(path).map(Some),
        _ => Ok(None),
    }
}

/// The samples of a file, to be read one by one; `None` where it has none. Without `chains`, call chains
/// may be left out.
///
/// # Errors
/// It cannot be read, or is damaged before its first record.
pub fn stream(path: &Path, chains: bool) -> Result<Option<Stream>> {
    stream_as(path, FileKind::of(path)?, chains)
}

/// As [`stream`], of a file whose kind is known.
///
/// # Errors
/// As [`stream`].
pub fn stream_as(path: &Path, kind: FileKind, chains: bool) -> Result<Option<Stream>> {
    match kind {
        FileKind::Session if session::has_samples(path)? => session::open(path, chains).map(Some),
        FileKind::PerfData => perfdata::open(path, chains).map(Some),
        FileKind::Session
        | FileKind::PerfStatRecord
        | FileKind::Evidence
        | FileKind::Document
        | FileKind::Other => Ok(None),
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

    /// A new one in memory.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn in_memory() -> Result<Self> {
        let file = memfd_create("tdtool", MFdFlags::MFD_CLOEXEC).map_err(|e| {
            Error::failed("cannot make a file in memory for the samples").because(e.desc())
        })?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { path, _file: file.into() })
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
