//! Dependencies through memory against the ground truth of real runs (tests/truth/README.md): the
//! loops of tests/truth/deps were traced before the finder was written. The same score as
//! tests/figures/deps_truth.py, with the targets that docs/results/accuracy.md states.

use crate::support::csv::fields;
use crate::support::files::root;
use crate::support::processor::described;
use isa::code::parse_hex;
use isa::deps::memory::{InitialValues, MemoryDependency, Settings};
use isa::deps::{Analyser, Code};
use isa::latency::Latencies;
use std::collections::{BTreeSet, HashMap};
use std::fs;

/// Entries of Golden Cove's reorder buffer, for which `triples` were counted.
const WINDOW: u32 = 512;

/// Writer and reader by offset, iterations between.
type Triple = (u64, u64, u32);

/// A loop of a CSV file; the last columns hold no commas but those within quotes.
struct Loop {
    name: String,
    class: String,
    hex: String,
    truth: BTreeSet<Triple>,
    registers: String,
    memory: String,
}

fn loops(file: &str) -> Vec<Loop> {
    let path = root().join(format!("tests/truth/deps/{file}.csv"));
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header = fields(lines.next().unwrap());
    let read = |line: &str| {
        let of: HashMap<_, _> = header.iter().cloned().zip(fields(line)).collect();
        Loop {
            name: of["name"].clone(),
            class: of["class"].clone(),
            hex: of["hex"].clone(),
            truth: truth(&of["triples"]),
            registers: of["registers"].clone(),
            memory: of["memory"].clone(),
        }
    };
    lines.map(read).collect()
}

/// `writer>reader@Δ:share`, those that hold in at least half of the iterations.
fn truth(text: &str) -> BTreeSet<Triple> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut all = BTreeSet::new();
    for one in text.split([' ', ';']).filter(|one| !one.is_empty()) {
        let (writer, rest) = one.split_once('>').unwrap();
        let (reader, rest) = rest.split_once('@').unwrap();
        let (delta, share) = rest.split_once(':').unwrap();
        if share.parse::<f64>().unwrap() >= 0.5 {
            all.insert((hex(writer), hex(reader), delta.parse().unwrap()));
        }
    }
    all
}

/// What `tdtool deps --registers FILE` would be given.
fn real(one: &Loop) -> InitialValues {
    let mut text = String::new();
    for register in one.registers.split_whitespace() {
        let (name, value) = register.split_once('=').unwrap();
        text += &format!("{name}=0x{value}\n");
    }
    for words in one.memory.split_whitespace() {
        let (start, values) = words.split_once(':').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        for (number, value) in values.split(',').enumerate() {
            text += &format!("[{:#x}]=0x{value}\n", start + 8 * number as u64);
        }
    }
    engine::initial_values::parse(&text).unwrap()
}

#[derive(Default)]
struct Score {
    truth: usize,
    found: usize,
    right: usize,
}

impl Score {
    fn add(&mut self, analyser: &mut Analyser, one: &Loop, given: Vec<InitialValues>) {
        let bytes = parse_hex(&one.hex).unwrap();
        let code = Code::of_bytes(&bytes, described(Some("emr")).facts()).unwrap();
        let settings = Settings { window: WINDOW, runs: 3, initial_values: given };
        let carried = analyser.analyse(&code, &settings).memory.dependencies;
        let triple =
            |c: &MemoryDependency| (code.address(c.writer), code.address(c.reader), c.delta);
        let found: BTreeSet<Triple> = carried.iter().map(triple).collect();
        self.truth += one.truth.len();
        self.found += found.len();
        self.right += one.truth.intersection(&found).count();
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.found as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.truth as f64
    }
}

/// Unseeded and seeded, of the loops that are wanted.
fn scores(files: &[&str], wanted: impl Fn(&Loop) -> bool) -> (Score, Score) {
    let mut analyser = Analyser::new(Latencies::new(&described(Some("emr"))).unwrap());
    let (mut unseeded, mut seeded) = (Score::default(), Score::default());
    for one in files.iter().flat_map(|file| loops(file)).filter(wanted) {
        unseeded.add(&mut analyser, &one, Vec::new());
        seeded.add(&mut analyser, &one, vec![real(&one)]);
    }
    (unseeded, seeded)
}

const KERNELS: [&str; 8] =
    ["gcc-O0", "gcc-O1", "gcc-O2", "gcc-O3", "clang-O0", "clang-O1", "clang-O2", "clang-O3"];

#[test]
fn of_compiled_kernels_nearly_all_is_found_and_nothing_that_is_not_there() {
    let (unseeded, seeded) = scores(&KERNELS, |one| one.class == "plain");
    assert!(unseeded.truth > 1000, "{}", unseeded.truth);
    assert!(unseeded.precision() >= 0.98, "{}", unseeded.precision());
    assert!(unseeded.recall() >= 0.80, "{}", unseeded.recall());
    assert!(seeded.precision() >= 0.98, "{}", seeded.precision());
    assert!(seeded.recall() >= 0.98, "{}", seeded.recall());
}

/// Whether two iterations meet depends on the data; real values say it.
#[test]
fn where_data_decide_real_values_find_them() {
    let (unseeded, seeded) = scores(&KERNELS, |one| one.class == "data-dependent");
    assert!(unseeded.precision() >= 0.98, "{}", unseeded.precision());
    assert!(seeded.precision() >= 0.98, "{}", seeded.precision());
    assert!(seeded.recall() >= 0.98, "{}", seeded.recall());
}

/// Two triples of grep are an artefact of the trace: `bt r,r`, which valgrind carries out through
/// memory though the instruction has none.
#[test]
fn of_real_programs_too() {
    let (unseeded, seeded) =
        scores(&["programs"], |one| !matches!(one.name.as_str(), "grep-2" | "grep-3"));
    for score in [unseeded, seeded] {
        assert!(score.precision() >= 0.97, "{}", score.precision());
        assert!(score.recall() >= 0.98, "{}", score.recall());
    }
}

/// Native timings of compiled loops on an Emerald Rapids (tests/truth/README.md): no lower bound may
/// exceed them by more than what the timing varied, 5 %.
#[test]
fn no_lower_bound_exceeds_the_native_loop() {
    let rows = |file: &str| -> Vec<HashMap<String, String>> {
        let text =
            fs::read_to_string(root().join(format!("tests/truth/bounds/{file}.csv"))).unwrap();
        let mut lines = text.lines();
        let header = fields(lines.next().unwrap());
        lines.map(|line| header.iter().cloned().zip(fields(line)).collect()).collect()
    };
    let core = described(Some("emr"));
    let mut analyser = Analyser::new(Latencies::new(&core).unwrap());
    let mut judged = 0;
    for (loops, native) in [("kernels", "native"), ("fresh", "fresh_native")] {
        let native: HashMap<String, f64> = rows(native)
            .into_iter()
            .map(|r| (r["name"].clone(), r["cycles"].parse().unwrap()))
            .collect();
        for row in rows(loops) {
            let Some(cycles) = native.get(&row["name"]) else { continue };
            let code = Code::of_bytes(&parse_hex(&row["hex"]).unwrap(), core.facts()).unwrap();
            let settings = Settings { window: WINDOW, runs: 3, initial_values: Vec::new() };
            let found = analyser.analyse(&code, &settings).recurrences;
            let bound = found.iter().map(|r| r.low).fold(0.0, f64::max);
            assert!(bound <= 1.05 * cycles + 0.05, "{}: {bound} for {cycles}", row["name"]);
            judged += 1;
        }
    }
    assert!(judged >= 50, "{judged}");
}
