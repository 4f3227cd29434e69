//! A recording → sums of its samples of loads and stores, with the columns that all tables have. Samples are not
//! saved.

use super::event::{Found, Site, accesses};
use super::fields::Field;
use super::objects::{Numbers, Object, Objects};
use loads::recorded::{
    Access, Actor, Level, Line, LineAccess, Lines, MOST_LINES, Operation, SharedLine, Snoop, Sum,
};
use profile::code::Code;
use profile::event::Event;
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::recording::Stream;
use profile::symbols::Symbols;
use report::documents::loads::LevelsRow;
use std::collections::{BTreeMap, HashMap, HashSet};
use tma::Result;

/// First address of the kernel's half on all 64-bit processors.
const KERNEL_HALF: u64 = 1 << 63;

/// The sums of one event.
#[derive(Debug, Default)]
pub(crate) struct EventSums {
    /// By operation.
    pub totals: BTreeMap<Operation, Sum>,
    /// By operation and instruction.
    pub sites: HashMap<(Operation, Site), Sum>,
    /// By operation and number of the object.
    pub objects: HashMap<(Operation, usize), Sum>,
    /// Samples by operation, instruction, number of the object and of its member.
    pub accessed: HashMap<(Operation, Site, usize, usize), u64>,
    /// By operation, number of the object and of its member.
    pub members: HashMap<(Operation, usize, usize), MemberSum>,
    /// Samples that access no memory.
    pub others: u64,
    /// Whether all samples have a period.
    pub has_periods: bool,
}

/// The samples of a member.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemberSum {
    pub samples: u64,
    /// Σ period.
    pub events: f64,
    /// Σ latency × period.
    pub weight: f64,
    /// Samples with a latency, and their sum.
    pub latencies: (u64, u64),
}

impl MemberSum {
    fn add(&mut self, access: &Access) {
        let period = access.period as f64;
        self.samples += 1;
        self.events += period;
        if let Some(latency) = access.latency {
            self.weight += f64::from(latency) * period;
            self.latencies.0 += 1;
            self.latencies.1 += u64::from(latency);
        }
    }
}

/// A cache line with the objects in it.
#[derive(Debug, Default)]
pub(crate) struct LineFound {
    pub shared: SharedLine,
    /// Numbers of objects.
    pub objects: HashSet<usize>,
    /// Numbers of members, by offset in the line.
    pub members: BTreeMap<u8, usize>,
}

/// Everything of a recording.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// By number of the event.
    pub events: Vec<EventSums>,
    /// Objects by number.
    pub objects: Vec<Object>,
    /// Members of static variables by number.
    pub members: Vec<Option<Field>>,
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

/// Sums up a recording.
///
/// # Errors
/// It cannot be read.
pub(crate) fn gather(stream: &Stream, search: &SearchPaths) -> Result<Gathered> {
    let mut symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
    let mut events: Vec<EventSums> = Vec::new();
    let new = || EventSums { has_periods: true, ..EventSums::default() };
    events.resize_with(stream.about.events.len(), new);
    let mut objects = Objects::new();
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
        let (object, member) = objects.of(found, spaces, &mut symbols);
        sums.objects.entry((operation, object)).or_default().add(access);
        sums.members.entry((operation, object, member)).or_default().add(access);
        *sums.accessed.entry((operation, site, object, member)).or_default() += 1;
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
        members: Vec::new(),
        sites: Vec::new(),
        lines: lines.into_keys().map(|line| (line, LineFound::default())).collect(),
        threads: HashMap::new(),
        notes,
        code: Code::new(symbols, modules),
    };
    if !gathered.lines.is_empty() {
        gathered.sites = gather_lines(&mut gathered, &mut objects, stream, search)?;
    }
    gathered.objects = objects.objects.all;
    gathered.members = objects.members.all;
    Ok(gathered)
}

/// The second pass: the accesses to lines that several threads access. Returns the instructions.
fn gather_lines(
    gathered: &mut Gathered,
    objects: &mut Objects,
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
        let (object, member) = objects.of(found, spaces, &mut gathered.code.symbols);
        line.objects.insert(object);
        line.members.insert(access.offset, member);
        let ids = found.sample.pid.zip(found.sample.tid);
        if let Some((pid, tid)) = ids
            && let Some(name) = spaces.thread_name(pid, tid)
        {
            gathered.threads.insert(tid, name.to_owned());
        }
    })?;
    Ok(sites.all)
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
        remote: access.source.level == Some(Level::RemoteCache),
        latency: access.latency,
    })
}

/// An event of a recording.
pub(crate) struct Of<'a> {
    pub event: &'a Event,
    /// Its number over all recordings.
    pub number: usize,
    pub source: &'a str,
    pub sums: &'a EventSums,
}

pub(crate) fn levels(sum: &Sum) -> LevelsRow {
    LevelsRow {
        lfb: sum.level(Level::Lfb),
        l1: sum.level(Level::L1),
        l2: sum.level(Level::L2),
        l3: sum.level(Level::L3),
        ram: sum.level(Level::Ram),
        remote_ram: sum.level(Level::RemoteRam),
        remote_cache: sum.level(Level::RemoteCache),
        other: sum.level(Level::Other),
    }
}
