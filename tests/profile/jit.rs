//! Code that was compiled just in time and written to a jitdump: made ones, damaged ones, and node's against
//! `perf inject`; and to a map file: a JVM's against `perf script`.

use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{program, run, tdtool};
use crate::support::tools::available;
use profile::address_space::AddressSpaces;
use profile::event::Event;
use profile::files::SearchPaths;
use profile::record::{Mapping, Record};
use profile::recording::About;
use profile::symbols::{Line, Symbols};
use proptest::prelude::*;

/// `e_machine` of x86-64 and the code of the made functions: `nop; ret`, and `xor eax, eax; ret`.
const X86_64: u32 = 62;
const NOP: &[u8] = &[0x90, 0xc3];
const ZERO: &[u8] = &[0x31, 0xc0, 0xc3];

fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|half| half.to_le_bytes()).collect()
}

/// An entry: kind, time, content (jitdump-specification.txt).
fn entry(kind: u32, time: u64, content: &[u8]) -> Vec<u8> {
    [&halves(&[kind, 16 + content.len() as u32])[..], &words(&[time]), content].concat()
}

fn header(flags: u64) -> Vec<u8> {
    let head = halves(&[0x4a69_5444, 1, 40, X86_64, 0, 77]);
    [head, words(&[0, flags])].concat()
}

fn load(time: u64, start: u64, number: u64, name: &str, code: &[u8]) -> Vec<u8> {
    let fields = words(&[start, start, code.len() as u64, number]);
    let content = [&halves(&[77, 77])[..], &fields, name.as_bytes(), &[0], code].concat();
    entry(0, time, &content)
}

/// Lines of the code at `start`: address, line, file; `\u{ff}` stands for the file before.
fn lines(start: u64, all: &[(u64, u32, &[u8])]) -> Vec<u8> {
    let rows = all.iter().flat_map(|(at, line, file)| {
        [&words(&[*at])[..], &halves(&[*line, 0]), file, &[0]].concat()
    });
    let rows: Vec<u8> = rows.collect();
    entry(2, 0, &[words(&[start, all.len() as u64]), rows].concat())
}

/// `first` at 0x1000 from time 10 on, `second` there from 20 on; `first` is at 0x3000 from 30 on.
fn made(flags: u64) -> Vec<u8> {
    let moved = words(&[0x1000, 0x1000, 0x3000, NOP.len() as u64, 1]);
    [
        header(flags),
        lines(0x1000, &[(0x1000, 7, b"a.js"), (0x1001, 8, b"\xff")]),
        load(10, 0x1000, 1, "JS:*first a.js:6:1", NOP),
        entry(4, 10, &[0; 24]),
        load(12, 0x2000, 2, "other", ZERO),
        entry(1, 15, &[halves(&[77, 77]), moved].concat()),
        load(20, 0x1000, 3, "second", ZERO),
        entry(3, 99, &[]),
    ]
    .concat()
}

/// Mappings of process 77: code without a file, and a jitdump, in this folder.
fn spaces(folder: &Folder, dump: &[u8], monotonic: bool) -> AddressSpaces {
    let path = folder.write("jit-77.dump", dump);
    let about = About { events: vec![Event { monotonic, ..Event::default() }], ..About::default() };
    let mut spaces = AddressSpaces::of(&about, search(folder));
    for (start, length, path) in [(0x1000, 0x4000, "//anon"), (0x9000, 0x1000, path.as_str())] {
        let path = path.to_owned();
        let mapping = Mapping { pid: 77, tid: 77, start, length, path, ..Mapping::default() };
        spaces.apply(&Record::Map { time: Some(1), mapping: mapping.into() });
    }
    spaces
}

fn search(folder: &Folder) -> SearchPaths {
    SearchPaths { roots: vec![folder.path().into()], ..SearchPaths::default() }
}

/// Function, line and code at an address of process 77 at a time.
fn at(
    spaces: &mut AddressSpaces,
    symbols: &mut Symbols,
    time: u64,
    ip: u64,
) -> Option<(String, Option<Line>, Vec<u8>)> {
    spaces.advance(Some(time));
    let place = spaces.resolve(77, ip, Some(true))?;
    let module = spaces.modules.all[place.module].clone();
    let function = symbols.function(&module, place)?;
    let code = symbols.code(&module, function.start, function.end).unwrap();
    Some((function.name, symbols.lines(&module, place).pop(), code))
}

#[test]
fn memory_holds_other_functions_at_other_times() {
    let folder = Folder::new();
    let mut spaces = spaces(&folder, &made(0), true);
    let mut symbols = Symbols::new(search(&folder));
    let mut at = |time, ip| at(&mut spaces, &mut symbols, time, ip);
    assert_eq!(at(5, 0x1000), None, "not compiled yet");
    let line = |line| Some(Line { file: Some("a.js".into()), line: Some(line), ..Line::default() });
    let first = |number| Some(("JS:*first a.js:6:1".to_owned(), line(number), NOP.to_vec()));
    assert_eq!(at(10, 0x1000), first(7));
    assert_eq!(at(13, 0x1001), first(8));
    assert_eq!(at(13, 0x1002), None, "after its end");
    assert_eq!(at(13, 0x2002), Some(("other".into(), None, ZERO.to_vec())));
    assert_eq!(at(20, 0x1000), Some(("second".into(), None, ZERO.to_vec())));
    assert_eq!(at(20, 0x3000), first(7), "moved");
}

/// Without `perf record -k mono`, or with times of a counter, the last code at an address holds.
#[test]
fn without_a_common_clock_the_last_function_holds() {
    for (flags, monotonic) in [(0, false), (1, true)] {
        let folder = Folder::new();
        let mut spaces = spaces(&folder, &made(flags), monotonic);
        let mut symbols = Symbols::new(search(&folder));
        assert_eq!(at(&mut spaces, &mut symbols, 0, 0x1000).unwrap().0, "second");
        assert_eq!(at(&mut spaces, &mut symbols, 0, 0x3000).unwrap().0, "JS:*first a.js:6:1");
    }
}

/// V8 adds 64 bytes to the address of each line.
#[test]
fn lines_that_are_shifted_for_perf_inject_are_moved_back() {
    let folder = Folder::new();
    let dump = [
        header(0),
        lines(0x1000, &[(0x1040, 7, b"a.js"), (0x1041, 8, b"\xff")]),
        load(10, 0x1000, 1, "f", NOP),
    ]
    .concat();
    let mut spaces = spaces(&folder, &dump, true);
    let mut symbols = Symbols::new(search(&folder));
    let mut line = |ip| at(&mut spaces, &mut symbols, 10, ip).unwrap().1.unwrap().line;
    assert_eq!((line(0x1000), line(0x1001)), (Some(7), Some(8)));
}

#[test]
fn what_is_no_jitdump_is_named() {
    let folder = Folder::new();
    for (dump, why) in [
        (&b"nonsense, and no jitdump at all, of 40 bytes"[..], "it is not a jitdump"),
        (b"DTiJ", "it is shorter than the header of a jitdump"),
        (b"JiTD\0\0\0\x01\0\0\0\x28", "it is of a big-endian machine"),
    ] {
        let spaces = spaces(&folder, dump, true);
        let notes = spaces.notes();
        assert!(notes.iter().any(|note| note.ends_with(why)), "{notes:?}");
    }
    // Cut off, as of a program that still runs: what is whole is known.
    let whole = made(0);
    let mut spaces = spaces(&folder, &whole[..whole.len() - 20], true);
    let mut symbols = Symbols::new(search(&folder));
    assert_eq!(at(&mut spaces, &mut symbols, 12, 0x2000).unwrap().0, "other");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_damage_to_a_jitdump_breaks_anything(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = Folder::new();
        let mut dump = made(0);
        for (at, byte) in changes {
            let at = at.index(dump.len());
            dump[at] = byte;
        }
        dump.truncate(cut.index(dump.len() * 3));
        let mut spaces = spaces(&folder, &dump, true);
        let mut symbols = Symbols::new(search(&folder));
        for ip in (0x0ff0..0x1010).chain(0x2000..0x2008).chain([0x3000, u64::MAX]) {
            spaces.advance(Some(ip));
            let Some(place) = spaces.resolve(77, ip, Some(true)) else { continue };
            let module = spaces.modules.all[place.module].clone();
            if let Some(function) = symbols.function(&module, place) {
                let _ = symbols.code(&module, function.start, function.end);
            }
            let _ = symbols.lines(&module, place);
        }
    }
}

/// JavaScript that takes a moment; V8 compiles `busy` several times.
const SCRIPT: &str = "function busy(n) { let sum = 0; for (let i = 0; i < n; i++) { \
    sum += Math.sqrt(i) * (i % 7); } return sum; }\n\
    let x = 0; const end = Date.now() + 600; while (Date.now() < end) { x += busy(100000); }\n\
    console.log(x);";

/// The same recording read here, and by perf after `perf inject`: as many samples in `busy`.
#[test]
fn functions_of_node_have_the_samples_that_perf_inject_gives_them() {
    if !available("node") || !available("perf") {
        return;
    }
    let folder = Folder::new();
    let script = folder.write("busy.js", SCRIPT);
    let data = folder.file("perf.data");
    let record = ["record", "-k", "mono", "-e", "cpu-clock:u", "-F", "2000", "-o", &data];
    let mut perf = program("perf");
    perf.current_dir(folder.path()).args(record).args(["node", "--perf-prof", &script]);
    let done = perf.run_limited().unwrap();
    need!(done.status.success(), "perf record of node is not possible here");
    let injected = folder.file("injected.data");
    // Its copies of the code go beside the jitdump.
    let mut inject = program("perf");
    inject.current_dir(folder.path()).args(["inject", "-j", "-i", &data, "-o", &injected]);
    need!(inject.run_limited().unwrap().status.success(), "this perf cannot inject");
    let printed = run(program("perf").args(["script", "-i", &injected, "-F", "ip,sym"])).stdout;
    let expected = printed.lines().filter(|line| line.contains("*busy ")).count();
    assert!(expected > 0, "{printed}");

    assert_eq!(samples(&data, "*busy "), expected);
}

/// Samples of the functions whose names have `part`.
fn samples(data: &str, part: &str) -> usize {
    let report =
        tdtool(["report", "--functions", "100000", "--format", "json", data]).succeeded().json();
    let rows = report["functions"].as_array().unwrap_or_else(|| panic!("{report}"));
    let own = rows.iter().filter(|row| row["name"].as_str().is_some_and(|n| n.contains(part)));
    own.map(|row| row["samples"].as_u64().unwrap() as usize).sum()
}

/// Java that takes a moment.
const JAVA: &str = "public class Hot { static long spin(long n) { long x = n; for (long i = 0; i < n; i++) \
    x = x * 6364136223846793005L + (i ^ x >>> 7); return x; } public static void main(String[] a) \
    { long s = 0; for (int i = 0; i < 300; i++) s += spin(1000000); System.out.println(s); } }";

/// The same recording read here and by perf, with the names of the JVM's map file.
#[test]
fn functions_of_a_jvm_have_the_samples_that_perf_gives_them() {
    if !available("javac") || !available("java") || !available("perf") {
        return;
    }
    let _busy = busy();
    let folder = Folder::new();
    let source = folder.write("Hot.java", JAVA);
    let compiled =
        program("javac").args(["-d", text(folder.path()), &source]).run_limited().unwrap();
    need!(compiled.status.success(), "javac cannot compile here");
    let data = folder.file("perf.data");
    let mut perf = program("perf");
    perf.args(["record", "-k", "mono", "-e", "cpu-clock:u", "-F", "999", "-o", &data, "java"]);
    perf.args(["-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions"]);
    perf.args(["-XX:+DumpPerfMapAtExit", "-cp", text(folder.path()), "Hot"]);
    let done = perf.run_limited().unwrap();
    need!(done.status.success(), "perf record of java is not possible here");
    let printed = run(program("perf").args(["script", "-i", &data, "-F", "pid,ip,sym"])).stdout;
    let own: Vec<&str> = printed.lines().filter(|line| line.contains("Hot.spin(")).collect();
    need!(!own.is_empty(), "this JVM writes no map file");
    let found = samples(&data, "Hot.spin(");
    let process = own[0].split_whitespace().next().unwrap_or_default();
    let _ = std::fs::remove_file(format!("/tmp/perf-{process}.map"));
    assert_eq!(found, own.len());
}
