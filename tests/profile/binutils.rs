//! Programs made at test time, and what binutils say of them.

use crate::support::files::text;
use crate::support::tools::tool;
use profile::address_space::ModuleAddress;
use profile::module::{Module, ModuleKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int square(int x) {
    return x * x;
}
static inline __attribute__((always_inline)) int twice(int x) {
    return square(x) + square(x + 1);
}
__attribute__((noinline)) static int helper(int x) { return twice(x) * 3; }
__attribute__((noinline)) int add(int a, int b) { return a + b; }
__attribute__((noinline)) int sub(int a, int b) { return a - b; }
__attribute__((weak, alias("add"))) int __add_alias(int a, int b);
int (*const table[])(int, int) = {add, sub, add};
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < argc; i++)
        sum += helper(i) + table[i % 3](i, argc);
    printf("%d %s\n", sum, getenv("HOME"));
    return sum;
}
"#;

pub const CPP: &str = r#"
#include <cstdio>
#include <string>
#include <vector>
namespace space {
template <typename T> struct Holder {
    std::vector<T> all;
    __attribute__((noinline)) void put(T value) { all.push_back(value); }
};
__attribute__((noinline)) int foo(int a, bool b, const std::string &c) { return a + b + c.size(); }
}
extern "C" __attribute__((noinline)) int plain(int x) { return x * 7; }
int main(int argc, char **) {
    space::Holder<std::string> holder;
    holder.put("a");
    std::printf("%d\n", space::foo(argc, true, holder.all[0]) + plain(argc));
}
"#;

pub const RUST: &str = r#"
use std::collections::BTreeMap;
#[inline(never)]
fn count(words: &[String]) -> BTreeMap<&str, usize> {
    let mut all = BTreeMap::new();
    words.iter().for_each(|w| *all.entry(w.as_str()).or_insert(0) += 1);
    all
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    println!("{:?}", count(&words));
}
"#;

/// The program as a module without a recorded build-id.
pub fn module(path: &Path) -> Module {
    Module { path: text(path).into(), kind: ModuleKind::File, ..Module::default() }
}

pub fn at(address: u64) -> ModuleAddress {
    ModuleAddress { module: 0, address }
}

/// A function as nm knows it.
#[derive(Debug)]
pub struct Known {
    pub size: u64,
    /// All names at this address with this size: (in the symbol table, demangled).
    pub names: BTreeSet<(String, String)>,
}

/// Functions with a size, by address, of `nm -S` with and without `-C`.
pub fn functions(path: &Path) -> Option<BTreeMap<u64, Known>> {
    let plain = tool("nm", &["-S", "--defined-only", text(path)])?;
    let demangled = tool("nm", &["-S", "-C", "--defined-only", text(path)])?;
    let mut all: BTreeMap<u64, Known> = BTreeMap::new();
    assert_eq!(plain.lines().count(), demangled.lines().count());
    let mut demangled: Vec<&str> = demangled.lines().collect();
    let mut plain: Vec<&str> = plain.lines().collect();
    // nm sorts by name: pair them by their input order instead is not possible, so by address,
    // size and kind, and compare sets.
    plain.sort_unstable();
    demangled.sort_unstable();
    for (line, name) in plain.iter().zip(&demangled) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [start, size, kind, linkage] = words[..] else { continue };
        if !"tTwWi".contains(kind) {
            continue;
        }
        let name = name.splitn(4, ' ').nth(3).unwrap();
        let known = all
            .entry(hex(start))
            .or_insert_with(|| Known { size: hex(size), names: BTreeSet::new() });
        known.names.insert((linkage.to_owned(), without_hash(name)));
    }
    Some(all)
}

pub fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

/// Rust's legacy names end with `::h` and 16 digits, which binutils keep.
fn without_hash(name: &str) -> String {
    let hash = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16);
    hash.map_or(name, |(name, _)| name).to_owned()
}

/// Addresses of all instructions of `function`, as `objdump -d` has them.
pub fn instructions(path: &Path, function: &str) -> Option<Vec<u64>> {
    let listing = tool("objdump", &["-d", &format!("--disassemble={function}"), text(path)])?;
    let address = |line: &str| u64::from_str_radix(line.split_once(":\t")?.0.trim(), 16).ok();
    Some(listing.lines().filter_map(address).collect())
}

/// `addr2line -afiC`: function and `file:line` of each frame, by address.
pub fn addr2line(path: &Path, addresses: &[u64]) -> Option<Vec<Vec<(String, String)>>> {
    let mut args = vec!["-afiC", "-e", text(path)];
    let addresses: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    args.extend(addresses.iter().map(String::as_str));
    let output = tool("addr2line", &args)?;
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap().split(" (").next().unwrap();
        all.last_mut().unwrap().push((line.to_owned(), place.to_owned()));
    }
    Some(all)
}
