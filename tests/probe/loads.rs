//! Loads: recorded addresses and values are the program's own, timing leaves the program as it was, and
//! `tdtool count --loads` names the patterns of loops that are written for them.

use super::counts::{function, probed};
use super::name;
use crate::support::files::Folder;
use crate::support::quiet::{alone, busy};
use crate::support::run::tdtool;
use crate::support::tools::gcc;
use crate::support::trial::{assert_holds, claim};
use probe::bursts::{Pace, Recorded, record};
use probe::count::Wanted;
use probe::plan::{Request, What, loads};
use serde_json::Value;
use std::path::Path;

/// Loads with all kinds of operands, whose address registers are those that a probe uses; between a
/// comparison and the jump on its flags: of 1, 2, 4 and 8 bytes, relative to the stack and to the
/// instruction, and one over its own address. Addresses and values go to the file of argument 1.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
struct one { uint64_t address, value; };
static struct one log[7][5000];
uint64_t global = 0x1122334455667788;
static uint8_t data[8192];
__attribute__((noipa)) uint64_t walk(long n) {
    uint64_t all = 0;
    for (long i = 0; i < n; i++) {
        uint64_t k = (uint64_t)i * 40503 % 1000, v, w, x, y, z, p = (uint64_t)&data[k * 8], q = p;
        __asm__ volatile("movzbl (%%rax,%%rdx,8), %k0\n" : "=r"(v) : "a"(data), "d"(k));
        __asm__ volatile("movzwl 3(%%rcx,%2,2), %k0\n" : "=r"(w) : "c"(data), "r"(k));
        __asm__ volatile("cmp %2, %2\nmov -4(%1), %k0\n jne 1f\n jmp 2f\n1: ud2\n2:"
                         : "=&r"(x) : "r"(p + 4), "r"(n) : "cc");
        __asm__ volatile("push %1\nmov (%%rsp), %0\n lea 8(%%rsp), %%rsp" : "=&r"(y) : "r"(k));
        __asm__ volatile("mov global(%%rip), %0" : "=r"(z));
        __asm__ volatile("mov (%%rax), %%rax" : "+a"(q));
        log[0][i] = (struct one){(uint64_t)&data[k * 8], v};
        log[1][i] = (struct one){(uint64_t)&data[k * 2 + 3], w};
        log[2][i] = (struct one){p, x};
        log[3][i] = (struct one){0, y};
        log[4][i] = (struct one){(uint64_t)&global, z};
        log[5][i] = (struct one){p, q};
        all = all * 31 + v + w + x + y + z + q;
    }
    return all;
}
int main(int count, char **arguments) {
    for (int i = 0; i < sizeof data; i++) data[i] = i * 37 + (i >> 8);
    uint64_t all = walk(5000);
    FILE *out = fopen(arguments[1], "w");
    fwrite(log, 1, sizeof log, out);
    fwrite(&all, 1, sizeof all, out);
    return fclose(out);
}
"#;

fn recorded(program: &Path, log: &str, whats: &dyn Fn(u32) -> Vec<What>) -> Option<Recorded> {
    let wanted: Wanted = function(program, "walk");
    let wishes = |_: usize, function: &probe::facts::Function| {
        let all = loads(function).0.into_iter().filter(probe::plan::Load::has_value);
        let wishes = |load: probe::plan::Load| {
            whats(load.width).into_iter().map(move |what| Request { at: load.at, what })
        };
        all.flat_map(wishes).collect()
    };
    let pace = Pace { length: 1 << 18, bursts: 4, pause: 0.0 };
    let one = std::slice::from_ref(&wanted);
    let command = [name(program), log];
    probed(&command, |command, signals| record(command, one, &wishes, pace, signals))
}

/// The records of one wish.
fn values(all: &Recorded, site: usize) -> Vec<u64> {
    let records = all.bursts.iter().flat_map(|burst| &burst.records);
    records.filter(|r| r.site as usize == site).map(|r| r.value).collect()
}

#[test]
fn addresses_and_values_are_those_of_the_program() {
    let _busy = busy();
    for options in [&["-O2", "-mno-red-zone"][..], &["-O1", "-mno-red-zone", "-no-pie"]] {
        let folder = Folder::new();
        let Some(program) = gcc(folder.path(), PROGRAM, options, "program") else { return };
        let log = folder.file("log");
        let both = |width| vec![What::Address, What::Value { width }];
        let Some(all) = recorded(&program, &log, &both) else { return };
        assert_eq!(all.exit, Some(pmu::Exit::Status(0)));
        let written = std::fs::read(&log).unwrap();
        let words: Vec<u64> =
            written.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let found: Vec<(Vec<u64>, Vec<u64>)> = (0..all.observed.len())
            .step_by(2)
            .map(|site| (values(&all, site), values(&all, site + 1)))
            .collect();
        for number in 0..6 {
            let own = &words[number * 10_000..][..10_000];
            let (expected, stored): (Vec<u64>, Vec<u64>) =
                own.as_chunks::<2>().0.iter().map(|[address, value]| (*address, *value)).unzip();
            // The program does not know the address of what it pushes.
            let is_same = |(addresses, loaded): &(Vec<u64>, Vec<u64>)| {
                *loaded == stored && (number == 3 || *addresses == expected)
            };
            assert!(found.iter().any(is_same), "load {number} of {options:?}: {:?}", all.observed);
        }
    }
}

#[test]
fn a_timed_program_does_what_it_does() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-O2", "-mno-red-zone"];
    let Some(program) = gcc(folder.path(), PROGRAM, &options, "program") else { return };
    let log = folder.file("log");
    for bits in [1, 6] {
        let time = |width| vec![What::Latency { width, bits }];
        let Some(all) = recorded(&program, &log, &time) else { return };
        assert_eq!(all.exit, Some(pmu::Exit::Status(0)));
        let words = std::fs::read(&log).unwrap();
        // What the program has seen and added up, of registers that the probes use.
        let sum = words.rchunks(8).next().map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let value = |number: usize, i: usize| {
            let at = (number * 5000 + i) * 16 + 8;
            u64::from_le_bytes(words[at..at + 8].try_into().unwrap())
        };
        let all_of = |i: usize| (0..6).fold(0_u64, |sum, n| sum.wrapping_add(value(n, i)));
        let expected = (0..5000).fold(0_u64, |sum, i| sum.wrapping_mul(31).wrapping_add(all_of(i)));
        assert_eq!(sum, Some(expected));
        assert!((0..5000).all(|i| value(3, i) == i as u64 * 40_503 % 1000));
        let mut timed = 0;
        for site in 0..all.observed.len() {
            let ticks = values(&all, site);
            // One in 1 to 2^bits.
            let expected = 2 * 5000 / ((1 << bits) + 1);
            let is_near = (expected * 2 / 3..expected * 3 / 2).contains(&ticks.len());
            assert!(ticks.is_empty() || is_near, "{} of {expected}", ticks.len());
            assert!(ticks.iter().all(|t| t >> 32 > 0 && *t as u32 > 0));
            timed += usize::from(!ticks.is_empty());
        }
        assert!(timed >= 6, "{:?}", all.observed);
    }
}

/// A loop for each pattern; lists and orders are made by a generator, not by `random`.
const PATTERNS: &str = r#"
#include <stdint.h>
#include <stdlib.h>
struct node { struct node *next; uint64_t key, rest[6]; };
static struct node nodes[4093];
static uint64_t table[4096];
static uint32_t order[4096];
static uint64_t *volatile base = table;
__attribute__((noipa)) uint64_t chase(struct node *p, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) { sum += p->key; p = p->next; }
    return sum;
}
__attribute__((noipa)) uint64_t indirect(uint64_t *a, uint32_t *index, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) sum += a[index[i & 4095]];
    return sum;
}
__attribute__((noipa)) uint64_t stride(uint64_t *a, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) sum += a[(3 * i) & 4095];
    return sum;
}
__attribute__((noipa)) uint64_t hash(uint64_t *a, uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = i * 0xff51afd7ed558ccdu;
        key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53u;
        sum += a[key >> 52];
    }
    return sum;
}
__attribute__((noipa)) uint64_t constant(long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) sum += (uint64_t)base;
    return sum;
}
int main(void) {
    for (long i = 0; i < 4093; i++) nodes[i * 1201 % 4093].next = &nodes[(i + 1) * 1201 % 4093];
    for (long i = 0; i < 4096; i++) order[i] = i * i % 4093;
    uint64_t all = chase(nodes, 5000000) + indirect(table, order, 5000000) + stride(table, 5000000)
        + hash(table, 5000000) + constant(5000000);
    return all == 1;
}
"#;

/// The rows of loads of a function, and their classes in short.
fn classes(document: &Value, function: &str) -> Vec<(String, Value)> {
    let all = document["loads"].as_array().unwrap().iter();
    let own = all.filter(|load| load["function"] == function);
    let mut found: Vec<(String, Value)> =
        own.map(|l| (l["class"]["kind"].as_str().unwrap_or("?").to_owned(), l.clone())).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn patterns_are_those_that_the_source_says() {
    let _busy = busy();
    for level in ["-O1", "-O2"] {
        let folder = Folder::new();
        let options = [level, "-g", "-fno-tree-vectorize"];
        let Some(program) = gcc(folder.path(), PATTERNS, &options, "program") else { return };
        let functions = "chase,indirect,stride,hash,constant";
        let arguments = [
            "count",
            "--loads",
            "--functions",
            functions,
            "--format",
            "json",
            "--",
            name(&program),
        ];
        // On a busy machine no burst may fall into a loop of some milliseconds.
        let mut document = Value::Null;
        for _ in 0..6 {
            let ran = tdtool(arguments);
            if ran.stderr.contains("cannot trace") {
                eprintln!("skipped: {}", ran.stderr);
                return;
            }
            document = ran.succeeded().json();
            let all = document["loads"].as_array().unwrap();
            if all.iter().all(|load| !load["class"].is_null()) {
                break;
            }
        }
        let kinds = |function: &str| -> Vec<String> {
            classes(&document, function).into_iter().map(|(kind, _)| kind).collect()
        };
        assert_eq!(kinds("chase"), ["chase_offset", "pointer_chase"], "{level}");
        assert_eq!(kinds("indirect"), ["indirect", "stride"], "{level}");
        assert_eq!(kinds("stride"), ["stride"], "{level}");
        assert_eq!(kinds("hash"), ["irregular"], "{level}");
        assert_eq!(kinds("constant"), ["constant"], "{level}");
        let one = |function: &str, number: usize| classes(&document, function)[number].1.clone();
        let (key, next) = (one("chase", 0), one("chase", 1));
        assert_eq!((&key["class"]["offset"], &key["class"]["of"]), (&8.into(), &next["address"]));
        assert_eq!((&key["field"], &next["field"]), (&"p->key".into(), &"p->next".into()));
        let (indirect, index) = (one("indirect", 0), one("indirect", 1));
        assert_eq!(indirect["class"]["scale"], 8);
        assert_eq!(
            (&indirect["class"]["of"], &index["class"]["stride"]),
            (&index["address"], &4.into())
        );
        assert_eq!(
            (&indirect["field"], &one("constant", 0)["field"]),
            (&"a[]".into(), &"base".into())
        );
        assert_eq!(one("stride", 0)["class"]["stride"], 24);
        for load in document["loads"].as_array().unwrap() {
            assert!(load["executions"] == 5_000_000, "{load}");
            assert!(load["class"]["share"].as_f64().unwrap() > 0.9, "{load}");
        }
        let runs: Vec<&str> =
            document["cost"].as_array().unwrap().iter().filter_map(|c| c["run"].as_str()).collect();
        assert_eq!(runs, ["counts", "addresses of loads", "latencies of loads"]);
    }
}

/// The program of the figures: a random walk over so many bytes.
const WALK: &str = include_str!("../figures/programs/loads.c");

/// A walk over four times the last cache is served by memory, and one over 16 KiB by the first cache: for
/// most loads.
#[test]
fn a_walk_over_much_memory_is_served_by_memory() {
    let _alone = alone();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), WALK, &["-O1"], "program") else { return };
    let share = |bytes: &str, level: &str| -> Result<f64, String> {
        let arguments = ["count", "--loads", "--functions", "chase", "--format", "json", "--"];
        let ran = tdtool(arguments.into_iter().chain([name(&program), "chase", bytes, "400000"]));
        let text = ran.stderr.clone();
        let document = if ran.status.success() { ran.json() } else { return Err(text) };
        let loads = document["loads"].as_array().cloned().unwrap_or_default();
        let levels = loads.first().and_then(|l| l["levels"].as_array().cloned());
        let found = levels.unwrap_or_default().into_iter().find(|one| one["level"] == level);
        found.and_then(|one| one["share"].as_f64()).ok_or_else(|| document["notes"].to_string())
    };
    assert_holds("levels of a walk", || {
        let both = share("134217728", "DRAM").and_then(|far| Ok((far, share("16384", "DRAM")?)));
        match both {
            Err(why) => crate::support::trial::Trial::Unsettled(why),
            Ok((far, near)) => claim(far > 0.5 && near < 0.1, || format!("{far} {near}")).into(),
        }
    });
}
