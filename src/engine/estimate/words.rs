//! Sentences on the result: the bottleneck, why a piece takes its time (its bound in isolation, its loads and stores),
//! and the next step.

use super::division::divisions;
use super::evidence::Context;
use super::isolated::{Found, Unmeasured};
use super::pieces::{Kind, PieceOf};
use crate::commands::block;
use bench::Class;
use estimate::{Divisions, Dominant, Part, Parts, Share, Source, rivals};
use report::format::percent_bounds;
use std::path::Path;
use tma::shell::quoted;

/// Where the time of a bottleneck goes.
fn usual(part: Part) -> &'static str {
    match part {
        Part::Retiring => "is the work itself, at the core's full width",
        Part::BadSpeculation => "goes to mispredicted branches",
        Part::FetchBandwidth => "goes to decoding: the front end delivers too little",
        Part::FetchLatency => "goes to fetching code: the hot code exceeds L1",
        Part::CoreBound => "goes to ports or dependencies",
        Part::L1Bound => "goes to loads that wait for L1 or for earlier stores",
        Part::MemoryBound => "goes to loads and stores beyond L1",
        Part::ContestedAccesses => {
            "goes to lines that threads take from each other (contested accesses)"
        }
        Part::FalseSharing => "goes to lines whose bytes threads divide (false sharing)",
        Part::LockLatency => {
            "goes to locked instructions on lines that threads share (lock latency)"
        }
        Part::Unexplained => "is not explained",
        child => child.parent().map_or("", usual),
    }
}

/// Where the time of a bottleneck goes, as precisely as is known.
fn cause(part: Part, grounds: &Grounds) -> String {
    let usual = usual(part);
    let with = |known: &str| format!("{usual} ({known})");
    match (part, grounds.bound, &grounds.memory) {
        (Part::CoreBound, _, _) if grounds.is_division => "goes to division".to_owned(),
        (Part::CoreBound, Some(Class::Ports), _) => "goes to execution ports".to_owned(),
        (Part::CoreBound, Some(Class::Dependency), _) => {
            "goes to a loop-carried dependency".to_owned()
        }
        (Part::L1Bound, Some(Class::StoreForwarding), _) => {
            "goes to loads that wait for earlier stores (store forwarding)".to_owned()
        }
        (Part::L1Bound, Some(Class::L1Access), _) => {
            "goes to banks or lines of the L1 data cache".to_owned()
        }
        (Part::L1Bound, Some(Class::Dependency), _) => {
            "goes to a loop-carried dependency through loads that hit L1".to_owned()
        }
        (Part::CoreBound, _, _) => with("which of them is not known"),
        (Part::MemoryBound, _, Some(accesses)) => with(accesses),
        _ => usual.to_owned(),
    }
}

/// Advice for loads that take far longer than memory.
fn advice(part: Part, grounds: &Grounds) -> String {
    match (part, grounds.walks) {
        (Part::MemoryBound, Some((load, memory))) => format!(
            " Its costliest load takes {load:.0} ns where memory takes {memory:.0}, probably TLB misses: huge pages may help \
             (madvise; of malloc GLIBC_TUNABLES=glibc.malloc.hugetlb=1)."
        ),
        _ => String::new(),
    }
}

/// Unexplained share from which on nothing else is named.
const ALL: f64 = 0.995;

/// Share of Memory Bound from which on nothing else of it is named.
const NEARLY: f64 = 0.9;

const RETIRING: Dominant = Dominant::Part(Part::Retiring);

/// A share with its interval.
fn of_share(share: &Share) -> String {
    let (low, high) = percent_bounds(share.low, share.high);
    match share.source {
        Source::Bounded => format!("up to {high} %"),
        _ => format!("{:.0} % ({low}-{high} %)", 100.0 * share.value),
    }
}

/// The bottleneck in a sentence or two, with what is known of why.
pub(super) fn sentence(parts: &Parts, bottleneck: Option<Dominant>, grounds: &Grounds) -> String {
    let percent = |part: Part| of_share(parts.of(part));
    let retires = match bottleneck {
        Some(of) if of != RETIRING && parts.retiring.value > parts.share(of).value => {
            format!(" A larger share, {}, retires.", percent(Part::Retiring))
        }
        _ => String::new(),
    };
    if let Some(most @ (Dominant::Frontend | Dominant::Backend)) = bottleneck {
        let value = |part: Part| match parts.of(part) {
            share if share.has_value() => format!("{} {:.0} %", part.label(), 100.0 * share.value),
            share => format!("{} {}", part.label(), of_share(share)),
        };
        let all: Vec<String> = most.parts().into_iter().map(value).collect();
        let share = of_share(&parts.share(most));
        return format!(
            "{}: {share} of its time; not decided between {}.{retires}",
            most.label(),
            all.join(" and ")
        );
    }
    if let Some(part) = bottleneck.and_then(Dominant::part) {
        let memory = parts.memory_bound.value;
        let l1 = parts.get(Part::L1Bound).map_or(0.0, |share| share.value);
        let contended = parts.mostly_contended().map(|kind| (kind, parts.of(kind).value));
        let why = match part {
            Part::MemoryBound if contended.is_some() => match contended {
                Some((kind, share)) if share < NEARLY * memory => format!(
                    "goes to loads and stores ({:.0} % of its time to {})",
                    100.0 * share,
                    kind.label()
                ),
                kind => cause(kind.map_or(part, |(kind, _)| kind), grounds),
            },
            Part::MemoryBound if l1 >= NEARLY * memory => cause(Part::L1Bound, grounds),
            Part::MemoryBound if l1 >= (1.0 - NEARLY) * memory => {
                format!("goes to loads and stores ({:.0} % of its time in L1)", 100.0 * l1)
            }
            _ => cause(part, grounds),
        };
        let advice = advice(part, grounds);
        return format!("{}: {} of its time {why}.{retires}{advice}", part.label(), percent(part));
    }
    let unexplained = parts.of(Part::Unexplained);
    if let (true, Some(why)) = (unexplained.value >= ALL, &unexplained.reason) {
        return format!("No estimate: {why}.");
    }
    let named = |of: Dominant| format!("{} {}", of.label(), of_share(&parts.share(of)));
    let [first, second] = rivals(parts);
    let left = Some(Dominant::Part(Part::Unexplained));
    if first == left {
        let why = unexplained.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let other = second.map_or(String::new(), |node| format!("; it may be {}", named(node)));
        let share = percent(Part::Unexplained);
        return format!("Not explained: {share} of its time{why}{other}.");
    }
    if let (Some(first), true) = (first, second == left) {
        let share = percent(Part::Unexplained);
        return format!("Undecided: {}; {share} is unexplained.", named(first));
    }
    let two: Vec<String> = [first, second].into_iter().flatten().map(named).collect();
    format!("Undecided between {}.", two.join(" and "))
}

/// Share of what bounds code from which on divisions do.
const MOST: f64 = 0.5;

/// Why a piece takes its time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Grounds {
    /// Its bound in isolation, as in `tdtool.block/2`.
    pub bound: Option<Class>,
    /// Whether its divisions do.
    pub is_division: bool,
    /// Its loads and stores that can cost most, in words.
    pub memory: Option<String>,
    /// Nanoseconds of its costliest load, and of memory, where the former are far more.
    pub walks: Option<(f64, f64)>,
}

impl Grounds {
    /// From a piece and its measurement in isolation.
    pub fn of(at: PieceOf, found: &Result<Found, Unmeasured>, context: &Context) -> Self {
        if at.piece.kind == Kind::Rest {
            return Self::default();
        }
        let bound = found.as_ref().ok().and_then(|found| found.bound);
        let own = divisions(at, found, &context.tables());
        let is_division =
            matches!(own, Divisions::Take(share) | Divisions::AtLeast(share) if share > MOST);
        let (memory, walks) = context.named(at);
        Self { bound, is_division, memory, walks }
    }
}

/// Where code is, and what runs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub module: &'a str,
    /// Name of its function.
    pub name: &'a str,
    /// First address of its function.
    pub function: u64,
    /// Its own first address.
    pub start: u64,
    /// Whether it is a loop.
    pub is_loop: bool,
    pub runs: Runs<'a>,
}

/// The process that runs the code.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runs<'a> {
    /// A command; empty where it is not known.
    Command(&'a [String]),
    /// A live process, which is counted while it runs.
    Process(i32),
}

/// How long a live process is counted.
const WINDOW: &str = "--seconds 2";

/// A command that shows more; empty where none does.
pub(super) fn next(parts: &Parts, place: &Place) -> String {
    if place.module.is_empty() || !Path::new(place.module).is_file() {
        return String::new();
    }
    let (of, command) = match place.runs {
        Runs::Command([]) => return String::new(),
        Runs::Command(command) => (format!("-- {}", quoted(command)), command),
        Runs::Process(pid) => (format!("-p {pid} {WINDOW}"), [].as_slice()),
    };
    let count = |options: &[&str]| {
        let Place { module, name, function, .. } = place;
        // Others are patterns.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let function = match !name.is_empty() && name.chars().all(is_plain) {
            true => (*name).to_owned(),
            false => format!("{function:#x}"),
        };
        let options = [options, &["--module", *module, "--functions", function.as_str()]].concat();
        format!("tdtool count {} {of}", quoted(&options))
    };
    let start = place.start.into();
    let block = |options: &[&str]| block(place.module, start, place.is_loop, options, command);
    match parts.leading() {
        Part::BadSpeculation => count(&["--branches"]),
        Part::MemoryBound if parts.is_mostly_l1() => block(&[]),
        Part::MemoryBound => count(&["--loads"]),
        Part::Unexplained => count(&["--loads", "--branches"]),
        Part::FetchLatency => format!("tdtool count --hot {of}"),
        Part::FetchBandwidth => block(&["--verbose"]),
        Part::Retiring => block(&["--ports"]),
        _ => block(&[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Interval, Reason, Share, Source};

    #[test]
    fn what_is_not_divided_has_its_reason() {
        let parts = Parts::unknown(Reason::given("interrupted"));
        assert_eq!(sentence(&parts, None, &Grounds::default()), "No estimate: interrupted.");
    }

    #[test]
    fn loads_far_above_the_latency_of_memory_get_advice() {
        let mut parts = Parts::default();
        parts.set(Part::MemoryBound, Share::known(Interval::exact(1.0), Source::Inferred));
        let grounds = Grounds {
            memory: Some("`mov rax,[rax]` at 0x20".to_owned()),
            walks: Some((213.9, 52.6)),
            ..Grounds::default()
        };
        let said = sentence(&parts, Some(Dominant::Part(Part::MemoryBound)), &grounds);
        assert!(said.contains(
            "(`mov rax,[rax]` at 0x20). Its costliest load takes 214 ns where memory takes 53"
        ));
        assert!(said.contains("huge pages"), "{said}");
    }

    #[test]
    fn a_sentence_names_the_part_with_its_interval() {
        let mut parts = Parts::default();
        let share =
            |value, low, high| Share::known(Interval::new(value, low, high), Source::Inferred);
        parts.set(Part::CoreBound, share(0.8, 0.7, 0.85));
        parts.set(Part::Unexplained, share(0.2, 0.1, 0.3));
        let core = |bound: Class, is_division| {
            let grounds = Grounds { bound: Some(bound), is_division, ..Grounds::default() };
            sentence(&parts, Some(Dominant::Part(Part::CoreBound)), &grounds)
        };
        for (bound, is_division, why) in [
            (Class::Dependency, false, "a loop-carried dependency"),
            (Class::Dependency, true, "division"),
            (Class::Ports, true, "division"),
            (Class::Undecided, false, "ports or dependencies (which of them is not known)"),
        ] {
            let said = format!("Core Bound: 80 % (70-85 %) of its time goes to {why}.");
            assert_eq!(core(bound, is_division), said);
        }
        let nothing = &Grounds::default();
        assert_eq!(
            sentence(&parts, Some(Dominant::Backend), nothing),
            "Backend Bound: 80 % (70-85 %) of its time; not decided between Core Bound 80 % and Memory Bound 0 %."
        );
        assert_eq!(
            sentence(&parts, None, nothing),
            "Undecided: Core Bound 80 % (70-85 %); 20 % (10-30 %) is unexplained."
        );
        // A part that may be as large is named, also where its own value is small.
        parts.set(Part::Retiring, share(0.1, 0.05, 0.1));
        parts.set(Part::MemoryBound, share(0.0, 0.0, 0.9));
        let said = sentence(&parts, None, nothing);
        assert!(said.starts_with("Undecided: Backend Bound 80 % (70-100 %); 20 %"), "{said}");
        // An unknown share has no value.
        parts.set(Part::BadSpeculation, Share::unknown(0.95, Reason::given("no cost")));
        let said = sentence(&parts, None, nothing);
        assert!(said.ends_with("and Bad Speculation up to 95 %."), "{said}");
        // Unexplained time is named once, with its cause.
        parts.set(Part::CoreBound, Share::default());
        let left = share(0.8, 0.1, 0.9).because(Some(Reason::given("no cost of a misprediction")));
        parts.set(Part::Unexplained, left);
        assert_eq!(
            sentence(&parts, None, nothing),
            "Not explained: 80 % (10-90 %) of its time: no cost of a misprediction; it may be Bad Speculation up to 95 %."
        );
    }

    #[test]
    fn each_bottleneck_has_the_command_that_shows_more() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let command = [own.clone(), "a b".to_owned()];
        let of_runs = |part, start, runs| {
            let mut parts = Parts::default();
            parts.set(part, Share::known(Interval::exact(1.0), Source::Counted));
            let place =
                Place { module: &own, name: "a<b>", function: 0x10, start, is_loop: true, runs };
            next(&parts, &place)
        };
        let of = |part, start| of_runs(part, start, Runs::Command(&command));
        assert_eq!(of(Part::CoreBound, 0x20), format!("tdtool block {own}:@0x20 -- 'a b'"));
        assert_eq!(
            of(Part::MemoryBound, 0x20),
            format!("tdtool count --loads --module {own} --functions 0x10 -- {own} 'a b'")
        );
        assert_eq!(of(Part::Retiring, 0x20), format!("tdtool block {own}:@0x20 --ports -- 'a b'"));
        let process = |part| of_runs(part, 0x20, Runs::Process(7));
        assert_eq!(
            process(Part::BadSpeculation),
            format!("tdtool count --branches --module {own} --functions 0x10 -p 7 --seconds 2")
        );
        assert_eq!(process(Part::CoreBound), format!("tdtool block {own}:0x20"));
        assert_eq!(of_runs(Part::MemoryBound, 0x20, Runs::Command(&[])), "");
    }
}
