//! Counts by module and address.

use super::reasons::Uncounted;
use report::documents::count::{BranchKind, BranchRow, Count, LoadRow};
use std::collections::{BTreeMap, HashMap};

/// An address of a document.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The rows of a document of counts.
#[derive(Default)]
pub(super) struct Counted<'a> {
    /// Entries by module and first address, with the address after.
    blocks: HashMap<&'a str, BTreeMap<u64, (u64, u64)>>,
    edges: HashMap<(&'a str, u64, u64), u64>,
    branches: HashMap<&'a str, BTreeMap<u64, &'a BranchRow>>,
    loads: HashMap<&'a str, BTreeMap<u64, &'a LoadRow>>,
    stores: HashMap<&'a str, BTreeMap<u64, &'a LoadRow>>,
    refused: HashMap<(&'a str, u64), &'a str>,
}

impl<'a> Counted<'a> {
    /// Of a document.
    pub fn new(count: &'a Count) -> Self {
        let mut found = Self::default();
        for row in &count.blocks {
            if let (Some(start), Some(end)) = (address(&row.start), address(&row.end)) {
                found.blocks.entry(&row.module).or_default().insert(start, (end, row.count));
            }
        }
        for row in &count.edges {
            if let (Some(from), Some(to), Some(count)) =
                (address(&row.from), address(&row.to), row.count)
            {
                found.edges.insert((&row.module, from, to), count);
            }
        }
        for row in count.branches.iter().filter(|row| row.kind != BranchKind::Return) {
            if let Some(at) = address(&row.address) {
                found.branches.entry(&row.module).or_default().insert(at, row);
            }
        }
        for row in &count.loads {
            if let Some(at) = address(&row.address) {
                found.loads.entry(&row.module).or_default().insert(at, row);
            }
        }
        for row in &count.stores {
            if let Some(at) = address(&row.address) {
                found.stores.entry(&row.module).or_default().insert(at, row);
            }
        }
        for row in &count.refused {
            if let Some(at) = address(&row.start) {
                found.refused.insert((&row.module, at), &row.reason);
            }
        }
        found
    }

    /// Entries of the block that begins at an address, or has it inside.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn entries(&self, module: &str, at: u64) -> Result<u64, Uncounted> {
        let before = self.blocks.get(module).and_then(|all| all.range(..=at).next_back());
        match before {
            Some((_, (end, count))) if at < *end => Ok(*count),
            _ => Err(match self.refused.get(&(module, at)) {
                Some(why) => Uncounted::Told((*why).to_owned()),
                None => Uncounted::NotProbed,
            }),
        }
    }

    /// How often an edge was taken.
    pub fn edge(&self, module: &str, from: u64, to: u64) -> Option<u64> {
        self.edges.get(&(module, from, to)).copied()
    }

    /// The branches in a range.
    pub fn branches(
        &self,
        module: &str,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = &'a BranchRow> {
        self.branches
            .get(module)
            .into_iter()
            .flat_map(move |all| all.range(range.clone()))
            .map(|(_, row)| *row)
    }

    /// The loads in a range.
    pub fn loads(
        &self,
        module: &str,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = &'a LoadRow> {
        self.loads
            .get(module)
            .into_iter()
            .flat_map(move |all| all.range(range.clone()))
            .map(|(_, row)| *row)
    }

    /// The stores in a range.
    pub fn stores(
        &self,
        module: &str,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = &'a LoadRow> {
        self.stores
            .get(module)
            .into_iter()
            .flat_map(move |all| all.range(range.clone()))
            .map(|(_, row)| *row)
    }
}
