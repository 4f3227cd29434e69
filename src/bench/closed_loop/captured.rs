//! A program's loop run with the program's own values: its code with its own jumps, its memory, and
//! as many iterations as there.

use super::bounded::bounded;
use super::leave_early::Bounded;
use crate::Snapshot;
use crate::checks::Footprint;
use crate::harness::entry_counter::Counter;
use crate::harness::forms;
use crate::harness::program::{Program, Shape};
use crate::harness::region::Region;
use crate::harness::relaid::{counted, moved};
use crate::harness::required_state::RequiredState;
use crate::initial::values::Values;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::{EIGHTHS, Form, lengths, whole};
use std::collections::{BTreeMap, BTreeSet};
use tma::Result;

/// How far `[rip+x]` operands may lie apart to keep their distances.
const RIP_ROOM: u64 = 0x10_0000;
/// How far from where `[rip+x]` points its data may be.
const TABLE: u64 = 0x1_0000;
/// Runs of the loop that must end alike before it is timed.
const AGAIN: usize = 2;
/// Most pages of a loop that runs further than it was followed: those of an L1 data cache of 32 KiB.
const IN_CACHE: usize = 8;
/// Fewest iterations that are counted: fewer before a call are mostly start and end.
const FEWEST: u64 = 4;

/// The reason where flags, masks or what it reads of the system decide.
const UNLIKE: &str = "it does not end as in the program";
/// The reason where a register does not end it as planned.
const OVERRAN: &str = "it does not end where its registers say";

/// Address (p_vaddr) and bytes of the parts of some code.
type Code<'a> = &'a [(u64, Vec<u8>)];

/// A loop with its values, ready to be timed.
pub(super) struct Captured {
    region: Region,
    required_state: RequiredState,
    /// Iterations of an execution.
    pub trips: u64,
    /// How it leaves, if earlier than in the program.
    pub bounded: Option<Bounded>,
    rip_area: usize,
    /// Where that is.
    moved: u64,
    /// Registers with which the program left.
    left_with: Option<[u64; 16]>,
    /// Pages whose content is known.
    pub images: BTreeSet<u64>,
    /// Pages it accesses.
    pub pages: Vec<u64>,
    /// Lines it writes, which are restored before every execution.
    pub lines: Vec<u64>,
    /// Registers it starts with.
    pub values: Values,
    /// Cache lines that the program accessed in the iterations that were followed, and how many those were.
    lines_followed: Option<(u64, u64)>,
    /// Most of these lines at the same offset within a page.
    same_set: Option<u64>,
    /// Whether start and end are a notable part of an execution, so that executions of several lengths are
    /// compared where there can be.
    pub by_lengths: bool,
}

impl Captured {
    /// Runs the loop of a snapshot once, as far as it is known; `Err` says why it cannot be run with
    /// those values.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn new(
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<Self, String>> {
        let mut reason = endless(snapshot);
        if let Some(trips) = snapshot.trips.filter(|trips| *trips > 0) {
            let start = (trips, snapshot.registers);
            match Self::attempt(runner, snapshot, (&snapshot.code, start), None)? {
                Ok(captured) => return Ok(Ok(captured)),
                Err(why) if trips <= snapshot.stepped || why == UNLIKE => return Ok(Err(why)),
                Err(why) => reason = why,
            }
            // What it did not execute there may not be fit to be run.
            if snapshot.before_call.is_none() && trips <= snapshot.stepped + 1 {
                let executed = (snapshot.executed.as_slice(), start);
                if let Ok(captured) = Self::attempt(runner, snapshot, executed, None)? {
                    return Ok(Ok(captured));
                }
            }
        }
        for bounded in bounded(snapshot) {
            match Self::left_early(runner, snapshot, &bounded)? {
                Ok(captured) => {
                    // Longer, once it is known to leave where the program was seen.
                    let longer = bounded.longer(snapshot).filter(|_| bounded.like.is_some());
                    let Some(longer) = longer else { return Ok(Ok(captured)) };
                    let longer = Self::left_early(runner, snapshot, &longer)?;
                    // The sandbox holds what the last attempt left there.
                    return match longer {
                        Ok(captured) => Ok(Ok(captured)),
                        Err(_) => Self::left_early(runner, snapshot, &bounded),
                    };
                }
                Err(why) if why == OVERRAN => {}
                Err(why) => reason = why,
            }
        }
        let enough = |(trips, _): &(u64, _)| *trips >= FEWEST;
        if !snapshot.followed_to.as_ref().is_some_and(enough) {
            return Ok(Err(reason));
        }
        Self::counted(runner, snapshot)
    }

    /// The iterations that were followed, ended by a counter at their start.
    fn counted(
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<Self, String>> {
        let counter = match Counter::of(&snapshot.executed, snapshot.address) {
            Ok(counter) => counter,
            Err(why) => return Ok(Err(why)),
        };
        match Bounded::counted(snapshot, counter) {
            Some(bounded) => Self::left_early(runner, snapshot, &bounded),
            None => Ok(Err(endless(snapshot))),
        }
    }

    fn left_early(
        runner: &mut Runner,
        snapshot: &Snapshot,
        bounded: &Bounded,
    ) -> Result<std::result::Result<Self, String>> {
        let start = (bounded.trips, bounded.registers(bounded.trips));
        let is_counted = bounded.counter.is_some();
        let code = if is_counted { snapshot.executed.as_slice() } else { &snapshot.code };
        let outcome = Self::attempt(runner, snapshot, (code, start), Some(bounded.clone()))?;
        let followed = snapshot.stepped.max(snapshot.followed_to.map_or(0, |(trips, _)| trips));
        Ok(outcome.and_then(|captured| {
            if bounded.trips > followed && captured.pages.len() > IN_CACHE {
                return Err("it leaves the L1 data cache".to_owned());
            }
            Ok(captured)
        }))
    }

    fn attempt(
        runner: &mut Runner,
        snapshot: &Snapshot,
        (code, (trips, registers)): (Code<'_>, (u64, [u64; 16])),
        bounded: Option<Bounded>,
    ) -> Result<std::result::Result<Self, String>> {
        let region = match bounded.as_ref().and_then(|bounded| bounded.counter) {
            Some(counter) => counted(code, snapshot.address, counter),
            None => moved(code, snapshot.address),
        };
        let region = match region {
            Ok(region) => region,
            Err(why) => return Ok(Err(why)),
        };
        let segments = |r: &iced_x86::UsedRegister| {
            matches!(r.register(), iced_x86::Register::FS | iced_x86::Register::GS)
        };
        if region.block.instructions.iter().flat_map(|i| &i.registers).any(segments) {
            return Ok(Err("it accesses memory through fs or gs".to_owned()));
        }
        let prefetches =
            |i: &isa::code::Inst| format!("{:?}", i.decoded.mnemonic()).starts_with("Prefetch");
        if region.block.instructions.iter().any(prefetches) {
            // No fault maps a page that is only prefetched, and each prefetch of it walks the page table.
            return Ok(Err("it prefetches, and not from known pages only".to_owned()));
        }
        let required_state = RequiredState::of_region(&region.block);
        let rip_area = runner.worker()?.rip_area() & !(at::PAGE - 1);
        let values = Values { registers, memory: 0, vector: 0 };
        let (pages, lines) = (Vec::new(), Vec::new());
        let mut captured = Self {
            region,
            required_state,
            trips,
            bounded,
            rip_area,
            moved: runner.worker()?.base() + rip_area as u64,
            left_with: snapshot.left_with,
            images: BTreeSet::new(),
            pages,
            lines,
            values,
            lines_followed: snapshot
                .touched_lines
                .map(|lines| (lines, snapshot.before_call.unwrap_or(snapshot.stepped + 1))),
            same_set: snapshot.same_set,
            by_lengths: true,
        };
        let known = captured.known(runner, snapshot)?;
        if let Err(why) = captured.find_pages(runner, snapshot, &known)? {
            return Ok(Err(why));
        }
        captured.run_alike(runner).map(|outcome| outcome.map(|()| captured))
    }

    /// Finds which of the known pages it accesses: each run adds the first that it missed, with whose
    /// absence it went on wrongly.
    fn find_pages(
        &mut self,
        runner: &mut Runner,
        snapshot: &Snapshot,
        known: &BTreeMap<u64, Vec<u8>>,
    ) -> Result<std::result::Result<(), String>> {
        let accessed = |(page, _): &(&u64, _)| !snapshot.nearby.contains(page);
        let mut images: BTreeMap<u64, Vec<u8>> =
            known.iter().filter(accessed).map(|(page, bytes)| (*page, bytes.clone())).collect();
        loop {
            if images.len() > at::PHYSICAL_MAX {
                let many = images.len();
                let room = at::PHYSICAL_MAX;
                return Ok(Err(format!("it accesses {many} pages, and the sandbox has {room}")));
            }
            self.images = images.keys().copied().collect();
            runner.images(&images)?;
            self.set_values(runner, snapshot)?;
            let program = self.untimed(self.trips);
            if program.end() > at::CODE + at::CODE_SIZE {
                return Ok(Err("its code exceeds the code area of the sandbox".to_owned()));
            }
            let ended = run_once(runner, &program)?;
            let Some(pages) = runner.pages() else {
                return Ok(Err("it overwrote the harness".to_owned()));
            };
            let Some(missed) = pages.iter().find(|page| !images.contains_key(page)) else {
                return Ok(if ended == Ended::Done { Ok(()) } else { Err(words(&ended)) });
            };
            let Some(content) = known.get(missed) else {
                return Ok(Err(format!("it accesses a page that was not captured ({missed:#x})")));
            };
            images.insert(*missed, content.clone());
        }
    }

    /// What an execution accesses.
    pub fn footprint(&self) -> Footprint {
        let written: BTreeSet<u64> =
            self.lines.iter().map(|line| line & !(at::PAGE as u64 - 1)).collect();
        Footprint {
            iterations: self.trips,
            pages: self.pages.len(),
            pages_written: written.len(),
            lines_written: self.lines.len() as u64,
            lines_followed: self.lines_followed,
            same_set: self.same_set,
        }
    }

    /// By how many iterations the executions differ that are compared; none where one is compared with no
    /// execution.
    pub fn eighth(&self) -> Option<u64> {
        let bounded = self.bounded.as_ref().filter(|_| self.by_lengths)?;
        Some(bounded.eighth()).filter(|eighth| *eighth > 0)
    }

    /// Whether its code is not at the program's distances.
    pub fn is_relaxed(&self) -> bool {
        self.region.is_relaxed
    }

    pub fn set_values(&self, runner: &mut Runner, snapshot: &Snapshot) -> Result<()> {
        runner.prepare(&self.values, at::PHYSICAL_MAX, at::PHYSICAL_MAX)?;
        runner.vectors(&snapshot.vectors)?;
        runner.float_mode(snapshot.mxcsr | 0x1f80)
    }

    /// The pages of the snapshot, those of `[rip+x]` operands where the sandbox has them.
    fn known(&self, runner: &mut Runner, snapshot: &Snapshot) -> Result<BTreeMap<u64, Vec<u8>>> {
        let base = runner.worker()?.base();
        let page = |address: u64| address & !(at::PAGE as u64 - 1);
        let mut images: BTreeMap<u64, Vec<u8>> =
            snapshot.pages.iter().map(|(address, bytes)| (*address, bytes.to_vec())).collect();
        for target in self.region.rip_targets() {
            let real = target.wrapping_sub(snapshot.address).wrapping_add(snapshot.running_at);
            let here = base + self.rip(target) as u64;
            // What it points to extends to both sides, such as a table.
            let around = page(real.saturating_sub(TABLE))..real.saturating_add(TABLE);
            for (address, bytes) in snapshot.pages.range(around) {
                let moved = address.wrapping_sub(page(real)).wrapping_add(page(here));
                images.insert(moved, bytes.to_vec());
            }
        }
        Ok(images)
    }

    /// Where `[rip+x]` of an address points, from the start of the sandbox's region.
    pub fn rip(&self, target: u64) -> usize {
        self.rip_area + (target % RIP_ROOM) as usize
    }

    pub fn shape(&self) -> Shape<'_> {
        Shape {
            block: &self.region.block,
            required_state: &self.required_state,
            copies: 1,
            lines: !self.lines.is_empty(),
            reseeded: &[],
            taken: &[],
            start: BLOCK_CODE,
            rip_area: self.rip_area,
        }
    }

    pub fn untimed(&self, trips: u64) -> Program {
        let rip = |target| self.rip(target);
        let start = self.bounded.as_ref().map(|bounded| bounded.registers(trips));
        let start = start.as_ref().map(|registers| (registers, trips));
        forms::region(&self.shape(), &self.region, &rip, (true, false), start)
    }

    /// Finds written lines, then runs it again from the same values: it must end alike.
    fn run_alike(&mut self, runner: &mut Runner) -> Result<std::result::Result<(), String>> {
        let mut ends = Vec::new();
        let shortest = self.bounded.as_ref().filter(|bounded| bounded.eighth() > 0);
        let shortest = shortest.map(|bounded| bounded.length(EIGHTHS - 1));
        for trips in shortest.into_iter().chain([self.trips; AGAIN]) {
            let ended = run_once(runner, &self.untimed(trips))?;
            if ended != Ended::Done {
                return Ok(Err(words(&ended)));
            }
            let Some(pages) = runner.pages() else {
                return Ok(Err("it overwrote the harness".to_owned()));
            };
            let not_captured = pages.iter().find(|page| !self.images.contains(page));
            if let Some(page) = not_captured {
                return Ok(Err(format!("it accesses a page that was not captured ({page:#x})")));
            }
            self.lines = runner.changed_lines(&pages, self.values.memory, at::PHYSICAL_MAX);
            if self.lines.len() > at::LINES_MAX {
                return Ok(Err(format!("it writes {} cache lines", self.lines.len())));
            }
            self.pages = pages;
            runner.lines(&self.lines)?;
            let end = runner.end_registers();
            if self.bounded.as_ref().is_some_and(|bounded| !self.is_planned(bounded, trips, &end)) {
                return Ok(Err(OVERRAN.to_owned()));
            }
            if trips == self.trips {
                ends.push(end);
            }
        }
        if let (None, Some(left_with)) = (&self.bounded, self.left_with)
            && !ends.iter().all(|end| self.is_like(end, &left_with))
        {
            return Ok(Err(UNLIKE.to_owned()));
        }
        let alike = ends.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(if alike { Ok(()) } else { Err("it does not end alike each time".to_owned()) })
    }

    /// Whether registers after `trips` are as planned, and those of the program as far as they are known.
    fn is_planned(&self, bounded: &Bounded, trips: u64, end: &[u64]) -> bool {
        let has = |(r, value): (u8, u64)| end.get(usize::from(r)) == Some(&value);
        let like = bounded.like.filter(|(known, _)| trips == *known).map(|(_, mut like)| {
            if let Some(set) = bounded.register.map(usize::from) {
                like[set] = end.get(set).copied().unwrap_or(like[set]);
            }
            like
        });
        bounded.ends(trips).all(has) && like.is_none_or(|like| self.is_like(end, &like))
    }

    /// Whether registers at the end are the program's, apart from pointers made by `lea [rip+x]`.
    fn is_like(&self, end: &[u64], program: &[u64; 16]) -> bool {
        let is_moved = |value: u64| {
            let from = self.moved.wrapping_sub(TABLE);
            self.region.rip_targets().next().is_some()
                && (from..self.moved + RIP_ROOM + TABLE).contains(&value)
        };
        end.iter().zip(program).all(|(own, other)| own == other || is_moved(*own))
    }

    /// An execution against the same code not entered, or longer against shorter executions where they end
    /// earlier than in the program, so that start and end do not count; each `repeat` times.
    pub fn form(&self, placements: usize, repeat: u32) -> Form {
        let shape = self.shape();
        let rip = |target| self.rip(target);
        if let (Some(bounded), Some(eighth)) = (&self.bounded, self.eighth()) {
            let starts: [_; EIGHTHS] =
                std::array::from_fn(|n| (bounded.registers(bounded.length(n)), bounded.length(n)));
            let build = |shape: &Shape<'_>, n: usize| -> Program {
                let (registers, trips) = &starts[n];
                let start = Some((registers, *trips));
                forms::region(shape, &self.region, &rip, (true, true), start)
            };
            let units = eighth as f64;
            return lengths(&shape, &build, placements, (units, repeat));
        }
        let build = |shape: &Shape<'_>, enter: bool| -> Program {
            let start = self.bounded.as_ref().map(|bounded| bounded.registers(self.trips));
            let start = start.as_ref().map(|registers| (registers, self.trips));
            forms::region(shape, &self.region, &rip, (enter, true), start)
        };
        whole(&shape, &build, placements, (self.trips as f64, repeat))
    }
}

/// Whether a loop with this code (p_vaddr and bytes), entered at `entry`, can be run elsewhere than in
/// its program.
///
/// # Errors
/// Why it cannot.
pub fn can_be_moved(code: &[(u64, Vec<u8>)], entry: u64) -> std::result::Result<(), String> {
    moved(code, entry).map(|_| ())
}

/// Why a loop cannot be run to its end, which was not reached.
fn endless(snapshot: &Snapshot) -> String {
    match (snapshot.before_call, snapshot.followed_to) {
        (Some(trips), _) => format!(
            "its end was not reached, and iteration {} of those that were followed calls a function or \
             jumps to a computed address",
            trips + 1
        ),
        (None, None) => "its end was not reached, nor that of its first iteration: it takes more \
                         instructions than are followed"
            .to_owned(),
        _ => format!(
            "its end was not reached in the first {} iterations, and no register that only its exit reads \
             ends it earlier",
            snapshot.at_least
        ),
    }
}

/// Runs a program once.
pub(super) fn run_once(runner: &mut Runner, program: &Program) -> Result<Ended> {
    runner.worker()?.write(program.start, &program.bytes);
    let segment = Segment { entry: program.start, repeat: 1 };
    Ok(runner.run(&[segment], &[(0, 1)])?.0)
}

/// Why it did not come to its end.
fn words(ended: &Ended) -> String {
    match ended {
        Ended::Fault(fault) => format!("it raises signal {} at {:#x}", fault.signal, fault.cr2),
        Ended::MapRefused(fault) => format!("the page at {:#x} cannot be mapped", fault.cr2),
        Ended::TooManyPages(_) => format!("it accesses more than {} pages", at::PHYSICAL_MAX),
        _ => "it does not come to an end".to_owned(),
    }
}
