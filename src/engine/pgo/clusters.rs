//! The executed machine blocks of each function in a new order: those between which control passes most often follow one
//! another (Pettis and Hansen, "Profile Guided Code Positioning", PLDI 1990).

use crate::count::ask::program;
use pmu::Command;
use probe::facts::{MachineBlock, NoCode, machine_blocks};
use report::documents::pgo::{BlockRow, ClusterRow, EdgeKind, Pgo};
use report::format::several;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tma::{Error, Result};

/// Refuses a command or module whose file has no map of its machine blocks, before it is run. Of what cannot be read the
/// run tells more.
///
/// # Errors
/// It has none, or one that cannot be read.
pub fn check_map(command: &Command, module: Option<&Path>) -> Result<()> {
    let Some(path) = module.map(Path::to_owned).or_else(|| program(command).ok()) else {
        return Ok(());
    };
    let shown = path.display().to_string();
    match machine_blocks(&path) {
        Ok(None) => Err(unmapped(&shown)),
        Err(why @ NoCode::MachineBlocks) => Err(unread(&shown, why)),
        _ => Ok(()),
    }
}

/// A file has no map of its machine blocks.
pub fn unmapped(module: &str) -> Error {
    Error::failed(format!("blocks of {module} have no numbers"))
        .because("it has no section .llvm_bb_addr_map, by which clang places them")
        .hint("compile it with clang -fbasic-block-address-map (-fbasic-block-sections=labels before 19)")
}

fn unread(module: &str, why: NoCode) -> Error {
    Error::failed(format!("blocks of {module} have no known numbers"))
        .because(why)
        .hint("other profiles (--for) need none of them")
}

/// Adds the order of the machine blocks to a profile, if the file has a map of them.
///
/// # Errors
/// Their map cannot be read.
pub fn place_blocks(document: &mut Pgo) -> Result<()> {
    let functions = machine_blocks(Path::new(&document.module));
    if let Some(functions) = functions.map_err(|why| unread(&document.module, why))? {
        let (found, note) = clusters(document, &functions);
        document.clusters = Some(found);
        document.notes.extend(note);
    }
    Ok(())
}

/// The functions of a profile whose blocks have counts. Those that share their name are left out, with a note: by it a
/// compiler finds them.
fn clusters(document: &Pgo, functions: &[Vec<MachineBlock>]) -> (Vec<ClusterRow>, Option<String>) {
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &document.functions {
        *named.entry(&row.name).or_default() += 1;
    }
    let mut rows = Vec::new();
    let (mut starts, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for (blocks, edges) in functions.iter().zip(edges(document, functions)) {
        let Some(start) = blocks.first().map(|first| first.range.start) else { continue };
        // A linker may have made one of several that are the same.
        if !starts.insert(start) {
            continue;
        }
        let at = document.functions.binary_search_by_key(&start, |row| row.start.0);
        let Some(function) = at.ok().map(|at| &document.functions[at]) else { continue };
        let name = function.name.as_str();
        if function.executed <= Some(0) || name == function.start.to_string() {
            continue;
        }
        if named.get(name) != Some(&1) {
            shared.insert(name);
            continue;
        }
        let blocks = Passed::of(document, blocks, edges).order();
        rows.push(ClusterRow { function: name.to_owned(), blocks });
    }
    let note = shared.first().map(|first| {
        let names = several(shared.len() as u64, "name");
        format!(
            "functions that share a name have no order of blocks, as a compiler finds them by it: {names}, as {first}"
        )
    });
    (rows, note)
}

/// How often control passes from one to another of the blocks of a function, by their indices.
type Edges = BTreeMap<(usize, usize), u64>;

/// Those of each function by the edges of a profile.
fn edges(document: &Pgo, functions: &[Vec<MachineBlock>]) -> Vec<Edges> {
    // By their starts. Of blocks at one address the first, which are empty, lead to the last.
    let (mut entered, mut holding) = (BTreeMap::new(), BTreeMap::new());
    for (function, blocks) in functions.iter().enumerate() {
        for (number, block) in blocks.iter().enumerate() {
            entered.entry(block.range.start).or_insert((function, number));
            if !block.range.is_empty() {
                holding.entry(block.range.start).or_insert((function, number));
            }
        }
    }
    let mut found = vec![Edges::new(); functions.len()];
    // Parts with symbols of their own are other functions of the document.
    for edge in document.edges.iter().filter(|edge| edge.kind != EdgeKind::Call) {
        let before = holding.range(..=edge.from.0).next_back().map(|(_, place)| *place);
        let from = before.filter(|(of, number)| functions[*of][*number].range.end > edge.from.0);
        if let (Some((own, from)), Some((of, to))) = (from, entered.get(&edge.to.0))
            && own == *of
        {
            pass(&mut found[own], (from, *to), edge.count.unwrap_or(0));
        }
    }
    found
}

fn pass(edges: &mut Edges, ends: (usize, usize), count: u64) {
    let sum = edges.entry(ends).or_default();
    *sum = sum.saturating_add(count);
}

/// How often control passes through the machine blocks of a function.
struct Passed<'b> {
    blocks: &'b [MachineBlock],
    counts: Vec<u64>,
    edges: Edges,
}

impl<'b> Passed<'b> {
    fn of(document: &Pgo, blocks: &'b [MachineBlock], mut edges: Edges) -> Self {
        let row_of = |at: u64| -> Option<&BlockRow> {
            let after = document.blocks.partition_point(|row| row.start.0 <= at);
            let row = &document.blocks[after.checked_sub(1)?];
            (at <= row.last.0).then_some(row)
        };
        let count = |at: u64| row_of(at).and_then(|row| row.count).unwrap_or(0);
        let counts = blocks.iter().map(|block| count(block.range.start)).collect();
        // Where no jump leads to a machine block it begins within a block of the code.
        for (number, block) in blocks.iter().enumerate() {
            let next = blocks.get(number + 1).map(|next| next.range.start);
            let Some(next) = next.filter(|next| *next == block.range.end) else { continue };
            let is_inside = row_of(next).is_some_and(|row| row.start.0 < next);
            if is_inside || block.range.is_empty() {
                pass(&mut edges, (number, number + 1), count(next));
            }
        }
        Self { blocks, counts, edges }
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

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::pgo::{EdgeRow, FunctionRow};
    use tma::Address;

    /// A document with these functions, blocks with counts, and edges with counts; each block is an instruction.
    fn profile(functions: &[(&str, u64)], blocks: &[(u64, u64)], edges: &[(u64, u64, u64)]) -> Pgo {
        let function = |(name, start): &(&str, u64)| FunctionRow {
            name: (*name).to_owned(),
            start: Address(*start),
            executed: Some(1),
            ..FunctionRow::default()
        };
        let block = |(at, count): &(u64, u64)| BlockRow {
            start: Address(*at),
            last: Address(*at),
            count: Some(*count),
            ..BlockRow::default()
        };
        let edge = |(from, to, count): &(u64, u64, u64)| EdgeRow {
            block: Address(*from),
            from: Address(*from),
            to: Address(*to),
            kind: if from >> 8 == to >> 8 { EdgeKind::Jump } else { EdgeKind::Tail },
            count: Some(*count),
            ..EdgeRow::default()
        };
        Pgo {
            functions: functions.iter().map(function).collect(),
            blocks: blocks.iter().map(block).collect(),
            edges: edges.iter().map(edge).collect(),
            ..Pgo::default()
        }
    }

    fn machine(starts: &[u64]) -> Vec<MachineBlock> {
        let all = (0..).zip(starts);
        all.map(|(number, start)| MachineBlock { number, range: *start..*start + 4 }).collect()
    }

    /// The second part of `far` lies before its first, and `near` between both: 0 goes to 2 and 3 mostly, and 1 never ran.
    #[test]
    fn a_function_in_parts_has_the_edges_of_its_own_blocks() {
        let functions = [("near", 0x1100), ("far", 0x2000)];
        let blocks =
            [(0x1000, 90), (0x1100, 5), (0x1104, 5), (0x2000, 100), (0x2004, 0), (0x2008, 10)];
        let edges =
            [(0x1000, 0x2008, 1), (0x1100, 0x1104, 5), (0x2000, 0x1000, 90), (0x2000, 0x2008, 9)];
        let parts = [machine(&[0x2000, 0x2004, 0x2008, 0x1000]), machine(&[0x1100, 0x1104])];
        let (rows, note) = clusters(&profile(&functions, &blocks, &edges), &parts);
        let row = |name: &str, blocks: &[u64]| ClusterRow {
            function: name.to_owned(),
            blocks: blocks.to_vec(),
        };
        assert_eq!(rows, [row("far", &[0, 3, 2]), row("near", &[0, 1])]);
        assert_eq!(note, None);
    }

    #[test]
    fn functions_that_share_a_name_are_noted() {
        let functions = [("step", 0x1000), ("main", 0x1100), ("step", 0x1200)];
        let document = profile(&functions, &[(0x1000, 1), (0x1100, 1), (0x1200, 1)], &[]);
        let blocks = [0x1000, 0x1100, 0x1200].map(|start| machine(&[start]));
        let (rows, note) = clusters(&document, &blocks);
        assert_eq!(rows.iter().map(|row| row.function.as_str()).collect::<Vec<_>>(), ["main"]);
        assert!(note.is_some_and(|note| note.ends_with("1 name, as step")));
    }
}
