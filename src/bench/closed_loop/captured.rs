//! A program's loop run with the program's own values: its code with its own jumps, its memory, and
//! as many iterations as there.

use super::bounded::{Bounded, bounded};
use crate::Snapshot;
use crate::harness::forms;
use crate::harness::program::{Program, Shape};
use crate::harness::region::Region;
use crate::harness::required_state::RequiredState;
use crate::initial::values::Values;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::{Form, whole};
use std::collections::{BTreeMap, BTreeSet};
use tma::Result;

/// How far `[rip+x]` operands may lie apart to keep their distances.
const RIP_ROOM: u64 = 0x10_0000;
/// Runs of the loop that must end alike before it is timed.
const AGAIN: u32 = 2;

/// A loop with its values, ready to be timed.
pub(super) struct Captured {
    region: Region,
    required_state: RequiredState,
    /// Iterations of an execution.
    pub trips: u64,
    /// How it leaves, if earlier than in the program.
    pub bounded: Option<Bounded>,
    rip_area: usize,
    /// Pages whose content is known.
    images: BTreeSet<u64>,
    /// Pages it accesses.
    pub pages: Vec<u64>,
    /// Lines it writes, which are restored before every execution.
    pub lines: Vec<u64>,
    /// Registers it starts with.
    pub values: Values,
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
        let mut reason = "its end was not reached while it was captured".to_owned();
        if let Some(trips) = snapshot.trips.filter(|trips| *trips > 0) {
            match Self::attempt(runner, snapshot, (trips, snapshot.registers), None)? {
                Ok(captured) => return Ok(Ok(captured)),
                Err(why) if trips <= snapshot.stepped => return Ok(Err(why)),
                Err(why) => reason = why,
            }
        }
        let Some(bounded) = bounded(snapshot) else { return Ok(Err(reason)) };
        let start = (bounded.trips, bounded.registers);
        Self::attempt(runner, snapshot, start, Some(bounded))
    }

    fn attempt(
        runner: &mut Runner,
        snapshot: &Snapshot,
        (trips, registers): (u64, [u64; 16]),
        bounded: Option<Bounded>,
    ) -> Result<std::result::Result<Self, String>> {
        if snapshot.pages.len() > at::PHYSICAL_MAX {
            return Ok(Err(format!(
                "it accesses {} pages, and the sandbox has {}",
                snapshot.pages.len(),
                at::PHYSICAL_MAX
            )));
        }
        let region = match Region::new(&snapshot.code, snapshot.address) {
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
        let rip_area = runner.worker()?.rip_area();
        let values = Values { registers, memory: 0, vector: 0 };
        let (pages, lines) = (Vec::new(), Vec::new());
        let mut captured = Self {
            region,
            required_state,
            trips,
            bounded,
            rip_area,
            images: BTreeSet::new(),
            pages,
            lines,
            values,
        };
        let images = captured.images(runner, snapshot)?;
        captured.images = images.keys().take(at::PHYSICAL_MAX).copied().collect();
        runner.images(&images)?;
        captured.set_values(runner, snapshot)?;
        captured.run_alike(runner).map(|outcome| outcome.map(|()| captured))
    }

    fn set_values(&self, runner: &mut Runner, snapshot: &Snapshot) -> Result<()> {
        runner.prepare(&self.values, at::PHYSICAL_MAX, at::PHYSICAL_MAX)?;
        runner.vectors(&snapshot.vectors)?;
        runner.float_mode(snapshot.mxcsr | 0x1f80)
    }

    /// The pages of the snapshot, those of `[rip+x]` operands where the sandbox has them.
    fn images(&self, runner: &mut Runner, snapshot: &Snapshot) -> Result<BTreeMap<u64, Vec<u8>>> {
        let base = runner.worker()?.base();
        let page = |address: u64| address & !(at::PAGE as u64 - 1);
        let mut images: BTreeMap<u64, Vec<u8>> =
            snapshot.pages.iter().map(|(address, bytes)| (*address, bytes.to_vec())).collect();
        for target in self.region.rip_targets() {
            let real = target.wrapping_sub(snapshot.address).wrapping_add(snapshot.running_at);
            let here = base + self.rip(target) as u64;
            // An operand may extend into the next page.
            for next in [0, 63] {
                if let Some(bytes) = snapshot.pages.get(&page(real + next)) {
                    images.insert(page(here + next), bytes.to_vec());
                }
            }
        }
        Ok(images)
    }

    /// Where `[rip+x]` of an address points, from the start of the sandbox's region.
    fn rip(&self, target: u64) -> usize {
        self.rip_area + (target % RIP_ROOM) as usize
    }

    fn shape(&self) -> Shape<'_> {
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

    /// Finds pages and written lines, then runs it again from the same values: it must end alike.
    fn run_alike(&mut self, runner: &mut Runner) -> Result<std::result::Result<(), String>> {
        let mut ends = Vec::new();
        for _ in 0..AGAIN {
            let rip = |target| self.rip(target);
            let program = forms::region(&self.shape(), &self.region, &rip, (true, false));
            if program.end() > at::CODE + at::CODE_SIZE {
                return Ok(Err("its code exceeds the code area of the sandbox".to_owned()));
            }
            runner.worker()?.write(program.start, &program.bytes);
            let segment = Segment { entry: program.start, repeat: 1 };
            let (ended, _) = runner.run(&[segment], &[(0, 1)])?;
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
            ends.push(runner.end_registers());
        }
        let ends_of = self.bounded.iter().flat_map(|bounded| &bounded.ends);
        let as_planned = |end: &Vec<u64>| {
            ends_of.clone().all(|(r, value)| end.get(usize::from(*r)) == Some(value))
        };
        if !ends.iter().all(as_planned) {
            return Ok(Err("its end was not reached while it was captured".to_owned()));
        }
        let alike = ends.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(if alike { Ok(()) } else { Err("it does not end alike each time".to_owned()) })
    }

    /// An execution against the same code not entered, each `repeat` times.
    pub fn form(&self, placements: usize, repeat: u32) -> Form {
        let shape = self.shape();
        let rip = |target| self.rip(target);
        let build = |shape: &Shape<'_>, enter: bool| -> Program {
            forms::region(shape, &self.region, &rip, (enter, true))
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
    Region::new(code, entry).map(|_| ())
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
