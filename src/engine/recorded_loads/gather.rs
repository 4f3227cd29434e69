//! A recording → sums of its samples of loads and stores. Samples are not kept.

use super::code::Code;
use super::event::Sampled;
use loads::recorded::{Actor, Line, LineAccess, Lines, Operation, SharedLine, Snoop, Sum};
use profile::address_space::{AddressSpaces, DataPlace, ModuleAddress};
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::record::Record;
use profile::recording::Recording;
use profile::sample::Sample;
use profile::symbols::Symbols;
use std::collections::{BTreeMap, HashMap, HashSet};

/// First address of the kernel's half on all 64-bit processors.
const KERNEL_HALF: u64 = 1 << 63;

/// A sampled instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Site {
    /// In a module.
    Known(ModuleAddress),
    /// Outside all known mappings, by its address in memory.
    Unknown(u64),
}

impl Site {
    pub fn place(self) -> Option<ModuleAddress> {
        match self {
            Self::Known(place) => Some(place),
            Self::Unknown(_) => None,
        }
    }

    pub fn address(self) -> u64 {
        match self {
            Self::Known(place) => place.address,
            Self::Unknown(address) => address,
        }
    }
}

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

/// One sampled access.
struct Found<'a> {
    event: usize,
    operation: Operation,
    sample: &'a Sample,
    site: Site,
}

/// Sums up a recording.
pub(crate) fn gather(recording: &Recording, search: &SearchPaths) -> Gathered {
    let mut symbols = Symbols::new(search.clone()).with_origin(origin(recording));
    let mut events: Vec<EventSums> = Vec::new();
    events.resize_with(recording.events.len(), || EventSums {
        has_periods: true,
        ..EventSums::default()
    });
    let mut objects = Numbers::new();
    let mut lines = Lines::default();
    let sampled: Vec<Sampled> = recording.events.iter().map(Sampled::of).collect();
    let mut spaces = AddressSpaces::new(search.clone(), &recording.build_ids);
    accesses(recording, &sampled, &mut spaces, &mut |found, access, spaces| {
        let Some(sums) = events.get_mut(found.event) else { return };
        let Some(access) = access else {
            sums.others += 1;
            return;
        };
        let (operation, site) = (found.operation, found.site);
        sums.has_periods &= sampled[found.event].period(found.sample).is_some();
        sums.totals.entry(operation).or_default().add(&access);
        sums.sites.entry((operation, site)).or_default().add(&access);
        let object = objects.number(&object(found.sample, spaces, &mut symbols));
        sums.objects.entry((operation, object)).or_default().add(&access);
        *sums.accessed.entry((operation, site, object)).or_default() += 1;
        if let Some(access) = line_access(&found, 0) {
            lines.note(&access);
        }
    });
    let mut sites = Numbers::new();
    let mut shared: BTreeMap<Line, LineFound> = lines
        .shared()
        .into_iter()
        .map(|(line, shared)| (line, LineFound { shared, ..LineFound::default() }))
        .collect();
    let mut threads = HashMap::new();
    if !shared.is_empty() {
        let mut spaces = AddressSpaces::new(search.clone(), &recording.build_ids);
        accesses(recording, &sampled, &mut spaces, &mut |found, access, spaces| {
            let Some(mut access) = access.and_then(|_| line_access(&found, 0)) else { return };
            let Some(line) = shared.get_mut(&access.line) else { return };
            access.site = sites.number(&found.site);
            line.shared.add(&access);
            line.objects.insert(objects.number(&object(found.sample, spaces, &mut symbols)));
            let ids = found.sample.pid.zip(found.sample.tid);
            if let Some((pid, tid)) = ids
                && let Some(name) = spaces.thread_name(pid, tid)
            {
                threads.insert(tid, name.to_owned());
            }
        });
    }
    let code = Code::new(symbols, spaces.modules.all);
    let (objects, sites) = (objects.all, sites.all);
    Gathered { events, objects, sites, lines: shared, threads, code }
}

/// What is done with a sample, and its access if it is of one.
type Visit<'a> = &'a mut dyn FnMut(Found<'_>, Option<loads::recorded::Access>, &mut AddressSpaces);

/// Calls `visit` with each sample, in order of time.
fn accesses(
    recording: &Recording,
    sampled: &[Sampled],
    spaces: &mut AddressSpaces,
    visit: Visit<'_>,
) {
    for record in &recording.records {
        let Record::Sample { event, sample } = record else {
            spaces.apply(record);
            continue;
        };
        let Some(of) = sampled.get(*event) else { continue };
        let ip = sample.ip.unwrap_or(0);
        let pid = sample.pid.unwrap_or(u32::MAX);
        let access = of.access(sample);
        let site = match access.and(spaces.resolve(pid, ip, sample.user)) {
            Some(place) => Site::Known(place),
            None => Site::Unknown(ip),
        };
        let operation = access.map_or(Operation::Prefetch, |(operation, _)| operation);
        let found = Found { event: *event, operation, sample, site };
        visit(found, access.map(|(_, access)| access), spaces);
    }
}

/// What a sample accesses.
fn object(sample: &Sample, spaces: &mut AddressSpaces, symbols: &mut Symbols) -> Object {
    let known = sample.addr.filter(|address| *address != 0);
    let pid = sample.pid.unwrap_or(u32::MAX);
    match known.and_then(|address| spaces.data(pid, address)) {
        Some(DataPlace::Static(place)) => {
            let module = spaces.modules.all.get(place.module);
            let found = module.and_then(|module| symbols.object(module, place));
            found.map_or(Object::Mapping(place.module), |found| Object::Data {
                module: place.module,
                name: found.name.clone(),
                start: found.start,
                size: found.size,
                named: found.named,
            })
        }
        Some(DataPlace::Mapping(module)) => Object::Mapping(module),
        None => Object::Unknown,
    }
}

/// The sample as an access to a cache line.
fn line_access(found: &Found, site: usize) -> Option<LineAccess> {
    let sample = found.sample;
    let virtual_address = sample.addr.filter(|address| *address != 0)?;
    let physical = sample.physical.filter(|address| *address != 0);
    let address = physical.unwrap_or(virtual_address);
    let everywhere = physical.is_some() || virtual_address >= KERNEL_HALF;
    let source = sample.data_source.map(loads::recorded::DataSource::of);
    let locked = source.is_some_and(|source| source.locked == Some(true));
    let actor = sample.tid.map(Actor::Thread).or(sample.cpu.map(Actor::Cpu))?;
    Some(LineAccess {
        line: Line::of(sample.pid.filter(|_| !everywhere), address),
        actor,
        cpu: sample.cpu,
        offset: (address % 64) as u8,
        bytes: None,
        site,
        writes: found.operation == Operation::Store || locked,
        modified: source.is_some_and(|source| source.snoop == Snoop::Modified),
    })
}
