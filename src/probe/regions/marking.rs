//! Probes at the sites of markers, the events that they log, and names in the memory of the program, each read once.

use super::journal::{Entry, Event, Journal, needs};
use super::tree::{Edge, Label, Marked, Site, Times, Tree};
use crate::emit::most;
use crate::facts::{Addresses, Function};
use crate::patch::{
    Code, Patcher, Probed, Probes, Shared, Target, Unprobed, WORD, Written, most_of, refusal,
    write_observers,
};
use crate::plan::{Observation, Request, Room, What, observe, observe_live};
use crate::process::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The instruction of `tdtool`'s own markers (src/markers).
const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// Number of rsp in encodings.
const STACK: u8 = 4;

/// The sites of a run, and their logs.
pub(super) struct Marking {
    sites: Arc<[Site]>,
    /// Index of each site's code in the request.
    functions: Vec<usize>,
    refused: Vec<Option<Unprobed>>,
    /// Patched targets.
    patched: BTreeSet<usize>,
    journals: Vec<(usize, Journal)>,
    /// Images that have had a log.
    images: usize,
    reader: Reader,
    /// Whether the process has been running.
    is_live: bool,
}

/// The contents of the logs so far.
struct Reader {
    sites: Arc<[Site]>,
    names: Names,
    tree: Tree,
    /// Image, process, and the base of a thread's own memory → thread.
    threads: BTreeMap<(usize, i32, u64), usize>,
    lost: u64,
}

impl Marking {
    pub fn new(sites: &[Site], functions: Vec<usize>, is_live: bool) -> Self {
        let sites: Arc<[Site]> = sites.into();
        let (names, tree, threads) = (Names::default(), Tree::default(), BTreeMap::new());
        Self {
            functions,
            refused: vec![None; sites.len()],
            patched: BTreeSet::new(),
            journals: Vec::new(),
            images: 0,
            reader: Reader { sites: Arc::clone(&sites), names, tree, threads, lost: 0 },
            sites,
            is_live,
        }
    }

    /// The requests of a function of a target, with the numbers of their sites.
    fn requests(&self, target: &Target, index: usize) -> Vec<(Request, u32)> {
        let member = target.functions[index].number;
        let own = (0..)
            .zip(&*self.sites)
            .zip(&self.functions)
            .filter(|(_, function)| **function == member);
        own.map(|((number, site), _)| {
            let argument = match site.label {
                Label::Register(register) => Some(register),
                Label::Fixed(_) => None,
                Label::Function(_) => Some(STACK),
            };
            (Request { at: site.at, what: What::Marked { argument, process: 0 } }, number)
        })
        .collect()
    }

    /// The log of a process, or that of the process that it was forked from.
    fn journal(&mut self, process: i32) -> Option<&mut Journal> {
        let own = self.journals.iter().rposition(|(_, journal)| journal.process == process);
        let image = own.or_else(|| {
            // The log with the last event of this process.
            let last = self.reader.threads.keys().rev().find(|(_, other, _)| *other == process)?.0;
            self.journals.iter().position(|(image, _)| *image == last)
        });
        image.and_then(|at| self.journals.get_mut(at)).map(|(_, journal)| journal)
    }

    fn read(&mut self) {
        for (image, journal) in &mut self.journals {
            let process = journal.process;
            journal.read(&mut |entry| self.reader.add(*image, process, entry));
        }
    }
}

impl Reader {
    /// Adds an entry of the log of an image, whose first process is `first`.
    fn add(&mut self, image: usize, first: i32, entry: Entry) {
        match entry {
            Entry::Event(event) => self.event(image, first, event),
            Entry::ThreadEnded { process, base, tid } => {
                if let Some(thread) = self.threads.remove(&(image, process, base)) {
                    self.tree.leave(thread, tid);
                }
            }
            Entry::Lost(number) => {
                self.lost += number;
                let own = self.threads.iter().filter(|((own, ..), _)| *own == image);
                self.tree.lose(own.map(|(_, thread)| *thread));
            }
        }
    }

    fn event(&mut self, image: usize, first: i32, event: Event) {
        let Some(site) = self.sites.get(event.site as usize) else { return };
        let process = if event.process == 0 { first } else { event.process };
        let all = &mut self.tree.names;
        let name = match &site.label {
            Label::Register(_) => self.names.at(process, event.value, all),
            Label::Fixed(name) | Label::Function(name) => self.names.number(name, all),
        };
        let key = (image, process, event.base);
        let thread = match self.threads.get(&key) {
            Some(thread) => *thread,
            None => {
                let new = self.tree.thread(process);
                self.threads.insert(key, new);
                new
            }
        };
        let times = Times(event.times.0, event.times.1);
        let stack = matches!(site.label, Label::Function(_)).then_some(event.value);
        match site.edge {
            Edge::Begin => self.tree.begin(thread, name, stack, times),
            Edge::End => self.tree.end(thread, name, times),
        }
    }
}

impl Probes for Marking {
    type Plan = Observation;
    const IS_COMMON: bool = true;

    fn needs(&self, _: usize, target: &Target) -> (u64, u64) {
        let trampolines = target.functions.iter().enumerate().map(|(index, member)| {
            let Ok(facts) = &member.facts else { return 0 };
            let parts =
                self.requests(target, index).iter().map(|(request, _)| request.what.parts()).sum();
            most_of(facts, parts)
        });
        (needs(), trampolines.sum::<u64>() + WORD as u64)
    }

    fn plan(&self, function: Probed<'_>, room: &mut Room) -> Observation {
        let Probed { target, index, facts, .. } = function;
        let requests: Vec<Request> =
            self.requests(target, index).into_iter().map(|(request, _)| request).collect();
        if facts.bytes != NOP {
            return match self.is_live {
                true => observe_live(facts, &requests, room, most),
                false => observe(facts, &requests, room, most),
            };
        }
        // Nothing leads into our own nop, even if some bytes look like an address in it.
        let facts = Function { fixed: Addresses::default(), ..facts.clone() };
        observe(&facts, &requests, room, most)
    }

    fn write(
        &self,
        code: &Code,
        function: Probed<'_>,
        plan: &mut Observation,
        written: &mut Written,
    ) {
        let Probed { target, index, facts, .. } = function;
        let requests = self.requests(target, index);
        let process = written.process(code);
        let request = |number: usize| {
            let (mut request, number) = requests[number];
            if let What::Marked { argument, .. } = request.what {
                request.what = What::Marked { argument, process };
            }
            (request, number)
        };
        write_observers(code, facts, plan, written, &request);
    }

    fn patched(&mut self, process: i32, shared: &Arc<Shared>) {
        if !shared.is_copy {
            self.reader.names.forget(process);
            self.reader.names.open(process);
            self.journals.push((self.images, Journal::new(Arc::clone(shared), process)));
            self.images += 1;
        }
    }

    fn thread_ending(&mut self, process: i32, tid: i32, base: u64) {
        self.read();
        if let Some(journal) = self.journal(process) {
            journal.leave(process, base, tid);
        }
    }

    fn process_ending(&mut self, _process: i32) {
        // The memory with the names still exists.
        self.read();
    }

    fn closed(
        &mut self,
        number: usize,
        target: &Target,
        plans: Vec<Result<Observation, Unprobed>>,
        _: &Shared,
        _: usize,
    ) -> Result<(), Unprobed> {
        self.patched.insert(number);
        self.read();
        for (index, plan) in plans.into_iter().enumerate() {
            let own: Vec<u32> = self.requests(target, index).into_iter().map(|(_, n)| n).collect();
            match plan {
                Err(why) => own.iter().for_each(|n| self.refuse(*n, why.clone())),
                Ok(plan) => {
                    let refused = plan.refused.into_iter();
                    refused.for_each(|(n, why)| self.refuse(own[n], why.into()));
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.read();
    }
}

impl Marking {
    fn refuse(&mut self, site: u32, why: Unprobed) {
        self.refused[site as usize] = Some(why);
    }
}

/// Ends the run; its regions. The caller adds the outcome of the run.
pub(super) fn marked(mut patcher: Patcher<Marking>) -> Marked {
    patcher.finish();
    let Patcher { probes: mut marking, refused, targets, .. } = patcher;
    for (number, target) in targets.iter().enumerate() {
        let is_patched = marking.patched.contains(&number);
        let Some(why) = refusal(&refused[number], is_patched) else { continue };
        for index in 0..target.functions.len() {
            marking
                .requests(target, index)
                .iter()
                .for_each(|(_, n)| marking.refuse(*n, why.clone()));
        }
    }
    for (image, journal) in std::mem::take(&mut marking.journals) {
        let process = journal.process;
        journal.finish(&mut |entry| marking.reader.add(image, process, entry));
    }
    Marked {
        tree: marking.reader.tree,
        refused: marking.refused,
        lost: marking.reader.lost,
        ..Marked::default()
    }
}

/// Longest name in bytes; the rest is cut off.
const LONGEST: usize = 256;
/// Most names.
const MOST_NAMES: usize = 10_000;

/// The names of all processes.
#[derive(Debug, Default)]
pub struct Names {
    memories: BTreeMap<i32, Option<Memory>>,
    known: BTreeMap<(i32, u64), usize>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    /// The number of a name.
    pub fn number(&mut self, name: &str, all: &mut Vec<String>) -> usize {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        if all.len() < MOST_NAMES {
            return self.add(name, all);
        }
        // One name more than the limit, for all others.
        match self.numbers.get(OTHERS) {
            Some(others) => *others,
            None => self.add(OTHERS, all),
        }
    }

    fn add(&mut self, name: &str, all: &mut Vec<String>) -> usize {
        all.push(name.to_owned());
        self.numbers.insert(name.to_owned(), all.len() - 1);
        all.len() - 1
    }

    /// The number of the name at an address of a process.
    pub fn at(&mut self, process: i32, address: u64, all: &mut Vec<String>) -> usize {
        if let Some(known) = self.known.get(&(process, address)) {
            return *known;
        }
        let memory = self.memories.entry(process).or_insert_with(|| Memory::open(process).ok());
        let name = memory.as_ref().and_then(|memory| read(memory, address));
        let number = match name {
            Some(name) => self.number(&name, all),
            None => self.number(&format!("(unreadable name at {address:#x})"), all),
        };
        // Beyond the limit, names are read each time.
        if self.known.len() < MOST_NAMES {
            self.known.insert((process, address), number);
        }
        number
    }

    /// A process has ended, or executes another program.
    pub fn forget(&mut self, process: i32) {
        self.memories.remove(&process);
        self.known.retain(|(owner, _), _| *owner != process);
    }

    /// Opens the memory of a process before its number could be reused.
    pub fn open(&mut self, process: i32) {
        self.memories.entry(process).or_insert_with(|| Memory::open(process).ok());
    }
}

/// The name of regions beyond [`MOST_NAMES`].
const OTHERS: &str = "(other names)";

/// Reads a text that ends with 0.
fn read(memory: &Memory, address: u64) -> Option<String> {
    let mut bytes = memory.read(address, LONGEST);
    let end = bytes.iter().position(|byte| *byte == 0);
    // It may end right before unmapped memory.
    bytes.truncate(end.unwrap_or(bytes.len()));
    (end.is_some() || !bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_share_one() {
        let (mut names, mut all) = (Names::default(), Vec::new());
        let numbers: Vec<usize> =
            (0..MOST_NAMES + 3).map(|name| names.number(&name.to_string(), &mut all)).collect();
        assert_eq!(numbers[MOST_NAMES - 1..], [MOST_NAMES - 1, MOST_NAMES, MOST_NAMES, MOST_NAMES]);
        assert_eq!((all.len(), &*all[MOST_NAMES]), (MOST_NAMES + 1, OTHERS));
        assert_eq!(names.number("7", &mut all), 7);
    }
}
