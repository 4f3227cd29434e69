//! An event of a recording that samples loads and stores: what it distorts, and its samples one by one as accesses
//! to memory.

use loads::recorded::{Access, DataSource, IbsOp, Operation, Snoop};
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::event::Event;
use profile::files::SearchPaths;
use profile::module::Module;
use profile::record::Record;
use profile::recording::Stream;
use profile::sample::Sample;
use tma::Result;

/// `PERF_TYPE_RAW`.
const RAW: u32 = 4;
/// MEM_TRANS_RETIRED.LOAD_LATENCY of Intel's cores: event 0xcd, umask 1.
const LOAD_LATENCY: u64 = 0x1cd;
/// `ldlat` has 16 bits of `config1`.
const LDLAT: u64 = 0xffff;
/// `cnt_ctl` of `ibs_op`: counts µops, not cycles (sysfs format `config:19`).
const IBS_BY_OPS: u64 = 1 << 19;
/// `l3missonly` of `ibs_op` (sysfs format `config:16`).
const IBS_L3_MISSES: u64 = 1 << 16;

/// The sampled instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Loads of at least this many cycles (PEBS).
    LoadLatency,
    /// µops (IBS).
    Ibs,
    /// Loads that do something, such as miss a cache.
    Loads,
    /// Stores.
    Stores,
    /// Another event whose samples have the memory access.
    Other,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Sampled<'a> {
    event: &'a Event,
    kind: Kind,
}

impl<'a> Sampled<'a> {
    /// The kind of an event's samples, by its number or name.
    pub fn of(event: &'a Event) -> Self {
        let name = event.name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        // For raw events the number decides; elsewhere it is that of other processors' events.
        let raw = (event.kind == RAW && event.precise > 0).then_some(event.config & 0xffff);
        let kind = match raw {
            Some(LOAD_LATENCY) => Kind::LoadLatency,
            _ if has(&["ibs_op", "ibs/"]) => Kind::Ibs,
            _ if has(&["mem-loads", "load_latency", "ldlat"]) => Kind::LoadLatency,
            _ if event.precise > 0 && has(&["mem-stores", "all_stores", "_stores"]) => Kind::Stores,
            // MEM_INST_RETIRED.*_LOADS and *_STORES, MEM_LOAD_*_RETIRED.
            Some(raw) if raw & 0xff == 0xd0 && raw & 0x200 != 0 => Kind::Stores,
            Some(raw) if matches!(raw & 0xff, 0xd0..=0xd3) => Kind::Loads,
            _ if event.precise > 0 && has(&["mem_load", "_loads"]) => Kind::Loads,
            _ => Kind::Other,
        };
        Self { event, kind }
    }

    /// How many events a sample stands for, if known.
    pub fn period(&self, sample: &Sample) -> Option<u64> {
        let fixed = (!self.event.by_frequency).then_some(self.event.period);
        sample.period.or(fixed).filter(|period| *period > 0)
    }

    /// Whether a sample stands for as many accesses of its kind as its period says.
    pub fn counts_accesses(&self) -> bool {
        let by_cycles = self.event.config & (IBS_BY_OPS | IBS_L3_MISSES) == 0;
        match self.kind {
            Kind::LoadLatency | Kind::Loads | Kind::Stores => true,
            Kind::Ibs => !by_cycles,
            Kind::Other => false,
        }
    }

    /// Whether it counts only some of those accesses, chosen at random: the sum of periods is the least that there
    /// were (Intel's event lists on MEM_TRANS_RETIRED.LOAD_LATENCY: "Counts randomly selected loads").
    pub fn counts_some(&self) -> bool {
        self.kind == Kind::LoadLatency
    }

    /// The registers of IBS in a sample.
    fn ibs(&self, sample: &Sample) -> Option<IbsOp> {
        IbsOp::of(&sample.raw).filter(|_| self.kind == Kind::Ibs)
    }

    /// The data address of a sample, and the physical one.
    pub fn addresses(&self, sample: &Sample) -> (Option<u64>, Option<u64>) {
        let known = |address: &u64| *address != 0;
        let (own, physical) = (sample.addr.filter(known), sample.physical.filter(known));
        if own.is_some() {
            return (own, physical);
        }
        let ibs = self.ibs(sample);
        (ibs.and_then(|op| op.address), physical.or(ibs.and_then(|op| op.physical)))
    }

    /// The memory access of a sample; `None` if it is of none.
    pub fn access(&self, sample: &Sample) -> Option<(Operation, Access)> {
        let by_name = match self.kind {
            Kind::LoadLatency | Kind::Loads => Some(Operation::Load),
            Kind::Stores => Some(Operation::Store),
            Kind::Ibs | Kind::Other => None,
        };
        let ibs = self.ibs(sample);
        let source = sample.data_source.map(DataSource::of);
        // Older kernels leave the source unknown.
        let source = source.filter(|source| ibs.is_none() || source.level.is_some());
        let source = source.or(ibs.map(|op| op.source)).unwrap_or_else(unknown);
        let operation = source.operation.or(by_name)?;
        // 0: the hardware has measured none, as for loads from the first cache (IBS).
        let weight = sample.weight.map(|weight| weight.total).filter(|total| *total > 0);
        let latency = weight.map(|total| u32::try_from(total).unwrap_or(u32::MAX));
        let access = Access {
            source,
            latency: latency.or(ibs.and_then(|op| op.latency)),
            open: ibs.and_then(|op| op.open),
            period: self.period(sample).unwrap_or(1),
            exact: sample.exact,
        };
        Some((operation, access))
    }

    /// Latencies below are not sampled.
    pub fn least_latency(&self) -> Option<u64> {
        let has = matches!(self.kind, Kind::LoadLatency | Kind::Ibs);
        has.then_some(self.event.config1 & LDLAT).filter(|cycles| *cycles > 0)
    }

    /// Which part of the accesses is sampled, and what that distorts.
    pub fn bias(&self) -> Vec<String> {
        let mut all = vec![self.what()];
        match (self.kind, self.least_latency()) {
            (Kind::LoadLatency, Some(cycles)) => all.push(format!(
                "latencies are truncated at ldlat={cycles}: faster loads are not sampled, most hits of the \
                 first cache among them"
            )),
            (Kind::Ibs, Some(cycles)) => {
                all.push(format!("latencies are truncated at ldlat={cycles}: faster loads are not sampled"));
            }
            _ => {}
        }
        if self.kind == Kind::LoadLatency {
            all.push(
                "the event counts randomly selected loads: there were at least as many as samples × period".into(),
            );
        }
        match self.kind {
            Kind::LoadLatency => all.push(
                "a latency is that until the value is used, with the time the load waited in queues".into(),
            ),
            Kind::Ibs => all.push("only loads that miss the first cache have a latency".into()),
            _ => {}
        }
        if self.event.by_frequency {
            let rate = self.event.period;
            all.push(format!(
                "{rate} samples per second were asked for: how many events one stands for varies"
            ));
        }
        all
    }

    fn what(&self) -> String {
        let event = self.event;
        let every = match (event.by_frequency, event.period) {
            (true, _) | (false, 0) => String::new(),
            (false, period) => format!(", one in {period}"),
        };
        match self.kind {
            Kind::LoadLatency => match self.least_latency() {
                Some(cycles) => format!("samples loads of at least {cycles} cycles{every}"),
                None => format!("samples loads{every}"),
            },
            Kind::Ibs if event.config & IBS_L3_MISSES != 0 => {
                format!("samples µops that miss the L3 cache{every}")
            }
            Kind::Ibs if event.config & IBS_BY_OPS != 0 => {
                format!(
                    "samples dispatched µops{every}: loads are seen in proportion to their executions"
                )
            }
            Kind::Ibs => format!(
                "samples µops by cycles{every}: those that are dispatched after a stall are seen too often"
            ),
            Kind::Loads => {
                format!("samples the loads that the event is of{every}: others are not seen")
            }
            Kind::Stores => format!("samples stores{every}"),
            Kind::Other => format!(
                "sampled by {}{every}: loads near it are seen more often than they are executed",
                event.name
            ),
        }
    }
}

fn unknown() -> DataSource {
    DataSource { operation: None, level: None, snoop: Snoop::None, translation: None, locked: None }
}

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

/// A sample.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub event: usize,
    pub operation: Operation,
    /// Its access; `None` if it accesses no memory.
    pub access: Option<Access>,
    /// Data address, and the physical one.
    pub address: Option<u64>,
    pub physical: Option<u64>,
    /// Whether it is known how many events it stands for.
    pub has_period: bool,
    pub site: Site,
    pub sample: &'a Sample,
}

/// Calls `visit` with each sample, in order of time. Returns the modules, and the limits of the records that a
/// report must state.
///
/// # Errors
/// The recording cannot be read.
pub(crate) fn accesses(
    stream: &Stream,
    search: &SearchPaths,
    visit: &mut dyn FnMut(&Found<'_>, &mut AddressSpaces),
) -> Result<(Vec<Module>, Vec<String>)> {
    let sampled: Vec<Sampled> = stream.about.events.iter().map(Sampled::of).collect();
    let mut spaces = AddressSpaces::of(&stream.about, search.clone());
    let notes = stream.records.each(&mut |record| {
        let Record::Sample { event, sample } = &record else {
            spaces.apply(&record);
            return;
        };
        spaces.advance(sample.time);
        let Some(of) = sampled.get(*event) else { return };
        let found = found(*event, of, sample, &mut spaces);
        visit(&found, &mut spaces);
    })?;
    Ok((spaces.modules.all, notes))
}

fn found<'a>(
    event: usize,
    of: &Sampled,
    sample: &'a Sample,
    spaces: &mut AddressSpaces,
) -> Found<'a> {
    let ip = sample.ip.unwrap_or(0);
    let access = of.access(sample);
    let place =
        access.and_then(|_| spaces.resolve(sample.pid.unwrap_or(u32::MAX), ip, sample.user));
    let (address, physical) = of.addresses(sample);
    Found {
        event,
        operation: access.map_or(Operation::Prefetch, |(operation, _)| operation),
        access: access.map(|(_, access)| access),
        address,
        physical,
        has_period: of.period(sample).is_some(),
        site: place.map_or(Site::Unknown(ip), Site::Known),
        sample,
    }
}
