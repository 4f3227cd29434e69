//! Basis of advice without recordings: counts by probes, and measurements of this host.

use crate::cli::count::live;
use crate::cli::progress::{self, Progress};
use crate::settings::Settings;
use bench::{Assumed, BlockMeasurer, Outcome, Status};
use engine::count::{CountAsk, counted};
use engine::hot::hottest::hottest;
use engine::prefetch::{Cycles, Host, NoCycles, misses_in_flight};
use engine::steps::Callback;
use isa::code::{Block, loads_at};
use pmu::Command;
use report::documents::count::Count;
use std::io::Read as _;
use std::path::PathBuf;
use tma::{Error, Result};

/// Share of the samples that the functions hold whose loads are looked at.
const HOT: f64 = 0.9;

/// Runs a command once sampled, and three times with probes: counts, addresses and latencies of its loads.
pub fn counts(settings: &Settings, command: Command) -> Result<(Count, i32)> {
    let live = live(settings, &command, None)?;
    let mut ask = CountAsk {
        hot: None,
        command,
        process: None,
        modules: Vec::new(),
        functions: Vec::new(),
        plain: false,
        loads: true,
        loads_of: None,
        rarest: 0.0,
        values: None,
        branches: None,
        watch: Some(Callback::new(|step| _ = progress::step(&step))),
    };
    ask.begin_sampling();
    ask.hot = Some(hottest(settings.machine(), settings.library, &live, HOT)?);
    let mut progress = Progress::new("analysing the code");
    let found = counted(&ask, &mut |done, all| progress.show(done, all))?;
    progress.end();
    Ok(found)
}

/// The document of `tdtool count --loads`, if the file is one.
pub fn known_counts(files: &[PathBuf]) -> Result<Option<Count>> {
    let is_json = |path: &&PathBuf| {
        let mut begin = [0; 64];
        let read = tma::files::open(path).and_then(|mut file| file.read(&mut begin));
        let text = begin.get(..read.unwrap_or(0)).unwrap_or_default();
        text.trim_ascii_start().starts_with(b"{")
    };
    match (files, files.iter().find(is_json)) {
        (_, None) => Ok(None),
        ([only], Some(_)) => Count::read(only).map(Some),
        (_, Some(path)) => Err(Error::usage(format!("{} is not a recording", path.display()))
            .hint("give a document of `tdtool count --hot --loads` on its own")),
    }
}

/// Measurements of this host for the advice.
pub fn host(settings: &Settings, measurer: &mut BlockMeasurer, counts: &Count) -> Result<Host> {
    let cpu = &settings.core_model()?.core.cpu;
    let in_flight = misses_in_flight(cpu, settings.cache.as_deref());
    Ok(Host { cycles_per_ns: cycles_per_ns(measurer, counts)?, in_flight })
}

/// How often the core clock is looked at until nothing else runs.
const LOOKS: usize = 20;

/// Core cycles in a nanosecond.
fn cycles_per_ns(measurer: &mut BlockMeasurer, counts: &Count) -> Result<f64> {
    let Some(timer) = &counts.timer else {
        let why = counts.notes.join("; ");
        return Err(Error::not_possible("latencies of loads are not known here").because(why));
    };
    for _ in 0..LOOKS {
        if let Some(ratio) = measurer.cycles_per_tick()? {
            return Ok(ratio * timer.ticks_per_ns);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}

/// How often a block is measured: what it takes may differ from one placement to the next.
const MEASURED: usize = 3;

/// Where all loads are from, if they miss the first cache otherwise: no initial value is near.
const ONE_ADDRESS: u32 = 0x3000_0000;
/// Passes that are tried for [`MEASURED`] that are stable.
const TRIED: usize = 2 * MEASURED;
/// Assumptions without which a measured block has misses.
const HITS: [Assumed; 3] = [Assumed::L1Data, Assumed::DataTlb, Assumed::PageAliasing];

/// Core cycles of a block in isolation whose loads all hit the first cache: if they do not as they are (a stride over
/// more lines of one set than it has ways), with all of them from one address.
pub fn cycles_of_hits(
    measurer: &mut BlockMeasurer,
    code: &[u8],
) -> std::result::Result<Cycles, NoCycles> {
    let block = Block::decode(code)?;
    let why = match stable(measurer, &block) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    let other = loads_at(&block, ONE_ADDRESS).and_then(|code| Block::decode(&code));
    let other = other.map_err(|_| why.clone())?;
    let found = stable(measurer, &other);
    found
        .map(|found| Cycles { at_one_address: true, ..found })
        .map_err(|again| if again == why { why } else { NoCycles::Both(why.into(), again.into()) })
}

/// The median and the range of passes that are stable and without misses.
fn stable(measurer: &mut BlockMeasurer, block: &Block) -> std::result::Result<Cycles, NoCycles> {
    let (mut all, mut range) = (Vec::new(), (f64::INFINITY, 0.0_f64));
    let mut unstable = None;
    for _ in 0..TRIED {
        let measured = measurer.measure(block)?;
        let violated = measured
            .assumptions
            .iter()
            .find(|one| one.outcome == Outcome::Violated && HITS.contains(&one.name));
        if let Some(one) = violated {
            return Err(NoCycles::Misses { assumption: one.name, how: one.how.clone() });
        }
        match (measured.throughput, measured.status) {
            (Some(found), Status::Ok) => {
                range = (range.0.min(found.low), range.1.max(found.high));
                all.push(found.cycles);
            }
            _ => unstable = measured.reason.or(unstable),
        }
        if all.len() == MEASURED {
            break;
        }
    }
    all.sort_by(f64::total_cmp);
    match all.get(all.len() / 2) {
        Some(cycles) if all.len() == MEASURED => {
            Ok(Cycles { cycles: *cycles, range, at_one_address: false })
        }
        _ => Err(NoCycles::Unstable(TRIED, unstable)),
    }
}
