//! A program's loop run with the program's own values: its code with its own jumps, its memory, and
//! as many iterations as there.
//!
//! | file | concern |
//! |---|---|
//! | `attempts` | which executions are tried |
//! | `pages` | the program's memory that an execution accesses |
//! | `alike` | whether executions end alike, and as in the program |
//! | `timed` | executions as code to run once or to time |

mod alike;
mod attempts;
mod pages;
mod timed;

use super::leave_early::Bounded;
use crate::Snapshot;
use crate::checks::Footprint;
use crate::harness::immovable::Immovable;
use crate::harness::program::Program;
use crate::harness::region::Region;
use crate::harness::relaid::{counted, moved};
use crate::harness::required_state::RequiredState;
use crate::runner::{Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use crate::values::Values;
use isa::names::name;
use std::collections::BTreeSet;
use std::fmt;
use tma::Result;

/// Greatest distance of `[rip+x]` operands that are kept apart as in the program.
const RIP_ROOM: u64 = 0x10_0000;
/// Greatest distance of data from the address that `[rip+x]` points to.
const TABLE: u64 = 0x1_0000;

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

/// Address (p_vaddr) and bytes of the parts of some code.
type Code<'a> = &'a [(u64, Vec<u8>)];

/// A loop with its values, ready to be timed.
pub(super) struct Captured {
    region: Region,
    required_state: RequiredState,
    /// Iterations of an execution.
    pub trips: u64,
    /// The early exit, if it leaves earlier than in the program.
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
    fn attempt(
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

/// Runs a program once.
pub(super) fn run_once(runner: &mut Runner, program: &Program) -> Result<Ended> {
    runner.worker()?.write(program.start, &program.bytes);
    let segment = Segment { entry: program.start, repeat: 1 };
    Ok(runner.run(&[segment], &[(0, 1)])?.0)
}

/// Why it did not come to its end.
fn words(ended: &Ended) -> Unfit {
    let text = match ended {
        Ended::Fault(fault) => format!("it raises signal {} at {:#x}", fault.signal, fault.cr2),
        Ended::MapRefused(fault) => format!("the page at {:#x} cannot be mapped", fault.cr2),
        Ended::TooManyPages(_) => format!("it accesses more than {} pages", at::PHYSICAL_MAX),
        _ => return "it does not come to an end".into(),
    };
    text.into()
}
