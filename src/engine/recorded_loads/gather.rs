//! A recording → sums of its samples of loads and stores. Samples are not kept.

use super::access::{Found, Site, accesses};
use super::code::Code;
use loads::recorded::{
    Access, Actor, Line, LineAccess, Lines, MOST_LINES, Operation, SharedLine, Snoop, Sum,
};
use profile::address_space::{AddressSpaces, DataPlace};
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::recording::Stream;
use profile::symbols::Symbols;
use std::collections::{BTreeMap, HashMap, HashSet};
use tma::Result;

/// First address of the kernel's half on all 64-bit processors.
const KERNEL_HALF: u64 = 1 << 63;

/// What an access is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Object {
    /// A static variable, or a section.
    Data { module: usize, name: String, start: u64, size: u64, named: bool },
    /// Another mapping.
    Mapping(usize),
    /// Nothing that is known.
    Unknown,
}

/// The sums of one event.
#[derive(Debug, Default)]
pub(crate) struct EventSums {
    /// By operation.
    pub totals: BTreeMap<Operation, Sum>,
    /// By operation and instruction.
    pub sites: HashMap<(Operation, Site), Sum>,
    /// By operation and number of the object.
    pub objects: HashMap<(Operation, usize), Sum>,
    /// Samples by operation, instruction and object.
    pub accessed: HashMap<(Operation, Site, usize), u64>,
    /// Samples that access no memory.
    pub others: u64,
    /// Whether all samples have a period.
    pub has_periods: bool,
}

/// A cache line with the objects in it.
#[derive(Debug, Default)]
pub(crate) struct LineFound {
    pub shared: SharedLine,
    /// Numbers of objects.
    pub objects: HashSet<usize>,
}

/// Everything of a recording.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// By number of the event.
    pub events: Vec<EventSums>,
    /// Objects by number.
    pub objects: Vec<Object>,
    /// Instructions by their number in lines.
    pub sites: Vec<Site>,
    /// Cache lines that several threads access.
    pub lines: BTreeMap<Line, LineFound>,
    /// Names of threads.
    pub threads: HashMap<u32, String>,
    /// Limits of the records.
    pub notes: Vec<String>,
    pub code: Code,
}

/// Numbers of values.
#[derive(Debug)]
struct Numbers<T> {
    all: Vec<T>,
    of: HashMap<T, usize>,
}

impl<T: Clone + Eq + std::hash::Hash> Numbers<T> {
    fn new() -> Self {
        Self { all: Vec::new(), of: HashMap::new() }
    }

    fn number(&mut self, value: &T) -> usize {
        if let Some(number) = self.of.get(value) {
            return *number;
        }
        self.all.push(value.clone());
        self.of.insert(value.clone(), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Sums up a recording.
///
/// # Errors
/// It cannot be read.
pub(crate) fn gather(stream: &Stream, search: &SearchPaths) -> Result<Gathered> {
    let mut symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
    let mut events: Vec<EventSums> = Vec::new();
    let new = || EventSums { has_periods: true, ..EventSums::default() };
    events.resize_with(stream.about.events.len(), new);
    let mut objects = Numbers::new();
    let mut lines = Lines::default();
    let (modules, mut notes) = accesses(stream, search, &mut |found, spaces| {
        let Some(sums) = events.get_mut(found.event) else { return };
        let Some(access) = &found.access else {
            sums.others += 1;
            return;
        };
        let (operation, site) = (found.operation, found.site);
        sums.has_periods &= found.has_period;
        sums.totals.entry(operation).or_default().add(access);
        sums.sites.entry((operation, site)).or_default().add(access);
        let object = objects.number(&object(found, spaces, &mut symbols));
        sums.objects.entry((operation, object)).or_default().add(access);
        *sums.accessed.entry((operation, site, object)).or_default() += 1;
        if let Some(access) = line_access(found, access, 0) {
            lines.note(&access);
        }
    })?;
    if lines.is_part {
        notes.push(format!(
            "cache lines that threads share: only the first {MOST_LINES} sampled lines were looked at"
        ));
    }
    let lines = lines.shared();
    let mut gathered = Gathered {
        events,
        objects: Vec::new(),
        sites: Vec::new(),
        lines: lines.into_keys().map(|line| (line, LineFound::default())).collect(),
        threads: HashMap::new(),
        notes,
        code: Code::new(symbols, modules),
    };
    if !gathered.lines.is_empty() {
        gathered.sites = gather_lines(&mut gathered, &mut objects, stream, search)?;
    }
    gathered.objects = objects.all;
    Ok(gathered)
}

/// The second pass: the accesses to lines that several threads access. Returns the instructions.
fn gather_lines(
    gathered: &mut Gathered,
    objects: &mut Numbers<Object>,
    stream: &Stream,
    search: &SearchPaths,
) -> Result<Vec<Site>> {
    let mut sites = Numbers::new();
    accesses(stream, search, &mut |found, spaces| {
        let access = found.access.and_then(|access| line_access(found, &access, 0));
        let Some(mut access) = access else { return };
        let Some(line) = gathered.lines.get_mut(&access.line) else { return };
        access.site = sites.number(&found.site);
        line.shared.add(&access);
        let object = object(found, spaces, &mut gathered.code.symbols);
        line.objects.insert(objects.number(&object));
        let ids = found.sample.pid.zip(found.sample.tid);
        if let Some((pid, tid)) = ids
            && let Some(name) = spaces.thread_name(pid, tid)
        {
            gathered.threads.insert(tid, name.to_owned());
        }
    })?;
    Ok(sites.all)
}

/// What a sample accesses.
fn object(found: &Found, spaces: &mut AddressSpaces, symbols: &mut Symbols) -> Object {
    let pid = found.sample.pid.unwrap_or(u32::MAX);
    match found.address.and_then(|address| spaces.data(pid, address)) {
        Some(DataPlace::Static(place)) => {
            let module = spaces.modules.all.get(place.module);
            let known = module.and_then(|module| symbols.object(module, place));
            known.map_or(Object::Mapping(place.module), |known| Object::Data {
                module: place.module,
                name: known.name.clone(),
                start: known.start,
                size: known.size,
                named: known.named,
            })
        }
        Some(DataPlace::Mapping(module)) => Object::Mapping(module),
        None => Object::Unknown,
    }
}

/// The sample as an access to a cache line, by the instruction with the number `site`.
fn line_access(found: &Found, access: &Access, site: usize) -> Option<LineAccess> {
    let sample = found.sample;
    let own = found.address?;
    let address = found.physical.unwrap_or(own);
    let everywhere = found.physical.is_some() || own >= KERNEL_HALF;
    let actor = sample.tid.map(Actor::Thread).or(sample.cpu.map(Actor::Cpu))?;
    Some(LineAccess {
        line: Line::of(sample.pid.filter(|_| !everywhere), address),
        actor,
        cpu: sample.cpu,
        offset: (address % 64) as u8,
        bytes: None,
        site,
        writes: found.operation == Operation::Store || access.source.locked == Some(true),
        modified: access.source.snoop == Snoop::Modified,
    })
}
