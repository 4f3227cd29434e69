//! The text of `perf script` → samples and mappings.

use super::lines::{Text, without_absent_cycles};
use super::script::{Head, Line, Taken, read};
use crate::files::Program;
use crate::record::Record;
use crate::recording::Records;
use crate::sample::{Branch, Recorded, Sample};
use std::collections::HashMap;
use tma::{Error, Result};

/// Branches in a piece of a trace.
const PIECE: usize = 4096;
/// The process of samples without one, and of a program that is not said to be mapped.
const PROCESS: u32 = 0;
/// More events than this are names of something else.
const MOST_EVENTS: usize = 1000;
/// Name of an event that the text does not name.
pub const UNNAMED: &str = "event not recorded";

/// A text of `perf script`.
#[derive(Debug)]
pub struct Samples {
    text: Text,
    /// The program, where the text has no mappings.
    program: Option<Program>,
    /// Names of the events, in the order they come.
    events: Vec<String>,
    /// Their numbers.
    numbers: HashMap<String, usize>,
    has_mappings: bool,
}

impl Samples {
    /// Reads the text once, for its events and mappings.
    ///
    /// # Errors
    /// It cannot be read, or no line has a branch.
    pub fn open(text: Text, program: Option<Program>) -> Result<Self> {
        let (mut events, mut numbers) = (Vec::new(), HashMap::new());
        let (mut has_mappings, mut has_too_many) = (false, false);
        let mut has_branches = false;
        // Whether instructions that come now belong to a sample of which there is no head.
        let mut is_headless = true;
        text.each(&mut |line| {
            let head = match read(line) {
                Some(Line::Map(_)) => {
                    has_mappings = true;
                    return true;
                }
                Some(Line::Sample(head, branches)) => {
                    has_branches |= !branches.is_empty();
                    is_headless = !branches.is_empty();
                    head
                }
                Some(Line::Branch(head, ..)) => {
                    has_branches = true;
                    head
                }
                Some(Line::Instruction(..)) => {
                    has_branches = true;
                    if !is_headless {
                        return true;
                    }
                    Head::default()
                }
                Some(Line::Address(_)) if is_headless => Head::default(),
                _ => return true,
            };
            let name = head.event.unwrap_or_else(|| UNNAMED.to_owned());
            if !numbers.contains_key(&name) {
                if events.len() == MOST_EVENTS {
                    has_too_many = true;
                    return true;
                }
                numbers.insert(name.clone(), events.len());
                events.push(name);
            }
            true
        })?;
        if has_too_many {
            return Err(Error::failed(format!("cannot read {}", text.source))
                .because(format!("its lines name more than {MOST_EVENTS} events")));
        }
        if !has_branches {
            return Err(Error::failed(format!("{} has no branches", text.source))
                .because("no line of it has a branch stack")
                .hint("write it with `perf script -F +brstack --show-mmap-events`"));
        }
        Ok(Self { text, program, events, numbers, has_mappings })
    }

    /// Names of the events.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// Note on the mappings that a report must show.
    pub fn note(&self) -> Option<String> {
        match (&self.program, self.has_mappings) {
            (_, true) => None,
            (Some(program), _) if program.is_relocatable() => Some(format!(
                "the text has no mappings, and {} can be loaded anywhere: its branches are those at its own \
                 addresses; `perf script --show-mmap-events` writes the mappings",
                program.path()
            )),
            (Some(_), _) => None,
            (None, _) => Some(
                "the text has no mappings: --binary FILE names the program, or write it with `perf script \
                 --show-mmap-events`"
                    .to_owned(),
            ),
        }
    }
}

impl Records for Samples {
    fn each(&self, visit: &mut dyn FnMut(Record)) -> Result<Vec<String>> {
        if let (Some(program), false) = (&self.program, self.has_mappings) {
            for mapping in program.mappings(PROCESS, 0) {
                visit(Record::Map { time: None, mapping: Box::new(mapping) });
            }
        }
        let mut reader = Reader {
            of: self,
            visit,
            sample: None,
            pending: None,
            trace: Vec::new(),
            of_trace: Head::default(),
            piece: Recorded::TraceBegins,
            mapped: PROCESS,
        };
        let notes = self.text.each(&mut |line| match read(line) {
            Some(line) => {
                reader.take(line);
                true
            }
            None => false,
        })?;
        reader.flush();
        reader.flush_trace(false);
        Ok(notes)
    }
}

/// Where the reading is.
struct Reader<'a> {
    of: &'a Samples,
    visit: &'a mut dyn FnMut(Record),
    /// The sample whose branches come on lines of their own; oldest first.
    sample: Option<(Head, Vec<Branch>)>,
    /// A branch whose target is the next instruction.
    pending: Option<(u64, Taken)>,
    /// The piece of a trace; oldest first.
    trace: Vec<Branch>,
    of_trace: Head,
    piece: Recorded,
    /// The process of the last mapping: that of samples that do not name theirs.
    mapped: u32,
}

impl Reader<'_> {
    fn take(&mut self, line: Line) {
        match line {
            Line::Other => {}
            Line::Map(mapping) => {
                if !mapping.kernel {
                    self.mapped = mapping.pid;
                }
                (self.visit)(Record::Map { time: None, mapping: Box::new(mapping) });
            }
            Line::Sample(head, branches) if branches.is_empty() => {
                self.flush();
                self.sample = Some((head, Vec::new()));
            }
            Line::Sample(mut head, branches) => {
                // Branches on a line of their own belong to the sample before.
                if head == Head::default()
                    && let Some((before, _)) = self.sample.take()
                {
                    head = before;
                }
                self.flush();
                self.emit(&head, branches, Recorded::Sampled);
            }
            Line::Address(ip) => match &mut self.sample {
                Some((head, _)) => {
                    head.ip.get_or_insert(ip);
                }
                None => self.sample = Some((Head { ip: Some(ip), ..Head::default() }, Vec::new())),
            },
            Line::Instruction(address, taken) => self.instruction(address, taken),
            Line::Branch(head, from, to) => self.branch(head, from, to),
        }
    }

    fn instruction(&mut self, address: u64, taken: Option<Taken>) {
        if let Some((from, how)) = self.pending.take() {
            let (_, branches) = self.sample.get_or_insert_default();
            branches.push(Branch {
                from,
                to: address,
                mispredicted: how.mispredicted,
                cycles: Some(how.cycles.unwrap_or(0)),
                ..Branch::default()
            });
        }
        self.pending = taken.map(|taken| (address, taken));
    }

    /// A branch of a trace; one from or to 0 begins or ends it.
    fn branch(&mut self, head: Head, from: u64, to: u64) {
        let is_same = (head.tid, &head.event) == (self.of_trace.tid, &self.of_trace.event);
        if !is_same || from == 0 || to == 0 {
            self.flush_trace(false);
            self.of_trace = head;
        }
        if from == 0 || to == 0 {
            return;
        }
        self.trace.push(Branch { from, to, ..Branch::default() });
        if self.trace.len() == PIECE {
            self.flush_trace(true);
        }
    }

    /// Ends the piece of the trace; `continues`: the next one follows it.
    fn flush_trace(&mut self, continues: bool) {
        if !self.trace.is_empty() {
            let mut branches = std::mem::take(&mut self.trace);
            branches.reverse();
            let head = Head { ip: None, ..self.of_trace.clone() };
            self.emit(&head, branches, self.piece);
        }
        self.piece = if continues { Recorded::TraceContinues } else { Recorded::TraceBegins };
    }

    /// Ends the sample whose branches came line by line.
    fn flush(&mut self) {
        self.pending = None;
        let Some((head, mut branches)) = self.sample.take() else { return };
        branches.reverse();
        self.emit(&head, without_absent_cycles(branches), Recorded::Sampled);
    }

    fn emit(&mut self, head: &Head, branches: Vec<Branch>, recorded: Recorded) {
        let name = head.event.as_deref().unwrap_or(UNNAMED);
        let event = self.of.numbers.get(name).copied().unwrap_or(0);
        let mut sample = Sample::of_branches(branches, recorded);
        // As llvm-profgen, which reads `-F ip,brstack`: one process.
        let pid = if self.of.has_mappings { head.pid.or(Some(self.mapped)) } else { Some(PROCESS) };
        (sample.ip, sample.pid, sample.tid, sample.time) = (head.ip, pid, head.tid, head.time);
        (self.visit)(Record::Sample { event, sample });
    }
}
