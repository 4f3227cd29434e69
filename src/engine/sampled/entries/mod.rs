//! Counts how often the hottest blocks of a report are entered, and so what an entry costs in the program, in time
//! and cycles.
//!
//! Entries are counted by probes (`probed`), in one further run of the command or in a window of a live process.
//! A block without a probe has the count that those around it give, or the reason why it has none. Cycles per entry that
//! cannot be those of a block's instructions are not shown.

mod probed;

use bench::{BlockMeasurer, Options};
use iced_x86::OpKind;
use isa::code::Block;
use pmu::perf::{Signals, tsc_hz_here};
use pmu::{Command, Target};
pub use probed::CountAsk;
use probed::probed;
use profile::event::EventKind;
use profile::hot::{HotBlock, Profile};
use report::documents::Report;
use tma::{Error, Result};

/// Called with the number of counted blocks and of all.
type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// The target of a live measurement, if entries can be counted there.
///
/// # Errors
/// They cannot; with the remedy.
pub fn target(target: &Target, command: Option<&Command>) -> Result<CountAsk> {
    match (target, command) {
        (Target::Command, Some(command)) => Ok(CountAsk::Command(command.clone())),
        (Target::Process(pid), _) => Ok(CountAsk::Process(*pid)),
        _ => Err(Error::usage("--counts needs a command to run again, or one process")
            .because("entries are counted in one program")
            .hint("`tdtool report --counts -- COMMAND` or `tdtool report --counts -p PID`")),
    }
}

/// Enters how often the report's blocks run. The signal that interrupted the counting, if one did.
///
/// # Errors
/// The command cannot be run again.
pub fn enter(
    report: &mut Report,
    profile: &mut Profile,
    blocks: &[HotBlock],
    ask: &CountAsk,
    progress: Progress<'_>,
) -> Result<Option<i32>> {
    // To the end: what was found is not lost by a signal that comes between two runs.
    let signals = Signals::catch()?;
    progress(0, blocks.len());
    let probed = probed(report, profile, blocks, ask, &signals)?;
    report.notes.extend(probed.notes);
    for (row, found) in report.blocks.iter_mut().zip(probed.loops) {
        (row.loop_entries, row.loop_trips) = found.unzip();
    }
    let found = probed.blocks;
    let mut interrupted = probed.interrupted;
    progress(blocks.len(), blocks.len());
    // Counting slows a process, sampling does not: a share of time divided by entries would be that of no run.
    let is_live = matches!(ask, CountAsk::Process(_));
    if is_live {
        report.notes.push(
            "counting slows the process: its entries a second are those of that time, and give no time per \
             entry; `tdtool report --counts -- COMMAND` does"
                .to_owned(),
        );
    }
    let clock = Clock::of(report, profile)?;
    interrupted = interrupted.or(signals.next().map(|(signal, _)| signal));
    let is_timed = !is_live && found.iter().any(std::result::Result::is_ok);
    if let (Some(note), true) = (clock.note(), is_timed) {
        report.notes.push(note);
    }
    for (number, found) in found.into_iter().enumerate() {
        let row = &mut report.blocks[number];
        let entries = match found {
            Ok(entries) => entries,
            Err(why) => {
                row.entries_how = Some(why.to_string());
                continue;
            }
        };
        if is_live {
            (row.entries, row.entries_error) = (Some(entries.count), entries.error);
            row.entries_how = Some(entries.how);
            continue;
        }
        let cycles = clock
            .cycles()
            .filter(|_| entries.count > 0.0)
            .map(|c| c * row.code.share / entries.count);
        let sampling = 2.0 / (row.code.samples.max(1) as f64).sqrt();
        let error = sampling.hypot(entries.error.unwrap_or(0.0));
        let bytes = profile.code(&blocks[number]).unwrap_or_default();
        if let Some(why) = cycles.and_then(|cycles| contradiction(&bytes, cycles, error)) {
            row.entries_how = Some(format!("not known: {why}"));
            continue;
        }
        if entries.count > 0.0 {
            row.ns_per_entry = clock.seconds.map(|s| s * row.code.share / entries.count * 1e9);
            row.per_entry_error = entries.error.map(|_| error);
            row.cycles_per_entry = cycles;
        }
        (row.entries, row.entries_error) = (Some(entries.count), entries.error);
        row.entries_how = Some(entries.how);
    }
    Ok(interrupted)
}

/// Instructions a core can retire in a cycle, more than any in the tables (8, with fused pairs up to
/// twice as many).
const WIDEST: f64 = 16.0;
/// Cycles that one instruction without memory may take on average: a 64-bit division on the oldest
/// cores in the tables takes about as long (uops.info: DIV r64 on Haswell and Skylake, up to 100).
const SLOWEST: f64 = 100.0;
/// Cycles that one memory operand may take: a miss to remote memory with its page walk.
const FARTHEST: f64 = 2_000.0;

/// Why `cycles` per entry, known to `error` as a ratio, cannot be those of the block; `None`: they
/// can.
pub fn contradiction(bytes: &[u8], cycles: f64, error: f64) -> Option<String> {
    let block = Block::decode(bytes).ok()?;
    let number = block.instructions.len() as f64;
    let is_far = |i: &iced_x86::Instruction| {
        let memory = (0..i.op_count()).any(|at| i.op_kind(at) == OpKind::Memory);
        memory || i.is_string_instruction() || i.is_stack_instruction()
    };
    if block.instructions.iter().any(|i| has_no_bound(&i.decoded)) {
        return None;
    }
    let far = block.instructions.iter().filter(|i| is_far(&i.decoded)).count() as f64;
    let (low, high) = (cycles * (1.0 - error).max(0.0), cycles * (1.0 + error));
    let most = SLOWEST * number + FARTHEST * far;
    let few = high < number / WIDEST;
    (few || low > most).then(|| {
        let amount = if few { "too few for any core" } else { "too many for any core" };
        format!(
            "entry counts and samples disagree: {cycles:.3} cycles per entry of {number} \
             instructions are {amount}"
        )
    })
}

/// Whether one execution may take any time: repeated moves, system calls and waits.
fn has_no_bound(instruction: &iced_x86::Instruction) -> bool {
    use iced_x86::Mnemonic::{Cpuid, Mwait, Pause, Rdrand, Rdseed, Syscall, Tpause, Umwait};
    instruction.has_rep_prefix()
        || instruction.has_repne_prefix()
        || matches!(
            instruction.mnemonic(),
            Cpuid | Mwait | Pause | Rdrand | Rdseed | Syscall | Tpause | Umwait
        )
}

/// Seconds and cycles of the sampled time.
pub(super) struct Clock {
    /// CPU time of the samples, in a run or a second.
    pub seconds: Option<f64>,
    /// Cycles, where samples are of them.
    counted: Option<f64>,
    /// Hertz, estimated.
    hertz: Option<f64>,
}

impl Clock {
    /// From the samples of a report.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn of(report: &Report, profile: &Profile) -> Result<Self> {
        let per = if report.command.is_some() || report.exit.is_some() {
            1.0
        } else {
            report.duration.unwrap_or(1.0)
        };
        match EventKind::of(&profile.event) {
            EventKind::Cycles | EventKind::SomeCycles => {
                let counted = Some(profile.weight() / per);
                return Ok(Self { seconds: None, counted, hertz: None });
            }
            EventKind::Clock | EventKind::Other => {
                return Ok(Self { seconds: None, counted: None, hertz: None });
            }
            EventKind::Time => {}
        }
        let clock = report.software.get("task_clock_ms").copied().flatten();
        let ratio = BlockMeasurer::new(Options::default()).cycles_per_tick()?;
        let hertz = ratio.zip(tsc_hz_here()).map(|(ratio, hertz)| ratio * hertz);
        Ok(Self { seconds: clock.map(|ms| ms / 1e3 / per), counted: None, hertz })
    }

    /// Cycles of the samples, in a run or a second.
    pub fn cycles(&self) -> Option<f64> {
        self.counted.or(self.seconds.zip(self.hertz).map(|(s, h)| s * h))
    }

    /// The limits of the cycles.
    pub fn note(&self) -> Option<String> {
        self.hertz.map(|hertz| {
            format!(
                "cycles per entry are an estimate: time by samples at {:.2} GHz, the core clock that \
                 the block profiler's add chain showed afterwards",
                hertz / 1e9
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_that_no_core_can_take_are_reported() {
        // add rax,rbx; imul rcx,rdx
        let code = [0x48, 0x01, 0xd8, 0x48, 0x0f, 0xaf, 0xca];
        assert_eq!(contradiction(&code, 3.0, 0.1), None);
        assert!(
            contradiction(&code, 400.0, 0.1)
                .is_some_and(|why| why.contains("too many for any core"))
        );
        assert_eq!(contradiction(&code, 210.0, 0.2), None);
        assert!(
            contradiction(&code, 0.01, 0.1).is_some_and(|why| why.contains("too few for any core"))
        );
        // mov rax,[rax] may miss every cache; rep movsb takes as long as it likes.
        assert_eq!(contradiction(&[0x48, 0x8b, 0x00], 900.0, 0.1), None);
        assert_eq!(contradiction(&[0xf3, 0xa4], 1e9, 0.1), None);
    }
}
