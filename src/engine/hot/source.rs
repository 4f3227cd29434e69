//! Source files of a program, where they can be found.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
    files: BTreeMap<String, Result<Vec<String>, NoSource>>,
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
        let why = |(file, lines): (&String, &Result<_, NoSource>)| {
            let error = lines.as_ref().err()?;
            Some(format!("the source {file} was not found: {error}"))
        };
        let missing: Vec<String> = self.files.iter().filter_map(why).collect();
        match missing.is_empty() || !self.roots.is_empty() {
            true => missing,
            false => missing
                .into_iter()
                .chain(["--symfs DIR also looks for sources below DIR".to_owned()])
                .collect(),
        }
    }

    /// Files that may not be what was compiled.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |file: &String| {
            format!("{file} has changed since the program was written: lines may be of other code")
        };
        self.newer.iter().map(note).collect()
    }

    fn read(&mut self, file: &str) -> Result<Vec<String>, NoSource> {
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
