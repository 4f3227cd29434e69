//! The callers of a sample by unwind tables and a copy of the stack, frame by frame to the outermost function.

use crate::address_space::AddressSpaces;
use crate::module::{ModuleAddress, ModuleKind};
use crate::sample::Sample;
use crate::symbols::Symbols;
use crate::unwind::{Processor, Registers, Stack, Stop, Table};
use std::collections::BTreeMap;

/// Most frames of one chain: a copy has at most 64 KiB, and every frame some bytes of it.
const MOST_FRAMES: usize = 4096;
/// Share of the chains from which a note says that they are cut short.
const WORTH_A_NOTE: f64 = 0.01;

/// How a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At the outermost function.
    Outermost,
    /// Where the copy of the stack ends.
    CopyEnds,
    /// In code without an unwind table: number of its module.
    NoTable(Option<usize>),
}

/// The user-mode part of a call chain, the innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwound {
    /// An address inside each function: the instruction that was interrupted, or one inside the call.
    pub frames: Vec<Option<ModuleAddress>>,
    /// How it ends.
    pub end: End,
}

/// The user-mode call chain of a sample with registers and a copy of the stack; `None` without them.
pub(crate) fn callers(
    sample: &Sample,
    architecture: Option<&str>,
    spaces: &mut AddressSpaces,
    symbols: &mut Symbols,
) -> Option<Unwound> {
    let processor = Processor::of(architecture)?;
    let mut now = Registers::of(sample, processor)?;
    if sample.stack.is_empty() {
        return None;
    }
    let stack = Stack { start: now.stack(), bytes: &sample.stack };
    let pid = sample.pid.unwrap_or(u32::MAX);
    let mut frames = Vec::new();
    // The first frame is interrupted; so is the caller of a frame that the kernel made for a signal.
    let mut called = false;
    while frames.len() < MOST_FRAMES {
        let address = now.ip.wrapping_sub(u64::from(called));
        let place = spaces.resolve(pid, address, Some(true));
        if place.is_none() && !frames.is_empty() {
            // No code: what was taken for a return address is none.
            return Some(Unwound { frames, end: End::NoTable(None) });
        }
        frames.push(place);
        let step = match place.map(|place| step(&now, place, &stack, called, spaces, symbols)) {
            Some(step) => step,
            None => Err(Stop::Unknown),
        };
        let (caller, is_signal) = match step {
            Ok(step) => step,
            Err(stop) => {
                let end = match stop {
                    Stop::Outermost => End::Outermost,
                    Stop::OutsideCopy => End::CopyEnds,
                    Stop::Unknown => End::NoTable(place.map(|place| place.module)),
                };
                return Some(Unwound { frames, end });
            }
        };
        if caller.ip == 0 {
            return Some(Unwound { frames, end: End::Outermost });
        }
        // The stack grows downwards. A leaf function of AArch64 has nothing on it.
        let stays = caller.stack() == now.stack() && !called;
        if caller.stack() <= now.stack() && !stays && !is_signal {
            let end = End::NoTable(place.map(|place| place.module));
            return Some(Unwound { frames, end });
        }
        (now, called) = (caller, !is_signal);
    }
    Some(Unwound { frames, end: End::CopyEnds })
}

/// The caller, and whether the kernel made this frame.
fn step(
    now: &Registers,
    place: ModuleAddress,
    stack: &Stack<'_>,
    called: bool,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> Result<(Registers, bool), Stop> {
    let module = spaces.modules.all.get(place.module).ok_or(Stop::Unknown)?;
    let table = match module.kind {
        ModuleKind::File | ModuleKind::Vdso => match symbols.unwind_table(module) {
            Some(table) => Some(table),
            // It may have no frame pointers.
            None => return Err(Stop::Unknown),
        },
        _ => None,
    };
    match table.and_then(|table: &mut Table| table.row(place.address)) {
        Some(row) => row.caller(now, stack).map(|caller| (caller, row.is_signal)),
        None => framed(now, stack, called).map(|caller| (caller, false)),
    }
}

/// The caller by the frame pointer, as set up by just-in-time compilers and assembly: the word there is the caller's
/// frame pointer, and the return address follows it.
fn framed(now: &Registers, stack: &Stack<'_>, called: bool) -> Result<Registers, Stop> {
    let frame = now.values[now.processor.frame()].ok_or(Stop::Unknown)?;
    let lowest = now.stack();
    if frame == 0 && called {
        return Err(Stop::Outermost);
    }
    if frame < lowest || !frame.is_multiple_of(8) {
        return Err(Stop::Unknown);
    }
    let saved = stack.word(frame).ok_or(Stop::OutsideCopy)?;
    let back = stack.word(frame.wrapping_add(8)).ok_or(Stop::OutsideCopy)?;
    let mut caller = *now;
    caller.ip = now.processor.address(back);
    caller.values[now.processor.frame()] = Some(saved);
    caller.values[now.processor.stack()] = Some(frame.wrapping_add(16));
    Ok(caller)
}

/// How the chains of a recording end.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    chains: u64,
    cut: u64,
    /// Bytes of the largest copy.
    largest: usize,
    /// By module.
    without: BTreeMap<Option<usize>, u64>,
}

impl Statistics {
    /// Notes how the chain of a sample ends.
    pub fn take(&mut self, sample: &Sample, end: End) {
        self.chains += 1;
        match end {
            End::Outermost => {}
            End::CopyEnds => {
                self.cut += 1;
                self.largest = self.largest.max(sample.stack.len());
            }
            End::NoTable(module) => *self.without.entry(module).or_default() += 1,
        }
    }

    /// Whether there were any.
    pub fn is_empty(&self) -> bool {
        self.chains == 0
    }

    /// Limits that a report must state.
    pub fn notes(&self, spaces: &AddressSpaces) -> Vec<String> {
        let share = |count: u64| count as f64 / self.chains.max(1) as f64;
        let mut notes = Vec::new();
        if share(self.cut) >= WORTH_A_NOTE {
            let (percent, size) = (100.0 * share(self.cut), self.largest);
            notes.push(format!(
                "{percent:.1} % of the call chains end where the copy of the stack ends: a larger one than {size} \
                 bytes has all callers (--call-graph dwarf,65528)"
            ));
        }
        let worst = self.without.iter().max_by_key(|(_, count)| **count);
        if let Some((module, count)) = worst.filter(|(_, count)| share(**count) >= WORTH_A_NOTE) {
            let name = module.and_then(|number| spaces.modules.all.get(number));
            let name = name.map_or("code of no known mapping", |module| module.name());
            let percent = 100.0 * share(*count);
            notes.push(format!(
                "{percent:.1} % of the call chains end in {name}: no unwind table gives the callers there"
            ));
        }
        notes
    }
}
