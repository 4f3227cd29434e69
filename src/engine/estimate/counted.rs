//! Counts by module and address.

use super::reasons::Uncounted;
use report::documents::count::{BranchKind, BranchRow, Count, LoadRow};
use std::collections::{BTreeMap, HashMap};

/// The rows of a document of counts.
pub(super) struct Counted<'a> {
    /// The document.
    pub count: &'a Count,
    /// Entries by module and first address, with the address after.
    blocks: HashMap<&'a str, BTreeMap<u64, (u64, u64)>>,
    edges: HashMap<(&'a str, u64, u64), u64>,
    branches: HashMap<&'a str, BTreeMap<u64, &'a BranchRow>>,
    loads: HashMap<&'a str, BTreeMap<u64, &'a LoadRow>>,
    stores: HashMap<&'a str, BTreeMap<u64, &'a LoadRow>>,
    refused: HashMap<(&'a str, u64), &'a str>,
}

impl<'a> Counted<'a> {
    /// Indexes the rows of a document.
    pub fn new(count: &'a Count) -> Self {
        let mut found = Self {
            count,
            blocks: HashMap::new(),
            edges: HashMap::new(),
            branches: HashMap::new(),
            loads: HashMap::new(),
            stores: HashMap::new(),
            refused: HashMap::new(),
        };
        for row in &count.blocks {
            let of = found.blocks.entry(&row.module).or_default();
            of.insert(row.start.0, (row.end.0, row.count));
        }
        for row in &count.edges {
            if let Some(count) = row.count {
                found.edges.insert((&row.module, row.from.0, row.to.0), count);
            }
        }
        for row in count.branches.iter().filter(|row| row.kind != BranchKind::Return) {
            found.branches.entry(&row.module).or_default().insert(row.address.0, row);
        }
        for row in &count.loads {
            found.loads.entry(&row.module).or_default().insert(row.address.0, row);
        }
        for row in &count.stores {
            found.stores.entry(&row.module).or_default().insert(row.address.0, row);
        }
        for row in &count.refused {
            found.refused.insert((&row.module, row.start.0), &row.reason);
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
