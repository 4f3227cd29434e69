//! Finds tables by the names that users type, the names in their titles, and the names of their events.

use super::{Known, Library, Source};
use crate::error::{Error, Result, nearest};
use crate::tables::Table;
use crate::tables::embedded::plain_name;

/// Fewest letters of a processor's name that is searched for in titles.
const SHORTEST: usize = 4;

impl Library {
    /// The tables whose titles or aliases contain `name`, such as `cove` in *Golden Cove*; `whole`: have it as one
    /// of the names that they list.
    fn titled(&self, name: &str, whole: bool) -> Vec<&str> {
        let wanted = bare(name);
        let is_alias = |name: &String| match whole {
            true => bare(name) == wanted,
            false => wanted.len() >= SHORTEST && bare(name).contains(&wanted),
        };
        let is_title = |title: &str| match whole {
            true => names(title).any(|own| own == wanted),
            false => wanted.len() >= SHORTEST && bare(title).contains(&wanted),
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
        let meant: Vec<String> = meant.iter().map(|name| format!("`{name}`")).collect();
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

/// `text` as names are compared: letters and digits, in lower case.
fn bare(text: &str) -> String {
    let kept = text.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

/// The names that a title lists, as [`bare`] has them: `AMD Zen 4 (Ryzen 7000 and 8000, EPYC 9004)` has `amdzen4`,
/// `zen4`, `ryzen7000`, `ryzen8000`, `epyc9004`.
fn names(title: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    for listed in title.split([',', '(', ')', ':', ';']) {
        let mut family = "";
        for part in listed.trim().split(" and ") {
            // `8000` after `Ryzen 7000 and`.
            let is_number = part.chars().all(|c| c.is_ascii_digit());
            all.push(if is_number { bare(family) + part } else { bare(part) });
            all.extend(["AMD ", "Intel "].iter().filter_map(|v| part.strip_prefix(v)).map(bare));
            family = part.trim_end_matches(|c: char| c.is_ascii_digit());
        }
    }
    all.into_iter().filter(|name| !name.is_empty())
}

impl Library {
    /// How many of these event names, written as tables write them, each table has.
    pub fn knowing<'l>(&'l self, names: &[&str]) -> Vec<(usize, &'l str)> {
        self.counted(self.bundle.event_names, names, |table, name| table.event(name).is_some())
    }

    /// How many of these plain event names ([`plain_name`]) each table has.
    pub fn knowing_plain<'l>(&'l self, names: &[&str]) -> Vec<(usize, &'l str)> {
        self.counted(self.bundle.plain_names, names, |table, name| {
            table.events.iter().any(|e| plain_name(&e.name).as_deref() == Some(name))
        })
    }

    fn counted<'l>(
        &'l self,
        index: &[(&str, u64)],
        names: &[&str],
        has: impl Fn(&Table, &str) -> bool,
    ) -> Vec<(usize, &'l str)> {
        let masks: Vec<u64> = names
            .iter()
            .filter_map(|name| Some(index[index.binary_search_by_key(name, |e| e.0).ok()?].1))
            .collect();
        let bit = |name: &str| self.bundle.tables.iter().position(|t| t.name == name);
        let count = |(name, known): (&'l String, &Known)| {
            let known = match &known.source {
                Source::Embedded(_) => {
                    bit(name).map_or(0, |n| masks.iter().filter(|m| **m >> n & 1 == 1).count())
                }
                Source::File(_) => self
                    .load(name)
                    .map_or(0, |table| names.iter().filter(|name| has(&table, name)).count()),
            };
            (known, name.as_str())
        };
        self.tables.iter().map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_lists_families_and_products() {
        let of = |title: &str| names(title).collect::<Vec<_>>();
        assert_eq!(
            of("AMD Zen 4 (Ryzen 7000 and 8000, EPYC 9004)"),
            ["amdzen4", "zen4", "ryzen7000", "ryzen8000", "epyc9004"]
        );
        assert_eq!(of("Skylake server (1st Xeon)"), ["skylakeserver", "1stxeon"]);
        assert_eq!(of("Alder Lake: E core (Gracemont)"), ["alderlake", "ecore", "gracemont"]);
    }
}
