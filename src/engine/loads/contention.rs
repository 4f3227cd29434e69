//! Recorded addresses → rows of the cache lines that threads contend for.

use super::sites::{STACK, Site};
use loads::contention::{Contended, contended};
use loads::recorded::{Actor, Line, LineAccess};
use probe::bursts::{Burst, Record, Recorded, Region};
use probe::count::Wanted;
use probe::plan::What;
use profile::address_space::ModuleAddress;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use report::documents::count::{ContendedAccess, ContendedLine};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tma::Address;

/// Most lines that are kept.
const LINES: usize = 64;
/// Most accesses of a line.
const ACCESSES: usize = 64;

/// The lines; `of` has the sites of the observed instructions.
pub(super) fn lines(
    functions: &[(&str, &Wanted)],
    sites: &[Site],
    recorded: &Recorded,
    of: &[Option<usize>],
) -> Vec<ContendedLine> {
    let site = |record: &Record| -> Option<usize> {
        let observed = recorded.observed.get(record.site as usize)?;
        let is_address = observed.request.what == What::Address;
        of.get(record.site as usize).copied().flatten().filter(|_| is_address)
    };
    let access = |(burst, record): (&Burst, &Record)| {
        let number = site(record)?;
        let load = &sites[number].load;
        Some(LineAccess {
            line: Line::of(u32::try_from(burst.image).ok(), record.value),
            actor: Actor::Thread(record.stack >> STACK),
            cpu: None,
            offset: (record.value - record.value / LINE * LINE) as u8,
            bytes: u8::try_from(load.width).ok(),
            site: number,
            writes: load.is_written,
            modified: false,
            remote: false,
            latency: None,
        })
    };
    let all = recorded.bursts.iter();
    let all = all.flat_map(|burst| burst.records.iter().map(move |record| (burst, record)));
    let is_locked = |number: usize| sites[number].load.is_locked;
    let mut found = contended(all.filter_map(access), &is_locked);
    found.truncate(LINES);
    let mut rows =
        Rows { functions, sites, recorded, threads: BTreeMap::new(), symbols: Symbols::default() };
    found.iter().map(|one| rows.row(one)).collect()
}

/// Bytes of a line.
const LINE: u64 = 64;

/// Makes the rows.
struct Rows<'a> {
    functions: &'a [(&'a str, &'a Wanted)],
    sites: &'a [Site],
    recorded: &'a Recorded,
    /// Numbers of threads by process and stack.
    threads: BTreeMap<(Option<u32>, Actor), u32>,
    symbols: Symbols,
}

impl Rows<'_> {
    fn row(&mut self, of: &Contended) -> ContendedLine {
        let mut all: Vec<_> = of.accesses.iter().collect();
        all.sort_by_key(|(_, one)| Reverse(one.loads + one.writes));
        let accesses = all.into_iter().take(ACCESSES).map(|((actor, offset, site), one)| {
            let next = self.threads.len() as u32 + 1;
            let thread = *self.threads.entry((of.line.process, *actor)).or_insert(next);
            let site = &self.sites[*site];
            let (name, wanted) = self.functions[site.function];
            ContendedAccess {
                thread,
                offset: *offset,
                bytes: one.bytes.unwrap_or(0),
                writes: one.writes > 0,
                module: wanted.path.display().to_string(),
                function: name.to_owned(),
                address: Address(site.load.at),
                instruction: site.text.clone(),
                recorded: one.loads + one.writes,
            }
        });
        ContendedLine {
            accesses: accesses.collect(),
            place: self.place(of.line),
            contention: of.contention,
            handovers: of.handovers,
            recorded: of.recorded,
        }
    }

    /// Where a line is, by the memory maps of its process.
    fn place(&mut self, line: Line) -> String {
        let at = line.address();
        let is_own = |burst: &&Burst| u32::try_from(burst.image).ok() == line.process;
        let bursts = self.recorded.bursts.iter().filter(is_own);
        let mut maps = bursts.flat_map(|burst| &burst.memory);
        let has = |region: &&Region| region.range.contains(&at);
        let Some(region) = maps.find_map(|all| all.iter().find(has)) else { return String::new() };
        let address = region.in_file.map(|start| start + (at - region.range.start));
        let name = address.and_then(|address| self.variable(&region.of, address));
        name.unwrap_or_else(|| match region.of.is_empty() {
            true => ANONYMOUS.to_owned(),
            false => region.of.clone(),
        })
    }

    /// The variable, or the section, that has an address of a file or begins in its line.
    fn variable(&mut self, path: &str, address: u64) -> Option<String> {
        let kind = ModuleKind::File;
        let module = Module { path: path.to_owned(), kind, ..Module::default() };
        let mut of = |address| {
            let found = self.symbols.object(&module, ModuleAddress { module: 0, address })?;
            Some((found.name.clone(), found.start, found.named))
        };
        // Small variables may begin inside the line.
        let mut inside = (address..address + LINE).step_by(SMALLEST).filter_map(&mut of);
        let (name, start, _) = inside.find(|(.., named)| *named).or_else(|| of(address))?;
        Some(match address.checked_sub(start) {
            Some(offset) => format!("{name}+{offset:#x}"),
            None => name,
        })
    }
}

/// Memory that is mapped without a file or name: large allocations, heaps of other threads, stacks of threads.
const ANONYMOUS: &str = "[anonymous]";
/// Alignment of variables in bytes that are looked for in a line.
const SMALLEST: usize = 4;
