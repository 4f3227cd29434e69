//! Tables by the names that users type.

use super::{Known, Library, Source};
use crate::error::{Error, Result, nearest};
use crate::tables::{Table, titles};

/// Fewest letters of a processor's name that is searched for in titles.
const SHORTEST: usize = 4;

impl Library {
    /// The tables whose titles or aliases contain `name`, such as `cove` in *Golden Cove*; `whole`: have it as one
    /// of the names that they list.
    fn titled(&self, name: &str, whole: bool) -> Vec<&str> {
        let wanted = titles::bare(name);
        let is_alias = |name: &String| match whole {
            true => titles::bare(name) == wanted,
            false => wanted.len() >= SHORTEST && titles::bare(name).contains(&wanted),
        };
        let is_title = |title: &str| match whole {
            true => titles::names(title).any(|own| own == wanted),
            false => wanted.len() >= SHORTEST && titles::bare(title).contains(&wanted),
        };
        let is_meant = |table: &Table| is_title(&table.title) || table.aliases.iter().any(is_alias);
        self.names().filter(|table| self.load(table).is_ok_and(|table| is_meant(&table))).collect()
    }

    /// The name of the table that `name` is, or that has `name` among the families and products of its
    /// title: `skl` of `skylake`.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn resolved(&self, name: &str) -> Result<&str> {
        let lower = name.to_lowercase();
        if let Some((own, _)) =
            self.tables.get_key_value(&lower).or_else(|| self.tables.get_key_value(name))
        {
            return Ok(own);
        }
        let error = Error::usage(format!("unknown microarchitecture `{name}`"));
        let titled = match self.titled(&lower, true).as_slice() {
            [only] => return Ok(only),
            [] => self.titled(&lower, false),
            several => several.to_vec(),
        };
        // `Skylake-SP`, `icelake-server`: without what follows the family.
        let begin = lower.split(['-', '_', ' ']).next().filter(|begin| *begin != lower);
        let titled = match begin.filter(|_| titled.is_empty()) {
            Some(begin) => self.titled(begin, false),
            None => titled,
        };
        let near = nearest(&lower, self.names());
        let meant = if titled.is_empty() { near.into_iter().collect() } else { titled };
        let meant: Vec<String> = meant.iter().map(|name| format!("`--uarch {name}`")).collect();
        let list = match names_a_product(&lower) {
            true => {
                "a product has no table of its own; `tdtool tables identify` names that of this processor, \
                     `tdtool tables list` lists all"
            }
            false => "`tdtool tables list` lists them",
        };
        let meant = if names_a_product(&lower) { Vec::new() } else { meant };
        Err(error.hint(match meant.is_empty() {
            true => list.to_owned(),
            false => format!("did you mean {}? {list}", meant.join(" or ")),
        }))
    }

    pub(super) fn known(&self, name: &str) -> Result<(&Known, String)> {
        // A name of a title is looked up in all tables: only where no table has it as its own.
        let lower = name.to_lowercase();
        let own = match self.tables.contains_key(&lower) {
            true => &lower,
            false => self.resolved(name)?,
        };
        let known = &self.tables[own];
        let origin = match &known.source {
            Source::Embedded(_) => format!("{own} (built in)"),
            Source::File(path) => path.display().to_string(),
        };
        Ok((known, origin))
    }
}

/// Whether a name is one that is sold, `i7-12700K`, `xeon gold 6338`, `7950x`: most of it is a number.
fn names_a_product(name: &str) -> bool {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    digits >= 4
}
