//! The worker as the profiler uses it: started when needed, replaced after any abnormal end,
//! checked by a canary, and handed code, values and a schedule.

use super::clock::{CHAINS, Calibration, Places, Sentinel, TscClock};
use super::processor::Processor;
use super::sandbox::layout::{self as at, PAGE, context, mail};
use super::sandbox::{Ended, Layers, Worker, patient, prompt, random, stay_on};
use super::values::Values;
use crate::Result;
use crate::machine::{Root, same_kind};
use std::time::Duration;

/// Offset of the block's code in the region, behind the clock's.
pub const BLOCK_CODE: usize = at::CODE + 0x3000;
/// The watchdog: no command takes longer.
const WATCHDOG: Duration = Duration::from_millis(100);
/// Masked exceptions, flush to zero, subnormals are zero.
pub const MXCSR_FAST: u32 = 0x9fc0;
/// Masked exceptions, gradual underflow.
pub const MXCSR_GRADUAL: u32 = 0x1f80;

/// A piece of code that ends in a time stamp.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Where it starts, in the region.
    pub entry: usize,
    /// How often it repeats.
    pub repeat: u32,
}

/// The worker and what was last set up in it.
pub struct Engine {
    worker: Option<Worker>,
    /// How often the watchdog ended a worker.
    pub timeouts: u32,
    /// How floating-point instructions treat subnormals, unless a run wants it otherwise.
    pub mxcsr: u32,
    inspect: bool,
    /// Processors that may be used, and which one is.
    cpus: Vec<usize>,
    at: usize,
    random: u64,
    clock: Places,
    /// What is known of neighbours.
    pub sentinel: Sentinel,
    /// Whether this core was seen to sustain the wide sentinel; how often that was tried.
    wide: bool,
    tries: u32,
    /// Whether anything ran since the last pages were unmapped.
    ran: bool,
    /// Whether the next run begins with unmapping them.
    fresh: bool,
    /// Whether the thread keeps to the worker's processor.
    beside: bool,
    /// Workers started so far.
    pub started: u32,
}

impl Engine {
    /// An engine whose workers stay on `cpu`, or on one of this thread's processors at a time, and
    /// may be inspected (which counting them may take) if `inspect`.
    pub fn new(cpu: Option<usize>, inspect: bool) -> Self {
        let here = nix::sched::sched_getcpu().ok();
        let cpus = cpu.map_or_else(|| allowed(here), |cpu| vec![cpu]);
        let at = cpus.iter().position(|c| Some(*c) == here).unwrap_or(0);
        Self {
            worker: None,
            mxcsr: MXCSR_FAST,
            timeouts: 0,
            inspect,
            cpus,
            at,
            random: random() | 1,
            clock: Places::default(),
            sentinel: Sentinel::default(),
            wide: false,
            tries: 0,
            ran: false,
            fresh: false,
            beside: false,
            started: 0,
        }
    }

    /// Keeps the calling thread, which is the engine's alone from now on, on the worker's
    /// processor: a command is then two switches of one processor, instead of waking another one
    /// and being woken by it, and no thread of ours runs beside a worker that is timing.
    pub fn stay_beside(&mut self) {
        self.beside = true;
    }

    /// A pseudo-random number (xorshift); for dithers and places, not for secrets.
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// The worker, started if there is none.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn worker(&mut self) -> Result<&mut Worker> {
        if self.worker.as_ref().is_none_or(Worker::is_gone) {
            self.worker = None;
            let cpu = self.cpus.get(self.at).copied();
            prompt();
            let started = Worker::start(cpu, self.inspect, random());
            patient();
            self.follow();
            let mut worker = started?;
            let (code, places) = TscClock::code(at::CODE, Processor::here().instructions_a_cycle());
            worker.write(at::CODE, &code);
            self.clock = places;
            self.started += 1;
            (self.ran, self.fresh) = (false, false);
            self.worker = Some(worker);
        }
        self.worker.as_mut().ok_or_else(|| crate::Error::failed("no sandbox worker"))
    }

    /// The processor that the worker is kept on.
    pub fn cpu(&self) -> Option<usize> {
        self.cpus.get(self.at).copied()
    }

    /// Ends the worker; the next command starts a fresh one.
    pub fn discard(&mut self) {
        self.worker = None;
    }

    /// Goes on to the next processor that may be used.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn move_on(&mut self) -> Result<()> {
        if self.cpus.len() > 1 {
            self.at = (self.at + 1) % self.cpus.len();
            let cpu = self.cpus[self.at];
            // Another core may be of another kind.
            self.sentinel = self.sentinel.elsewhere();
            self.worker()?.move_to(cpu);
            self.follow();
        }
        Ok(())
    }

    /// Goes where the worker is, if the thread is to be there.
    fn follow(&self) {
        if let Some(cpu) = self.cpus.get(self.at).filter(|_| self.beside) {
            stay_on(*cpu);
        }
    }

    /// What protects the host.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn layers(&mut self) -> Result<Layers> {
        Ok(self.worker()?.layers().clone())
    }

    /// The clock's segments: add chain long and short, multiply chain long and short, sentinel.
    pub fn clock_segments(&self) -> [Segment; 5] {
        let places = self.clock;
        let segment = |entry, repeat| Segment { entry, repeat };
        let sentinel = if self.wide { places.wide } else { places.sentinel };
        [
            segment(places.add, CHAINS.add.0),
            segment(places.add, CHAINS.add.1),
            segment(places.multiply, CHAINS.multiply.0),
            segment(places.multiply, CHAINS.multiply.1),
            segment(sentinel, CHAINS.sentinel),
        ]
    }

    /// Core cycles per tick of the time stamp counter just now; `None` where no calm rounds say.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn cycles_per_tick(&mut self) -> Result<Option<f64>> {
        let rounds = self.calibrations(64)?;
        Ok(TscClock::cycles_per_tick(&rounds).ok())
    }

    /// Rounds of the clock's segments by themselves; none where they did not run.
    fn calibrations(&mut self, rounds: usize) -> Result<Vec<Calibration>> {
        self.worker()?;
        let segments = self.clock_segments();
        let plan: Vec<_> = (0..rounds.max(4) + 1)
            .flat_map(|_| [4, 0, 1, 4])
            .map(|segment| (segment, 1 + (self.random() % 100) as u16))
            .collect();
        let (ended, ticks) = self.run(&segments, &plan)?;
        if ended != Ended::Done {
            return Ok(Vec::new());
        }
        let rounds =
            ticks.chunks_exact(4).skip(1).map(|t| [t[0], t[1], t[2], t[3]].map(f64::from)).map(
                |[before, long, short, behind]| Calibration {
                    add: (long, short),
                    multiply: None,
                    sentinel: (before, behind),
                },
            );
        Ok(rounds.collect())
    }

    /// Share of `rounds` calibration rounds in which nothing else used the core.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn calm_share(&mut self, rounds: usize) -> Result<f64> {
        let rounds = self.calibrations(rounds)?;
        let Ok(ratio) = TscClock::cycles_per_tick(&rounds) else { return Ok(0.0) };
        self.sentinel.step(&rounds);
        self.sentinel.learn(&rounds, ratio);
        let calm = self.sentinel.calm(&rounds, ratio).into_iter().filter(|c| *c).count();
        Ok(calm as f64 / rounds.len() as f64)
    }

    /// Uses the wide sentinel where the processor is known to sustain it, and on unknown ones once
    /// it was seen to. A start in contention must not leave the narrow one in charge of a wide
    /// core: neighbours that only load went unseen by it, and memory blocks read 16 % high.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn settle_sentinel(&mut self) -> Result<()> {
        if self.wide || self.tries >= 200 {
            return Ok(());
        }
        self.tries += 1;
        self.wide = true;
        if Processor::here().sustains_width() {
            return Ok(());
        }
        let narrow = std::mem::take(&mut self.sentinel);
        self.wide = self.calm_share(24)? >= 0.5;
        if !self.wide {
            self.sentinel = narrow;
        }
        Ok(())
    }

    /// Has the next run begin without the last block's pages, and sets initial values.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn prepare(&mut self, values: &Values, physical: usize, pages: usize) -> Result<()> {
        // Not only if the worker says that there are pages: a block may have made it say so.
        self.fresh |= std::mem::replace(&mut self.ran, false);
        let fresh = self.fresh;
        let worker = self.worker()?;
        let count = physical.clamp(1, at::PHYSICAL_MAX) as u32;
        if !fresh {
            worker.put32(at::MAIL + mail::PAGE_COUNT, 0);
        }
        worker.put32(at::MAIL + mail::PAGE_LIMIT, pages.min(at::PAGES_MAX) as u32);
        worker.put32(at::MAIL + mail::PHYSICAL_COUNT, count);
        worker.put64(at::MAIL + mail::LOWEST, lowest());
        self.values(values)
    }

    /// Writes initial values and the context of a run, all of it.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn values(&mut self, values: &Values) -> Result<()> {
        let mxcsr = self.mxcsr;
        let worker = self.worker()?;
        worker.write(at::CONTEXT, &[0; 0x180]);
        worker.put64(at::MAIL + mail::PATTERN, values.memory);
        worker.put64(at::CONTEXT + context::PATTERN, values.memory);
        worker.put32(at::CONTEXT + context::MXCSR, mxcsr);
        for (i, value) in values.registers.iter().enumerate() {
            worker.put64(at::CONTEXT + context::REGISTERS + 8 * i, *value);
        }
        for word in 0..8 {
            worker.put64(at::CONTEXT + context::VECTOR + 8 * word, values.vector);
        }
        Ok(())
    }

    /// Writes the addresses of the lines that are restored between runs.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn lines(&mut self, lines: &[u64]) -> Result<()> {
        let worker = self.worker()?;
        let lines = &lines[..lines.len().min(at::LINES_MAX)];
        worker.put32(at::CONTEXT + context::LINE_COUNT, lines.len() as u32);
        for (i, line) in lines.iter().enumerate() {
            worker.put64(at::LINES + 8 * i, *line);
        }
        Ok(())
    }

    /// Runs `schedule`, pairs of segment and dither, and returns the ticks of each entry. The
    /// worker is discarded if it did not come to an orderly end.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn run(
        &mut self,
        segments: &[Segment],
        schedule: &[(usize, u16)],
    ) -> Result<(Ended, Vec<u32>)> {
        let count = schedule.len().min(at::SCHEDULE_MAX);
        self.worker()?;
        self.ran = true;
        let unmap = std::mem::replace(&mut self.fresh, false);
        let operation = if unmap { mail::UNMAP_AND_RUN } else { mail::RUN };
        let worker = self.worker()?;
        let base = worker.base();
        for (i, segment) in segments.iter().enumerate().take(mail::SEGMENTS_MAX) {
            let place = at::MAIL + mail::SEGMENTS + 32 * i;
            worker.put64(place, base + segment.entry as u64);
            worker.put32(place + 8, segment.repeat.max(1));
        }
        let mut words = Vec::with_capacity(4 * count);
        for (segment, dither) in &schedule[..count] {
            let word = (*segment as u32 & 31) | u32::from((*dither).max(1)) << 16;
            words.extend(word.to_le_bytes());
        }
        worker.write(at::SCHEDULE, &words);
        worker.put32(at::MAIL + mail::COUNT, count as u32);
        let ended = worker.command(operation, WATCHDOG);
        let ticks = match ended {
            Ended::Done => worker.words(at::TICKS, count),
            _ => Vec::new(),
        };
        self.timeouts += u32::from(ended == Ended::TimedOut);
        if matches!(ended, Ended::TimedOut | Ended::Died(_)) {
            self.discard();
        }
        Ok((ended, ticks))
    }

    /// How the next runs treat floating-point numbers: the MXCSR that they start with.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn float_mode(&mut self, mxcsr: u32) -> Result<()> {
        self.worker()?.put32(at::CONTEXT + context::MXCSR, mxcsr);
        Ok(())
    }

    /// MXCSR and the x87 status word as the last run left them.
    pub fn float_flags(&self) -> (u32, u32) {
        let read = |field| self.worker.as_ref().map_or(0, |w| w.get32(at::CONTEXT + field));
        (read(context::MXCSR_END), read(context::X87_END) & 0xffff)
    }

    /// Makes ready to run a block again that ran before, in a worker started since then, too.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn again(
        &mut self,
        values: &Values,
        lines: &[u64],
        physical: usize,
        pages: usize,
    ) -> Result<()> {
        if self.worker()?.get32(at::MAIL + mail::PHYSICAL_COUNT) == 0 {
            self.prepare(values, physical, pages)?;
        } else {
            self.values(values)?;
        }
        self.lines(lines)
    }

    /// Addresses of the pages mapped for the block, as the worker says; `None` if what it says
    /// cannot be.
    pub fn pages(&self) -> Option<Vec<u64>> {
        let worker = self.worker.as_ref()?;
        let count = worker.get32(at::MAIL + mail::PAGE_COUNT) as usize;
        let bytes = worker.read(at::PAGES, 8 * count.min(at::PAGES_MAX));
        let pages: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
        let region = worker.base()..worker.base() + at::SIZE as u64;
        let sound = |page: &u64| {
            page.is_multiple_of(PAGE as u64)
                && (lowest()..at::USER_TOP).contains(page)
                && !region.contains(page)
        };
        (count <= at::PAGES_MAX && pages.iter().all(sound)).then_some(pages)
    }

    /// General-purpose registers at the end of the last run, as the worker says.
    pub fn end_registers(&self) -> Vec<u64> {
        let Some(worker) = &self.worker else { return Vec::new() };
        worker.read(at::CONTEXT + context::END_REGISTERS, 128).chunks_exact(8).map(word).collect()
    }

    /// What the physical pages hold.
    pub fn memory(&self) -> Vec<u8> {
        let Some(worker) = &self.worker else { return Vec::new() };
        let pages = worker.get32(at::MAIL + mail::PAGE_COUNT) as usize;
        worker.read(at::PHYSICAL, PAGE * pages.min(at::PHYSICAL_MAX))
    }

    /// Whether the physical pages hold this.
    pub fn holds(&self, memory: &[u8]) -> bool {
        let Some(worker) = &self.worker else { return memory.is_empty() };
        let pages = worker.get32(at::MAIL + mail::PAGE_COUNT) as usize;
        let mut own = [0; PAGE];
        memory.len() == PAGE * pages.min(at::PHYSICAL_MAX)
            && memory.chunks_exact(PAGE).enumerate().all(|(i, page)| {
                worker.copy(at::PHYSICAL + PAGE * i, &mut own);
                own == *page
            })
    }

    /// Lines (64 bytes) of the physical pages that differ from the pattern, by the address of the
    /// first page mapped to each.
    pub fn changed_lines(&self, pages: &[u64], pattern: u64, physical: usize) -> Vec<u64> {
        let Some(worker) = &self.worker else { return Vec::new() };
        let mut lines = Vec::new();
        let mut bytes = [0; PAGE];
        for (i, page) in pages.iter().take(physical.min(at::PHYSICAL_MAX)).enumerate() {
            worker.copy(at::PHYSICAL + PAGE * i, &mut bytes);
            for (line, content) in bytes.chunks_exact(64).enumerate() {
                if content.chunks_exact(8).any(|c| word(c) != pattern) {
                    lines.push(page + 64 * line as u64);
                }
            }
        }
        lines
    }

    /// Runs a known block's stand-in, the clock's own segments; a worker that a block has damaged
    /// does not get through them in an orderly way or in a sensible time.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn canary(&mut self) -> Result<bool> {
        self.values(&Values::default())?;
        let segments = self.clock_segments();
        let (ended, ticks) = self.run(&segments, &[(0, 1), (1, 1), (4, 1)])?;
        let sound = ended == Ended::Done && ticks.len() == 3 && ticks[0] > ticks[1];
        if !sound {
            self.discard();
        }
        Ok(sound)
    }
}

/// The processors that this thread may run on, of hybrids those of the kind it runs on now: the
/// same block takes other times on another kind.
fn allowed(here: Option<usize>) -> Vec<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap_or_default();
    let may = (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    let here = here.and_then(|cpu| u32::try_from(cpu).ok());
    match here.and_then(|cpu| same_kind(&Root::system(), cpu)) {
        Some(kind) => may.filter(|cpu| kind.iter().any(|k| *k as usize == *cpu)).collect(),
        None => may.collect(),
    }
}

impl Drop for Engine {
    /// The thread may have other things to do now.
    fn drop(&mut self) {
        prompt();
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all.copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// The lowest address that an unprivileged program may map.
fn lowest() -> u64 {
    static LOWEST: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *LOWEST.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/vm/mmap_min_addr").unwrap_or_default();
        text.trim().parse().unwrap_or(65536).max(PAGE as u64)
    })
}
