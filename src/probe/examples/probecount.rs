#![allow(clippy::print_stdout)]
use object::{Object as _, ObjectSymbol as _};
use probe::count::{Wanted, count};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let split = args.iter().position(|a| a == "--").unwrap();
    let path = std::path::PathBuf::from(&args[0]).canonicalize().unwrap();
    let data = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mut wanted = Vec::new();
    let names = &args[1..split];
    let mut seen = std::collections::BTreeSet::new();
    for s in file.symbols().chain(file.dynamic_symbols()) {
        let n = s.name().unwrap_or("");
        if s.kind() == object::SymbolKind::Text && s.size() > 0 && s.is_definition() && seen.insert(s.address())
            && (names[0] == "all" || names.iter().any(|w| w == n)) {
            wanted.push((n.to_owned(), Wanted { path: path.clone(), range: s.address()..s.address() + s.size() }));
        }
    }
    for n in names.iter().filter(|n| n.starts_with("0x")) {
        let (a, b) = n.split_once("..").unwrap();
        let h = |t: &str| u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap();
        wanted.push((n.clone(), Wanted { path: path.clone(), range: h(a)..h(b) }));
    }
    let command = pmu::Command { argv: args[split + 1..].iter().map(Into::into).collect(), stdout_to_stderr: false };
    let signals = pmu::perf::Signals::catch().unwrap();
    let only: Vec<Wanted> = wanted.iter().map(|w| w.1.clone()).collect();
    let result = count(&command, &only, &signals).unwrap();
    let quiet = std::env::var("QUIET").is_ok();
    let mut kinds = std::collections::BTreeMap::new();
    for ((name, w), f) in wanted.iter().zip(&result.functions) {
        match f {
            Err(why) => eprintln!("F {name} {:#x} refused: {why}", w.range.start),
            Ok(f) => {
                for c in &f.contradictions { eprintln!("C {name} {c}"); }
                for b in &f.blocks {
                    let how = match &b.count { Err(why) => format!("refused: {why}"), Ok(_) => b.kind.map_or("derived".into(), |k| format!("{k:?}")) };
                    *kinds.entry(how.clone()).or_insert(0) += 1;
                    if !quiet { match &b.count { Ok(n) => eprintln!("B {:#x} {:#x} {n} {how} {name}", b.start, b.end), Err(_) => eprintln!("B {:#x} {:#x} - {how} {name}", b.start, b.end) } }
                }
            }
        }
    }
    eprintln!("wall {:?} exit {:?} probes {} {kinds:?}", result.wall, result.exit, result.probes);
}
