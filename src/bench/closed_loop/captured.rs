//! Runs a program's loop with the program's own values: its code with its own jumps, its memory, and as many
//! iterations as there.

use super::bounded::Bounded;
use crate::Snapshot;
use crate::checks::Footprint;
use crate::harness::region::{Immovable, Region};
use crate::harness::relaid::{counted, moved};
use crate::harness::{Program, RequiredState, Shape, forms};
use crate::initial::Why;
use crate::runner::{BLOCK_CODE, Runner};
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::{EIGHTHS, Form, lengths, whole};
use crate::values::Values;
use isa::names::name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tma::Result;

/// Greatest distance of `[rip+x]` operands that are kept apart as in the program.
pub(super) const RIP_ROOM: u64 = 0x10_0000;
/// Greatest distance of data from the address that `[rip+x]` points to.
pub(super) const TABLE: u64 = 0x1_0000;

/// Why a loop cannot be run with its program's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Flags, masks or what it reads of the system decide.
    Unlike,
    /// A register does not end it as planned.
    Overran,
    /// Its code cannot be moved.
    Immovable(Immovable),
    /// A reason that does not affect which execution is tried next.
    Other(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unlike => "it does not end as in the program",
            Self::Overran => "it does not end where its registers say",
            Self::Immovable(why) => return why.fmt(f),
            Self::Other(text) => text,
        })
    }
}

impl From<Immovable> for Unfit {
    fn from(why: Immovable) -> Self {
        Self::Immovable(why)
    }
}

impl From<String> for Unfit {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Unfit {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

impl From<Unfit> for Why {
    fn from(why: Unfit) -> Self {
        format!("not with the program's values: {why}").into()
    }
}

/// Address (p_vaddr) and bytes of the parts of some code.
type Code<'a> = &'a [(u64, Vec<u8>)];

/// A loop with its values, ready to be timed.
pub(super) struct Captured {
    pub(super) region: Region,
    required_state: RequiredState,
    /// Iterations of an execution.
    pub trips: u64,
    /// The early exit, if it leaves earlier than in the program.
    pub bounded: Option<Bounded>,
    rip_area: usize,
    /// Where that is.
    pub(super) moved: u64,
    /// Registers with which the program left.
    pub(super) left_with: Option<[u64; 16]>,
    /// Pages whose content is known.
    pub images: BTreeSet<u64>,
    /// Pages it accesses.
    pub pages: Vec<u64>,
    /// Lines it writes, which are restored before every execution.
    pub lines: Vec<u64>,
    /// Initial registers and memory fill.
    pub values: Values,
    /// Cache lines that the program accessed in the iterations that were followed, and how many those were.
    lines_followed: Option<(u64, u64)>,
    /// Most of these lines at the same offset within a page.
    same_set: Option<u64>,
    /// Whether start and end are a notable part of an execution, so that executions of several lengths are
    /// compared if possible.
    pub by_lengths: bool,
}

impl Captured {
    pub(super) fn attempt(
        runner: &mut Runner,
        snapshot: &Snapshot,
        code: Code<'_>,
        trips: u64,
        registers: [u64; 16],
        bounded: Option<Bounded>,
    ) -> Result<std::result::Result<Self, Unfit>> {
        let region = match bounded.as_ref().and_then(|bounded| bounded.counter) {
            Some(counter) => counted(code, snapshot.address, counter),
            None => moved(code, snapshot.address),
        };
        let region = match region {
            Ok(region) => region,
            Err(why) => return Ok(Err(why.into())),
        };
        let segments = |r: &iced_x86::UsedRegister| {
            matches!(r.register(), iced_x86::Register::FS | iced_x86::Register::GS)
        };
        if region.block.instructions.iter().flat_map(|i| &i.registers).any(segments) {
            return Ok(Err("it accesses memory through fs or gs".into()));
        }
        let prefetches = |i: &isa::code::Inst| name(i.decoded.mnemonic()).starts_with("Prefetch");
        if region.block.instructions.iter().any(prefetches) {
            // No fault maps a page that is only prefetched, and each prefetch of it walks the page table.
            return Ok(Err("it prefetches, and not from known pages only".into()));
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

    /// Pages and lines that an execution accesses.
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

    /// Difference in iterations between compared executions; `None` if the comparison is with no execution.
    pub fn eighth(&self) -> Option<u64> {
        let bounded = self.bounded.as_ref().filter(|_| self.by_lengths)?;
        Some(bounded.eighth()).filter(|eighth| *eighth > 0)
    }

    /// This, compared by executions of several lengths or not.
    pub fn by_lengths(self, by_lengths: bool) -> Self {
        Self { by_lengths, ..self }
    }

    /// Whether its code is not laid out at the program's distances.
    pub fn is_relaxed(&self) -> bool {
        self.region.is_relaxed
    }

    pub fn set_values(&self, runner: &mut Runner, snapshot: &Snapshot) -> Result<()> {
        runner.prepare(&self.values, at::PHYSICAL_MAX, at::PHYSICAL_MAX)?;
        runner.vectors(&snapshot.vectors)?;
        runner.float_mode(snapshot.mxcsr | 0x1f80)
    }

    /// Target of a `[rip+x]` address, from the start of the sandbox's region.
    pub fn rip(&self, target: u64) -> usize {
        self.rip_area + (target % RIP_ROOM) as usize
    }
}

/// Whether a loop with this code (p_vaddr and bytes), entered at `entry`, can be run elsewhere than in
/// its program.
///
/// # Errors
/// Why it cannot.
pub fn can_be_moved(code: &[(u64, Vec<u8>)], entry: u64) -> std::result::Result<(), Immovable> {
    moved(code, entry).map(|_| ())
}

/// Why it did not come to its end.
pub(super) fn words(ended: &Ended) -> Unfit {
    let text = match ended {
        Ended::Fault(fault) => format!("it raises signal {} at {:#x}", fault.signal, fault.cr2),
        Ended::MapRefused(fault) => format!("the page at {:#x} cannot be mapped", fault.cr2),
        Ended::TooManyPages(_) => format!("it accesses more than {} pages", at::PHYSICAL_MAX),
        _ => return "it does not come to an end".into(),
    };
    text.into()
}

impl Captured {
    /// Finds which of the known pages it accesses: each run adds the first missing page that made it go wrong.
    fn find_pages(
        &mut self,
        runner: &mut Runner,
        snapshot: &Snapshot,
        known: &BTreeMap<u64, Vec<u8>>,
    ) -> Result<std::result::Result<(), Unfit>> {
        let accessed = |(page, _): &(&u64, _)| !snapshot.nearby.contains(page);
        let mut images: BTreeMap<u64, Vec<u8>> =
            known.iter().filter(accessed).map(|(page, bytes)| (*page, bytes.clone())).collect();
        loop {
            if images.len() > at::PHYSICAL_MAX {
                let many = images.len();
                let room = at::PHYSICAL_MAX;
                let why = format!("it accesses {many} pages, and the sandbox has {room}");
                return Ok(Err(why.into()));
            }
            self.images = images.keys().copied().collect();
            runner.images(&images)?;
            self.set_values(runner, snapshot)?;
            let program = self.untimed(self.trips);
            if program.end() > at::CODE + at::CODE_SIZE {
                return Ok(Err("its code exceeds the code area of the sandbox".into()));
            }
            let ended = runner.run_once(&program)?;
            let Some(pages) = runner.pages() else {
                return Ok(Err("it overwrote the harness".into()));
            };
            let Some(missed) = pages.iter().find(|page| !images.contains_key(page)) else {
                return Ok(if ended == Ended::Done { Ok(()) } else { Err(words(&ended)) });
            };
            let Some(content) = known.get(missed) else {
                let why = format!("it accesses a page that was not captured ({missed:#x})");
                return Ok(Err(why.into()));
            };
            images.insert(*missed, content.clone());
        }
    }

    /// The pages of the snapshot, those of `[rip+x]` operands where the sandbox has them.
    pub(super) fn known(
        &self,
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<BTreeMap<u64, Vec<u8>>> {
        let base = runner.worker()?.base();
        let page = |address: u64| address & !(at::PAGE as u64 - 1);
        let mut images: BTreeMap<u64, Vec<u8>> =
            snapshot.pages.iter().map(|(address, bytes)| (*address, bytes.to_vec())).collect();
        for target in self.region.rip_targets() {
            let real = target.wrapping_sub(snapshot.address).wrapping_add(snapshot.running_at);
            let here = base + self.rip(target) as u64;
            // A table may extend to both sides of the address.
            let around = page(real.saturating_sub(TABLE))..real.saturating_add(TABLE);
            for (address, bytes) in snapshot.pages.range(around) {
                let moved = address.wrapping_sub(page(real)).wrapping_add(page(here));
                images.insert(moved, bytes.to_vec());
            }
        }
        Ok(images)
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
        forms::region(&self.shape(), &self.region, &rip, true, false, start)
    }

    /// An execution against the same code not entered, or longer against shorter executions if they end earlier
    /// than in the program, so that start and end cancel; each `repeat` times.
    pub fn form(&self, placements: usize, repeat: u32) -> Form {
        let shape = self.shape();
        let rip = |target| self.rip(target);
        if let (Some(bounded), Some(eighth)) = (&self.bounded, self.eighth()) {
            let starts: [_; EIGHTHS] =
                std::array::from_fn(|n| (bounded.registers(bounded.length(n)), bounded.length(n)));
            let build = |shape: &Shape<'_>, n: usize| -> Program {
                let (registers, trips) = &starts[n];
                let start = Some((registers, *trips));
                forms::region(shape, &self.region, &rip, true, true, start)
            };
            return lengths(&shape, &build, placements, eighth as f64, repeat);
        }
        let build = |shape: &Shape<'_>, enter: bool| -> Program {
            let start = self.bounded.as_ref().map(|bounded| bounded.registers(self.trips));
            let start = start.as_ref().map(|registers| (registers, self.trips));
            forms::region(shape, &self.region, &rip, enter, true, start)
        };
        whole(&shape, &build, placements, self.trips as f64, repeat)
    }
}
