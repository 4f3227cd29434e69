//! Jump tables, against what compilers wrote and objdump and readers of the recordings say.

use super::function;
use crate::support::files::{Folder, shared, text};
use crate::support::quiet::busy;
use crate::support::tools::{available, gcc, tool};
use isa::flow::Flow;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The binary of Google's autofdo that its own tests of jump tables use. Figures: its test and
/// objdump -d: two switches over 0 to 18, main's last instruction at 0x400627.
#[test]
fn the_two_switches_of_autofdos_test_program_have_nineteen_targets_each() {
    let Some(path) = shared("recordings/autofdo/jump_table_test.binary") else { return };
    let data = fs::read(path).unwrap();
    let (flow, ..) = function(&data, "main");
    assert_eq!(flow.instructions.len(), 56);
    let tables: Vec<_> = flow.tables.iter().map(|(at, to)| (*at, to.len())).collect();
    assert_eq!(tables, [(0x40_057d, 19), (0x40_05db, 19)]);
    // objdump -s: the first table's entries 0 to 3, and the default case.
    assert!(flow.tables[0].1.contains(&0x40_057f) && flow.tables[0].1.contains(&0x40_05be));
    assert!(flow.blocks.iter().all(|b| !b.unresolved));
    assert!(flow.loops.is_empty());
}

/// Switches that compilers make tables of, in many shapes.
const SWITCHES: &str = r#"
#define HIDDEN __attribute__((noinline, noclone))
volatile int sink;
HIDDEN int one(int a) { sink = a; return a + 1; }
HIDDEN int dense(unsigned a, int b) {
    switch (a) {
    case 0: return one(b) * 3; case 1: return b - 7; case 2: sink = 4; return one(1);
    case 3: return b ^ 99; case 4: return one(b + 1) - 1; case 5: sink = b; return 12;
    case 6: return b * b; default: return -1;
    }
}
HIDDEN int from_forty(int a, int b) {
    switch (a) {
    case 40: b += one(1); break; case 41: b ^= 5; break; case 42: b *= 7; break;
    case 43: b -= one(b); break; case 44: b = ~b; break; case 45: sink = b; break;
    case 47: b = one(b) << 3; break;
    }
    return b + 1;
}
HIDDEN int below_zero(int a, int b) {
    switch (a) {
    case -5: return one(b); case -4: return b * 9; case -3: sink = b; return b - 1;
    case -2: return one(3) + b; case -1: return b / 3; case 0: return b % 5; default: return 2;
    }
}
HIDDEN int bytes(const unsigned char *p, int n) {
    int b = 0;
    for (int i = 0; i < n; i++) {
        switch (p[i]) {
        case 'a': b += one(b); break; case 'b': b ^= i; break; case 'c': b *= 3; break;
        case 'd': b -= one(i); break; case 'e': sink = b; break; case 'f': b = ~b; break;
        case 'g': b <<= 1; break; default: b++;
        }
    }
    return b;
}
HIDDEN int masked(unsigned a, int b) {
    switch (a & 7) {
    case 0: return one(b); case 1: return b * 9; case 2: sink = b; return b - 1;
    case 3: return one(3) + b; case 4: return b / 3; case 5: return b % 5;
    case 6: return one(b * 2); case 7: return b & 12;
    }
    return 0;
}
HIDDEN int nested(int a, int c, int b) {
    switch (a) {
    case 0: return one(b); case 1: return b * 9; case 2: sink = b; return b - 1;
    case 3:
        switch (c) {
        case 10: return one(b) + 4; case 11: return b * 5; case 12: sink = c; return b - 4;
        case 13: return one(8) + b; case 14: return b / 7; case 15: return b % 3;
        }
        return 5;
    case 4: return b / 3; case 5: return b % 5; case 6: return one(b) ^ 77;
    }
    return 0;
}
HIDDEN int again(const int *p, int b) {
    for (;;) {
        switch (*p++) {
        case 0: return b; case 1: b += one(b); continue; case 2: b ^= 3; break;
        case 3: b *= one(2); break; case 4: b = -b; continue; case 5: p += b & 1; break;
        case 6: b >>= 1; break; case 7: b += p[0]; continue;
        }
        b++;
    }
}
int main(int n, char **v) {
    return dense(n, 1) + from_forty(n, 2) + below_zero(n, 3) + bytes((void *)v[0], n)
        + masked(n, 4) + nested(n, n, 5) + again((int *)v[0], 1);
}"#;

const FUNCTIONS: [&str; 7] =
    ["dense", "from_forty", "below_zero", "bytes", "masked", "nested", "again"];

/// Entries of jump tables in assembly: `.long .L4-.L3` or `.quad .L4`.
fn table_entries(assembly: &str) -> usize {
    let entries = assembly.lines().map(str::trim).filter(|line| {
        line.strip_prefix(".quad\t.L").is_some()
            || line.strip_prefix(".long\t.L").is_some_and(|rest| rest.contains("-.L"))
    });
    entries.count()
}

/// Every table that gcc wrote into its assembly is found, with exactly its entries.
#[test]
fn gccs_jump_tables_are_found_to_the_last_entry() {
    if !available("gcc") || !available("objdump") {
        return;
    }
    let _busy = busy();
    let folder = Folder::new();
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        for kind in [
            &["-no-pie", "-fno-pie", "-fcf-protection=none"][..],
            &["-pie", "-fPIE", "-fcf-protection=none"],
            &["-pie", "-fPIE", "-fcf-protection=full"],
        ] {
            let args = [&[level, "-fno-reorder-blocks-and-partition"], kind].concat();
            let built = |more: &[&str], output: &str| {
                gcc(folder.path(), SWITCHES, &[&args, more].concat(), output).unwrap()
            };
            let program = built(&[], "program");
            let assembly = fs::read_to_string(built(&["-S"], "assembly")).unwrap();
            let data = fs::read(&program).unwrap();
            let mut found = 0;
            for name in FUNCTIONS {
                let (flow, start, end) = function(&data, name);
                for block in &flow.blocks {
                    assert!(!block.unresolved, "{args:?} {name}: {:#x}", block.start);
                }
                found += flow.tables.iter().map(|t| t.1.len()).sum::<usize>();
                like_objdump(&program, &flow, start, end);
            }
            assert_eq!(found, table_entries(&assembly), "{args:?}");
            assert!(level != "-O2" || found > 40, "{args:?}: {found}");
        }
    }
}

/// The instructions are objdump's, and whatever a jump of its listing leads to begins a block.
fn like_objdump(program: &Path, flow: &Flow, start: u64, end: u64) {
    let (start_at, stop_at) = (format!("--start-address={start}"), format!("--stop-address={end}"));
    let arguments = ["-d", "-w", "--no-show-raw-insn", &start_at, &stop_at, text(program)];
    let listing = tool("objdump", &arguments).unwrap();
    let (mut addresses, mut targets) = (Vec::new(), BTreeSet::new());
    for line in listing.lines() {
        let Some((address, text)) = line.trim().split_once(":\t") else { continue };
        addresses.push(u64::from_str_radix(address, 16).unwrap());
        let mut words = text.split_whitespace().skip_while(|w| matches!(*w, "bnd" | "notrack"));
        if words.next().is_some_and(|w| w.starts_with('j')) {
            let target = words.next().and_then(|w| u64::from_str_radix(w, 16).ok());
            targets.extend(target.filter(|t| (start..end).contains(t)));
        }
    }
    let ours: Vec<u64> = flow.instructions.iter().map(|i| i.0).collect();
    assert_eq!(ours, addresses);
    let starts: BTreeSet<u64> = flow.blocks.iter().map(|b| b.start).collect();
    assert!(targets.is_subset(&starts), "{:x?}", targets.difference(&starts));
}
