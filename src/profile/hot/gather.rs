//! Samples → counts per address, with the address spaces at the time of each sample.

use super::entries::Entries;
use super::filter::{ByRegion, Filter, ThreadWord};
use super::moments::Moments;
use super::reads::{Readings, of_cpus};
use super::tally::{Places, Processes, Tally, key_at};
use super::unwound::{self, Statistics};
use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::record::Record;
use crate::recording::Source;
use crate::sample::{Context, Frame, Sample};
use crate::symbols::Symbols;
use std::collections::{BTreeSet, HashMap};
use tma::Result;

/// A call chain: the thread's name, and the addresses, the innermost first.
pub type Stack = (String, Vec<Option<ModuleAddress>>);

/// The sums of all samples.
#[derive(Debug, Default)]
pub struct Gathered {
    /// All samples that pass the filter.
    pub total: Tally,
    /// By address.
    pub places: Places,
    pub(super) processes: Processes,
    /// By call chain, if samples have them.
    pub stacks: HashMap<Stack, Tally>,
    /// How the chains end that come from copies of the stack.
    pub unwound: Statistics,
    /// Targets of sampled branches, by module.
    pub targets: HashMap<usize, BTreeSet<u64>>,
    /// For recordings of several events: by event and address.
    pub by_event: Vec<HashMap<Option<ModuleAddress>, Tally>>,
    /// Counts that samples read.
    pub reads: Readings,
    /// By region, if times in regions are given.
    pub by_region: ByRegion,
    /// How and where samples in the kernel entered it, if that is asked for.
    pub(super) entries: Entries,
    /// Times of samples, if they are asked for.
    pub(super) moments: Moments,
}

/// Reads a recording; `symbols` are needed where samples hold counts. Returns the limits of its records, too.
pub fn gather(
    source: &dyn Source,
    filter: &Filter,
    spaces: &mut AddressSpaces,
    symbols: &mut Symbols,
) -> Result<(Gathered, Vec<String>)> {
    let about = source.about();
    let event = filter.event_of(about);
    let reads = Readings::new(about, of_cpus(source, event)?);
    let mut all = Gathered { reads, ..Gathered::default() };
    if about.events.len() > 1 {
        all.by_event.resize_with(about.events.len(), HashMap::new);
    }
    let architecture = about.architecture.as_deref();
    let mut first = None;
    let mut notes = source.each(&mut |record| {
        if let Record::Sample { sample, .. } = record
            && spaces.advance(sample.time)
        {
            all.places.forget();
        }
        match record {
            Record::Sample { event: of, sample } if *of == event => {
                if first.is_none() {
                    first = sample.time;
                }
                if passes(sample, filter, first, spaces) {
                    let place = all.add(sample, spaces);
                    if filter.entries {
                        all.entries.take(sample, spaces);
                    }
                    let chain = filter
                        .chains
                        .then(|| all.chain(sample, place, architecture, spaces, symbols))
                        .flatten();
                    if filter.timeline {
                        let moment = chain.clone().unwrap_or_else(|| vec![place]);
                        all.moments.add(sample, moment, spaces);
                    }
                    if let Some(chain) = chain {
                        let name = thread_name(sample, spaces).unwrap_or("[unknown]").to_owned();
                        all.stacks.entry((name, chain)).or_default().add(Tally::of(sample));
                    }
                    all.count(*of, place, sample);
                    let since = all.reads.take(sample, place, || key_at(place, spaces, symbols));
                    if let Some(within) = &filter.regions {
                        all.by_region.add(within, sample, place, since.as_ref());
                    }
                }
            }
            Record::Sample { event: of, sample } => {
                if passes(sample, filter, first, spaces) {
                    let place = place(sample, spaces);
                    all.count(*of, place, sample);
                }
            }
            other => {
                spaces.apply(other);
                all.places.forget();
            }
        }
    })?;
    notes.extend(spaces.notes());
    notes.extend(all.unwound.notes(spaces));
    Ok((all, notes))
}

fn passes(sample: &Sample, filter: &Filter, first: Option<u64>, spaces: &AddressSpaces) -> bool {
    let is_it = |word: &ThreadWord| {
        let has = |number: Option<u32>| number.is_some() && number == word.number;
        has(sample.tid)
            || has(sample.pid)
            || thread_name(sample, spaces).is_some_and(|name| name == word.name)
    };
    let thread = filter.threads.is_empty() || filter.threads.iter().any(is_it);
    let within = filter.time.is_none_or(|(from, to)| match (sample.time, first) {
        (Some(time), Some(first)) => (from..to).contains(&time.saturating_sub(first)),
        _ => false,
    });
    thread && within
}

fn place(sample: &Sample, spaces: &mut AddressSpaces) -> Option<ModuleAddress> {
    let pid = sample.pid.unwrap_or(u32::MAX);
    sample.ip.and_then(|ip| spaces.resolve(pid, ip, sample.user))
}

fn thread_name<'a>(sample: &Sample, spaces: &'a AddressSpaces) -> Option<&'a str> {
    spaces.thread_name(sample.pid?, sample.tid?)
}

impl Gathered {
    /// Share of a tally in all samples that pass the filter.
    pub fn share(&self, tally: Tally) -> f64 {
        if self.total.weight == 0.0 { 0.0 } else { tally.weight / self.total.weight }
    }

    /// Adds a sample to its event's counts, if there are several events.
    fn count(&mut self, event: usize, place: Option<ModuleAddress>, sample: &Sample) {
        if let Some(places) = self.by_event.get_mut(event) {
            places.entry(place).or_default().add(Tally::of(sample));
        }
    }

    /// Adds a sample of the selected event and returns its address.
    fn add(&mut self, sample: &Sample, spaces: &mut AddressSpaces) -> Option<ModuleAddress> {
        let tally = Tally::of(sample);
        self.total.add(tally);
        let pid = sample.pid.unwrap_or(u32::MAX);
        sample.pid.inspect(|pid| self.processes.add(*pid, tally.weight));
        let place = self.places.add(sample, tally, spaces);
        for branch in sample.branches.iter().filter(|b| !b.wrong_path) {
            if let Some(target) = spaces.resolve(pid, branch.to, None) {
                self.targets.entry(target.module).or_default().insert(target.address);
            }
        }
        place
    }

    /// The call chain of a sample at `place`, the innermost first, if it has one.
    fn chain(
        &mut self,
        sample: &Sample,
        place: Option<ModuleAddress>,
        architecture: Option<&str>,
        spaces: &mut AddressSpaces,
        symbols: &mut Symbols,
    ) -> Option<Vec<Option<ModuleAddress>>> {
        let unwound = unwound::callers(sample, architecture, spaces, symbols);
        if sample.chain.is_empty() && unwound.is_none() {
            return None;
        }
        let pid = sample.pid.unwrap_or(u32::MAX);
        let mut stack = vec![place];
        for frame in callers(sample) {
            let user = mode(frame.context);
            if user == Some(true) && unwound.is_some() {
                continue;
            }
            // The call, not the return address, which may be in the next function.
            stack.push(spaces.resolve(pid, frame.ip.saturating_sub(1), user));
        }
        if let Some(unwound) = unwound {
            self.unwound.take(sample, unwound.end);
            // The first is the sample's own, unless that is of kernel mode.
            let own = usize::from(sample.user != Some(false));
            stack.extend(unwound.frames.into_iter().skip(own));
        }
        Some(stack)
    }
}

/// Whether a frame of this context ran in user mode; `None` as in samples: not recorded.
fn mode(context: Context) -> Option<bool> {
    match context {
        Context::User => Some(true),
        Context::Kernel => Some(false),
        Context::Other => None,
    }
}

/// The chain without the sample's own address, its first entry. In a kernel sample with a user-mode
/// chain only (`exclude_callchain_kernel`), the first entry is a caller already.
fn callers(sample: &Sample) -> &[Frame] {
    match sample.chain.split_first() {
        Some((first, callers)) if mode(first.context) == sample.user => callers,
        _ => &sample.chain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::decode;
    use pmu::records::format::{SampleFormat, field, misc};

    #[test]
    fn a_kernel_sample_with_a_chain_of_user_mode_keeps_its_innermost_caller() {
        // CALLCHAIN of linux/perf_event.h: a count, PERF_CONTEXT_USER or _KERNEL, addresses.
        let of = |context: i64, mode| {
            let words = [3, (-context) as u64, 0x1001, 0x2001];
            let body: Vec<u8> = words.iter().flat_map(|w: &u64| w.to_le_bytes()).collect();
            let format = SampleFormat { sample_type: field::CALLCHAIN, ..SampleFormat::default() };
            let sample = decode(&body, mode, &format).expect("a sample");
            callers(&sample).iter().map(|f| f.ip).collect::<Vec<_>>()
        };
        assert_eq!(of(512, misc::KERNEL), [0x1001, 0x2001], "where the kernel was entered");
        assert_eq!(of(512, misc::USER), [0x2001], "the sample's own address is no caller");
        assert_eq!(of(128, misc::KERNEL), [0x2001]);
    }
}
