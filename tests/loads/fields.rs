//! Members of structures by DWARF: those that the source of each function names.

use super::recording::{LOAD, LOCAL_HITM, PROCESS, STORE, Sampled, file, mapping};
use super::{list, read};
use crate::support::files::{Folder, shared, text};
use crate::support::random::Random;
use crate::support::tools::{build, gcc, tool};
use profile::files::SearchPaths;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const C: &str = r"
#include <stdint.h>
struct entry { struct entry *next; uint64_t key; struct { uint32_t hits, misses; } stats; double payload[3]; };
struct table { uint64_t size; struct bucket { struct entry *head; uint32_t count, pad; } buckets[64]; };
struct table table;
struct { long probes, found; } totals;
typedef struct { short a; union { int i; float f; } u; long b; } pair;
#define N __attribute__((noinline, noclone))
N uint64_t key(struct entry *e) { return e->key; }
N uint32_t third(struct entry *e) { return e->next->next->stats.misses; }
N double second(struct entry *e) { return e->payload[1]; }
N double any(struct entry *e, long i) { return e->payload[i]; }
N uint64_t each(struct entry *all, long i) { return all[i].key; }
N uint32_t count(struct table *t, long i) { return t->buckets[i].count; }
N uint64_t first(long i) { return table.buckets[i].head->key; }
N long found(void) { return totals.found; }
N long number(long *p) { return *p; }
N long element(long *p, long i) { return p[i]; }
N int either(pair *p) { return p->u.i; }
N long old(pair *p) { return p[-1].b; }
int main(int n, char **v) {
    struct entry e = { &e, n }; pair p[2] = {{1}}; long l[2] = {n, n};
    table.buckets[n].head = &e;
    return key(&e) + third(&e) + second(&e) + any(&e, n) + each(&e, n - 1) + count(&table, n) + first(n) + found()
         + number(l) + element(l, n) + either(p) + old(p + 1);
}
";

/// By hand from the source: what the loads of each function read, and the offsets of `struct entry`.
const MEMBERS: [(&str, &[&str]); 12] = [
    ("key", &["e->key"]),
    ("third", &["e->next", "e->next->next", "e->next->next->stats.misses"]),
    ("second", &["e->payload[1]"]),
    ("any", &["e->payload[]"]),
    ("each", &["all[].key"]),
    ("count", &["t->buckets[].count"]),
    ("first", &["table.buckets[].head", "table.buckets[].head->key"]),
    ("found", &["totals.found"]),
    ("number", &["*p"]),
    ("element", &["p[]"]),
    // Which member of the union is read is not known.
    ("either", &["p->u"]),
    ("old", &["p[-1].b"]),
];

/// Addresses of a function's instructions by objdump, those that load (its brackets mark memory, `lea` computes).
fn loads(program: &Path, function: &str) -> Vec<u64> {
    let only = format!("--disassemble={function}");
    let arguments = ["-d", "--no-show-raw-insn", "-M", "intel", &only, text(program)];
    let listing = tool("objdump", &arguments).unwrap();
    let code = listing.lines().filter_map(|line| line.split_once(":\t"));
    let code = code.filter(|(_, code)| code.contains('[') && !code.starts_with("lea"));
    let code = code.filter(|(_, code)| !code.starts_with("nop") && !code.starts_with("cs nop"));
    code.map(|(address, _)| u64::from_str_radix(address.trim(), 16).unwrap()).collect()
}

/// A recording with a sample of each address.
fn recorded(program: &Path, addresses: &[u64], folder: &Folder) -> Value {
    let mut records = mapping(0x40_0000, 0x10_0000, 0, text(program));
    for (time, ip) in addresses.iter().enumerate() {
        let (thread, source, address) = (PROCESS, LOAD, 0x7f00_0000_0000);
        let one = Sampled { ip: *ip, thread, cpu: 0, address, latency: 50, source };
        records.extend(one.record(10 + time as u64));
    }
    let path = folder.path().join("perf.data");
    std::fs::write(&path, file(&records)).unwrap();
    read(&[text(&path)])
}

fn members(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for load in list(document, "loads") {
        let function = load["function"].as_str().unwrap_or("?").to_owned();
        let field = load["field"].as_str().unwrap_or("?").to_owned();
        found.entry(function).or_default().insert(field);
    }
    found
}

#[test]
fn operands_have_the_names_of_the_source() {
    let kinds = [["-O1", "-g"], ["-O2", "-g"], ["-O2", "-gdwarf-4"], ["-O2", "-gz"]];
    for [level, kind] in kinds {
        let folder = Folder::new();
        let arguments = [level, "-g", kind, "-no-pie", "-fno-pie", "-fcf-protection=none"];
        let Some(program) = gcc(folder.path(), C, &arguments, "a") else { return };
        let names = MEMBERS.map(|(function, _)| function);
        let addresses: Vec<u64> =
            names.iter().flat_map(|function| loads(&program, function)).collect();
        let document = recorded(&program, &addresses, &folder);
        let found = members(&document);
        for (function, expected) in MEMBERS {
            let expected: BTreeSet<String> = expected.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(found[function], expected, "{function} {level} {kind}");
        }
        // Offsets of struct entry by the System V ABI: 0, 8, 16, 24.
        let entry = |row: &&Value| row["type"] == "struct entry";
        let offsets: BTreeMap<&str, u64> = list(&document, "fields")
            .iter()
            .filter(entry)
            .map(|row| (row["member"].as_str().unwrap(), row["offset"].as_u64().unwrap()))
            .collect();
        assert_eq!((offsets["next"], offsets["key"], offsets["payload[1]"]), (0, 8, 32));
        assert_eq!(offsets["stats.misses"], 20);
    }
}

/// Without optimisation all variables are in the frame: gcc describes them by the frame base.
#[test]
fn variables_of_a_frame_are_found() {
    let folder = Folder::new();
    let arguments = ["-O0", "-g", "-no-pie", "-fno-pie", "-fcf-protection=none"];
    let Some(program) = gcc(folder.path(), C, &arguments, "a") else { return };
    let found = members(&recorded(&program, &loads(&program, "third"), &folder));
    let expected =
        ["e", "e->next", "e->next->next", "e->next->next->stats.misses"].map(str::to_owned);
    assert_eq!(found["third"], BTreeSet::from(expected));
}

/// References, base classes, member functions and mangled names; no name stays mangled.
#[test]
fn members_of_classes() {
    const CPP: &str = r"
namespace space {
struct base { long id; };
struct node : base { node *next; long value; long get(int n) const; };
__attribute__((noinline)) long node::get(int n) const { return n ? next->value : id; }
__attribute__((noinline)) long of(const node &one) { return one.value; }
static node kept[4];
__attribute__((noinline)) long at(int n) { return kept[n].next->id; }
}
int main(int n, char **) {
    space::kept[n].next = space::kept;
    return space::kept[n].get(n) + space::of(space::kept[0]) + space::at(n);
}";
    let folder = Folder::new();
    let arguments = ["-O1", "-g", "-no-pie", "-fno-pie", "-fcf-protection=none"];
    let Some(program) = build(folder.path(), "g++", CPP, &arguments, "a") else { return };
    let names = ["_ZNK5space4node3getEi", "_ZN5space2ofERKNS_4nodeE", "_ZN5space2atEi"];
    let addresses: Vec<u64> = names.iter().flat_map(|name| loads(&program, name)).collect();
    let document = recorded(&program, &addresses, &folder);
    assert!(!document.to_string().contains("_ZN"), "{document}");
    let found = members(&document);
    let set = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(found["space::node::get"], set(&["this->id", "this->next", "this->next->value"]));
    assert_eq!(found["space::of"], set(&["one.value"]));
    assert_eq!(found["space::at"], set(&["space::kept[].next", "space::kept[].next->id"]));
}

/// Addresses tell members of static data also where the operand does not; lines show them.
#[test]
fn members_of_static_data_by_address() {
    let folder = Folder::new();
    let arguments = ["-O1", "-g", "-no-pie", "-fno-pie"];
    let Some(program) = gcc(folder.path(), C, &arguments, "a") else { return };
    let symbols = tool("nm", &[text(&program)]).unwrap();
    let address = |name: &str| {
        let line = symbols.lines().find(|line| line.ends_with(name)).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    };
    let (ip, totals) = (loads(&program, "number")[0], address(" totals"));
    let mut records = mapping(0x40_0000, 0x10_0000, 0, text(&program));
    records.extend(mapping(0x5000_0000, 0x1000, u64::MAX, "[heap]"));
    let one = |thread: u64, address, source| Sampled {
        ip,
        thread: PROCESS + thread,
        cpu: thread,
        address,
        latency: 90,
        source,
    };
    for (time, sample) in [
        one(0, totals, STORE),
        one(1, totals + 8, LOCAL_HITM),
        one(0, address(" table") + 8 + 5 * 16 + 8, LOAD),
        one(0, 0x5000_0010, LOAD),
    ]
    .iter()
    .enumerate()
    {
        records.extend(sample.record(10 + time as u64));
    }
    let path = folder.path().join("perf.data");
    std::fs::write(&path, file(&records)).unwrap();
    let document = read(&[text(&path)]);
    let load = &list(&document, "loads")[0];
    let names: BTreeSet<&str> =
        list(load, "variables").iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["heap", "table.buckets[].count", "totals.found"]));
    let line = &list(&document, "lines")[0];
    let fields: Vec<_> = list(line, "accesses").iter().map(|one| &one["field"]).collect();
    assert_eq!(fields, ["totals.probes", "totals.found"]);
}

/// kernels.c: `s += p->value[2]` of `typedef struct node { struct node *next; uint64_t value[7]; } node`.
#[test]
fn a_member_of_a_program_that_is_known() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("levels.perf.data");
    let document = read(&[text(&recording), "--symfs", text(folder.parent().unwrap())]);
    let load = super::row(&document, "loads", "address", "0x401a80");
    assert_eq!((&load["field"], &load["type"]), (&"p->value[2]".into(), &"struct node".into()));
    assert_eq!((&load["member"], &load["offset"]), (&"value[2]".into(), &24.into()));
}

/// DWARF overwritten at random: names or none, never a panic.
#[test]
fn damaged_dwarf_does_no_harm() {
    let folder = Folder::new();
    let arguments = ["-O1", "-g", "-no-pie", "-fno-pie", "-Wl,--build-id=none"];
    let Some(program) = gcc(folder.path(), C, &arguments, "a") else { return };
    let names = MEMBERS.map(|(function, _)| function);
    let addresses: Vec<u64> = names.iter().flat_map(|name| loads(&program, name)).collect();
    recorded(&program, &addresses, &folder);
    let whole = std::fs::read(&program).unwrap();
    let (from, to) = sections(&program);
    let mut random = Random(15);
    for _ in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(20) {
            let at = from + random.index(to - from);
            bytes[at] = random.below(256) as u8;
        }
        std::fs::write(&program, &bytes).unwrap();
        let recording = folder.path().join("perf.data");
        let found = engine::recorded_loads::loads(&[recording], &SearchPaths::default());
        assert_eq!(found.unwrap().events[0].loads, addresses.len() as u64);
    }
}

/// Offsets in the file from the first to the end of the last section of DWARF, by readelf.
fn sections(program: &Path) -> (usize, usize) {
    let listing = tool("readelf", &["-SW", text(program)]).unwrap();
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let debug = listing.lines().filter_map(|line| line.split_once(" .debug_"));
    let places: Vec<(usize, usize)> = debug
        .map(|(_, rest)| {
            // Name, type, address, offset, size.
            let cells: Vec<&str> = rest.split_whitespace().collect();
            (hex(cells[3]), hex(cells[3]) + hex(cells[4]))
        })
        .collect();
    let first = places.iter().map(|(start, _)| *start).min().unwrap();
    (first, places.iter().map(|(_, end)| *end).max().unwrap())
}
