//! The executed machine blocks of each function in a new order: those between which control passes most often follow one
//! another (Pettis and Hansen, "Profile Guided Code Positioning", PLDI 1990).

use probe::facts::MachineBlock;
use report::documents::pgo::{BlockRow, ClusterRow, EdgeKind, Pgo};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The functions of a profile whose blocks have counts. Those that share their name are left out: by it a compiler finds
/// them.
pub(super) fn clusters(document: &Pgo, functions: &[Vec<MachineBlock>]) -> Vec<ClusterRow> {
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &document.functions {
        *named.entry(&row.name).or_default() += 1;
    }
    let cluster = |blocks: &Vec<MachineBlock>| {
        let start = blocks.first()?.range.start;
        let at = document.functions.binary_search_by_key(&start, |row| row.start.0).ok()?;
        let function = &document.functions[at];
        let is_known = function.executed > Some(0) && function.name != function.start.to_string();
        if !is_known || named.get(function.name.as_str()) != Some(&1) {
            return None;
        }
        let blocks = Passed::of(document, blocks).order();
        Some(ClusterRow { function: function.name.clone(), blocks })
    };
    functions.iter().filter_map(cluster).collect()
}

/// How often control passes through the machine blocks of a function.
struct Passed<'b> {
    blocks: &'b [MachineBlock],
    counts: Vec<u64>,
    /// By the indices of both.
    edges: BTreeMap<(usize, usize), u64>,
}

impl<'b> Passed<'b> {
    fn of(document: &Pgo, blocks: &'b [MachineBlock]) -> Self {
        let row_of = |at: u64| -> Option<&BlockRow> {
            let after = document.blocks.partition_point(|row| row.start.0 <= at);
            let row = &document.blocks[after.checked_sub(1)?];
            (at <= row.last.0).then_some(row)
        };
        let count = |at: u64| row_of(at).and_then(|row| row.count).unwrap_or(0);
        let counts = blocks.iter().map(|block| count(block.range.start)).collect();
        let mut found = Self { blocks, counts, edges: BTreeMap::new() };
        let mut entered: BTreeMap<u64, usize> = BTreeMap::new();
        for (number, block) in blocks.iter().enumerate() {
            // Of blocks at one address the first, which are empty, lead to the others.
            entered.entry(block.range.start).or_insert(number);
        }
        let holding = |at: u64| {
            let holds = |block: &MachineBlock| block.range.contains(&at);
            blocks.iter().position(holds)
        };
        let start = blocks[0].range.start;
        let end = blocks.iter().map(|block| block.range.end).max().unwrap_or(start);
        let first = document.edges.partition_point(|edge| edge.block.0 < start);
        let own = document.edges[first..].iter().take_while(|edge| edge.block.0 < end);
        for edge in own.filter(|edge| matches!(edge.kind, EdgeKind::Next | EdgeKind::Jump)) {
            if let (Some(from), Some(to)) = (holding(edge.from.0), entered.get(&edge.to.0)) {
                found.pass(from, *to, edge.count.unwrap_or(0));
            }
        }
        // Where no jump leads to a machine block it begins within a block of the code.
        for (number, block) in blocks.iter().enumerate() {
            let next = blocks.get(number + 1).map(|next| next.range.start);
            let Some(next) = next.filter(|next| *next == block.range.end) else { continue };
            let is_inside = row_of(next).is_some_and(|row| row.start.0 < next);
            if is_inside || block.range.is_empty() {
                found.pass(number, number + 1, count(next));
            }
        }
        found
    }

    fn pass(&mut self, from: usize, to: usize, count: u64) {
        let sum = self.edges.entry((from, to)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// The numbers of the executed blocks; that of the entry is the first.
    fn order(&self) -> Vec<u64> {
        let mut edges: Vec<(&(usize, usize), &u64)> = self.edges.iter().collect();
        edges.sort_by_key(|(ends, count)| (Reverse(**count), **ends));
        let mut chain_of: Vec<usize> = (0..self.blocks.len()).collect();
        let mut chains: Vec<Vec<usize>> = chain_of.iter().map(|number| vec![*number]).collect();
        for ((from, to), count) in edges {
            let (into, moved) = (chain_of[*from], chain_of[*to]);
            let follow = chains[into].last() == Some(from) && chains[moved].first() == Some(to);
            if *count == 0 || into == moved || !follow || *to == 0 {
                continue;
            }
            let moved = std::mem::take(&mut chains[moved]);
            moved.iter().for_each(|block| chain_of[*block] = into);
            chains[into].extend(moved);
        }
        let hottest = |chain: &Vec<usize>| chain.iter().map(|block| self.counts[*block]).max();
        chains.sort_by_key(|chain| (chain.first() != Some(&0), Reverse(hottest(chain))));
        let all = chains.into_iter().flatten();
        let executed = all.filter(|block| *block == 0 || self.counts[*block] > 0);
        executed.map(|block| self.blocks[block].number).collect()
    }
}
