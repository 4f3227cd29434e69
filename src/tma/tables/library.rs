//! Where tables come from: embedded at build time, added or overridden by a directory.

use super::Table;
use crate::error::{Error, Result, nearest};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// `(name, TOML text)` of every table in `events/`, sorted by name.
pub static EMBEDDED: &[(&str, &str)] = events::TABLES;

/// The texts of all known tables; each is parsed when it is asked for.
#[derive(Debug, Clone, Default)]
pub struct Library {
    texts: BTreeMap<String, Text>,
}

#[derive(Debug, Clone)]
enum Text {
    Embedded(&'static str),
    File(PathBuf),
}

impl Library {
    /// The embedded tables.
    pub fn embedded() -> Self {
        let texts = EMBEDDED.iter().map(|(n, t)| ((*n).to_owned(), Text::Embedded(t))).collect();
        Self { texts }
    }

    /// Adds the `*.toml` files of `folder`; a file named as an embedded table replaces it.
    ///
    /// # Errors
    /// The folder cannot be read, or holds no table.
    pub fn with_folder(mut self, folder: &Path) -> Result<Self> {
        let unreadable = |e: std::io::Error| {
            Error::failed(format!("cannot read the tables in {}", folder.display())).because(e)
        };
        let mut found = false;
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let Some(name) = path.file_stem().and_then(|s| s.to_str()) else { continue };
            found = true;
            self.texts.insert(name.to_owned(), Text::File(path.clone()));
        }
        if !found {
            return Err(Error::failed(format!("no *.toml table in {}", folder.display()))
                .hint("--tables takes a folder of table files; docs/tables.md describes them"));
        }
        Ok(self)
    }

    /// Names of all tables, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }

    /// The TOML text of table `name` and where it comes from.
    ///
    /// # Errors
    /// No such table (with the nearest name), or its file cannot be read.
    pub fn text(&self, name: &str) -> Result<(Cow<'static, str>, String)> {
        let lower = name.to_lowercase();
        match self.texts.get(&lower).or_else(|| self.texts.get(name)) {
            Some(Text::Embedded(text)) => Ok((Cow::Borrowed(text), format!("{lower} (built in)"))),
            Some(Text::File(path)) => match fs::read_to_string(path) {
                Ok(text) => Ok((Cow::Owned(text), path.display().to_string())),
                Err(e) => Err(Error::failed(format!("cannot read {}", path.display())).because(e)),
            },
            None => {
                let error = Error::usage(format!("unknown microarchitecture `{name}`"));
                Err(match nearest(&lower, self.names()) {
                    Some(near) => error.hint(format!(
                        "did you mean `--uarch {near}`? `tdtool tables list` names all of them"
                    )),
                    None => error.hint("`tdtool tables list` names all of them"),
                })
            }
        }
    }

    /// Parses and compiles table `name`.
    ///
    /// # Errors
    /// As [`Library::text`] and [`Table::parse`].
    pub fn load(&self, name: &str) -> Result<Table> {
        let (text, origin) = self.text(name)?;
        Table::parse(&text, &origin)
    }
}
