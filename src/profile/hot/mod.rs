//! Samples per function, block and instruction.
//!
//! | file | concern |
//! |---|---|
//! | `filter` | which samples count, in which regions, how exact their addresses are |
//! | `gather`, `tally` | samples → sums, with the address spaces at the time of each sample |
//! | `by_thread` | samples of a whole system by place, process and thread name |
//! | `functions` | counts per address → functions with their shares |
//! | `annotate`, `lines` | code of a function and loops with their samples; source lines |
//! | `callers`, `unwound` | call chains as stacks and trees; callers by unwind tables and a copy of the stack |
//! | `entries`, `entered` | kernel time by how and where the kernel was entered |
//! | `events`, `reads` | recordings of several events; counts that samples read |
//! | `moments`, `timeline` | samples with their times, while they are read; resolved, by thread |
//!
//! Shares are of the weight of all samples that pass the filter: of their periods if every sample
//! has one, otherwise of their number.

mod annotate;
mod by_thread;
mod callers;
mod entered;
mod entries;
mod events;
mod filter;
mod functions;
mod gather;
mod lines;
mod moments;
mod reads;
mod tally;
mod timeline;
mod unwound;

use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::code::Flows;
use crate::files::SearchPaths;
use crate::recording::{About, Source};
use crate::symbols::{Origin, Symbols};
use functions::{ByEvent, attribute};
use gather::{Gathered, gather};
use std::ops::Deref;
use tally::FunctionKey;
use tma::Result;

pub use crate::code::Unavailable;
pub use annotate::{Annotated, AnnotatedBlock, AnnotatedLine, HotBlock, HotLoop};
pub use by_thread::{ByThread, ThreadPlace, by_thread};
pub use callers::{CallNode, CallStack, CallTrees, Caller, Calls, SELF, StackFrame};
pub use entered::{Entered, EnteredFrom, KernelPart};
pub use events::EventShare;
pub use filter::{ByRegion, Filter, RegionKey, RegionSamples, Skid, Stay, ThreadWord, Within};
pub use lines::{FrameLine, LinedStack};
pub use moments::{TimedSample, TimedThread};
pub use reads::{FunctionReads, Part, ReadSum, Reads};
pub use tally::{Busiest, HotFunction, HotLine, Tally, half_width};
pub use timeline::{Overview, Thread, Timeline, overview};

/// Profile of a recording's code: plain data for renderers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Functions with samples, hottest first.
    pub functions: Vec<HotFunction>,
    /// Name of the sampled event.
    pub event: String,
    /// Its number among `events`.
    pub event_number: usize,
    /// How exact the addresses of its samples are.
    pub skid: Skid,
    /// Samples that pass the filter.
    pub samples: u64,
    /// The process that has most of them.
    pub busiest: Option<Busiest>,
    /// Records lost.
    pub lost: u64,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
    /// Names of all sampled events.
    pub events: Vec<String>,
    /// For recordings of several events, per function: the event with its largest share, and that
    /// share of the event's samples, 0 to 1.
    pub dominant: Vec<Option<(usize, f64)>>,
}

/// Profile of a recording's code; dereferences to its [`Summary`].
#[derive(Debug)]
pub struct Profile {
    summary: Summary,
    spaces: AddressSpaces,
    symbols: Symbols,
    gathered: Gathered,
    flows: Flows,
    keys: Vec<FunctionKey>,
    /// Samples of each function per address, sorted by address.
    addresses: Vec<Vec<(u64, Tally)>>,
    /// Samples of each event, if there are several.
    events_of: ByEvent,
    reads: Reads,
    shows_inlined: bool,
}

impl Deref for Profile {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

impl Profile {
    /// Attributes the samples of a recording to functions; samples are read once and not stored. Programs are searched
    /// in `search`.
    pub fn new(source: &dyn Source, filter: &Filter, search: SearchPaths) -> Result<Self> {
        let recording = source.about();
        let mut spaces = AddressSpaces::of(recording, search.clone());
        let mut symbols = Symbols::new(search).with_origin(origin(recording));
        let (mut gathered, notes) = gather(source, filter, &mut spaces, &mut symbols)?;
        let found = attribute(&mut gathered, &spaces, &mut symbols);
        let event_number = filter.event_of(recording);
        let event = recording.events.get(event_number);
        let others = recording.other_events(event_number);
        let others = others.filter(|_| filter.event.is_none() && recording.is_partial());
        let summary = Summary {
            functions: found.functions,
            event: event.map(|e| e.name.clone()).unwrap_or_default(),
            event_number,
            skid: event.map_or(Skid::Some, Skid::of),
            samples: gathered.total.samples,
            busiest: gathered.processes.busiest(&spaces),
            lost: recording.lost,
            notes: recording.notes.iter().cloned().chain(others).chain(notes).collect(),
            events: recording.events.iter().map(|e| e.name.clone()).collect(),
            dominant: found.events.dominant(),
        };
        let (keys, addresses) = (found.keys, found.addresses);
        let (events_of, reads) = (found.events, found.reads);
        let shows_inlined = !filter.omit_inlined;
        Ok(Self {
            summary,
            spaces,
            symbols,
            gathered,
            flows: Flows::default(),
            keys,
            addresses,
            events_of,
            reads,
            shows_inlined,
        })
    }

    /// Counts that samples read, by function.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Samples by region, if the filter has regions.
    pub fn by_region(&self) -> &ByRegion {
        &self.gathered.by_region
    }

    /// The path of a module.
    pub fn module_path(&self, module: usize) -> &str {
        self.spaces.modules.all.get(module).map_or("", |module| &module.path)
    }

    /// Removes the notes that are not `wanted`.
    pub fn keep_notes(&mut self, wanted: impl Fn(&str) -> bool) {
        self.summary.notes.retain(|note| wanted(note));
    }

    /// Looks up the source lines of the `most` hottest functions.
    pub fn find_lines(&mut self, most: usize) {
        for index in 0..self.functions.len().min(most) {
            let (module, start) = self.keys[index];
            let Some(module_of) = self.spaces.modules.all.get(module) else { continue };
            if self.functions[index].gap.is_some() {
                continue;
            }
            let lines = self.symbols.lines(module_of, ModuleAddress { module, address: start });
            if let Some(outermost) = lines.last() {
                let function = &mut self.summary.functions[index];
                function.file.clone_from(&outermost.file);
                function.line = outermost.line;
            }
        }
    }

    /// Weight of all samples that pass the filter: the sum of their periods if they have any.
    pub fn weight(&self) -> f64 {
        self.gathered.total.weight
    }

    /// Number of samples of equal weight that give shares the same error.
    pub fn effective(&self) -> f64 {
        self.gathered.total.effective()
    }
}

/// The system that a recording was made on.
pub fn origin(recording: &About) -> Origin {
    Origin {
        live: is_of_this_system(recording),
        this_boot: recording.boot.is_some() && recording.boot == pmu::machine::boot_id(),
        kernel: recording.kernel.clone(),
        host: recording.host.clone(),
        architecture: recording.architecture.clone(),
    }
}

/// Whether the running kernel and vdso are those of the recording.
fn is_of_this_system(recording: &About) -> bool {
    let same = |ours: &std::ffi::OsStr, theirs: &Option<String>| {
        theirs.as_deref().is_some_and(|t| ours.to_str() == Some(t))
    };
    nix::sys::utsname::uname().is_ok_and(|here| {
        same(here.nodename(), &recording.host) && same(here.release(), &recording.kernel)
    })
}
