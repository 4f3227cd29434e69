//! Functions → basic blocks, jump tables and loops: against what compilers, objdump and readers of
//! the recordings say.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use isa::code::{Location, read_location};
use isa::flow::{Edge, Flow, Image, Memory, flow};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A function of the ELF file `data`: its control flow and where it lies.
fn function(data: &[u8], name: &str) -> (Flow, u64, u64) {
    let object::File::Elf64(file) = object::File::parse(data).unwrap() else { panic!("not ELF") };
    let symbol = file.symbols().find(|s| s.name() == Ok(name));
    let symbol = symbol.unwrap_or_else(|| panic!("no {name}"));
    let (start, size) = (symbol.address(), symbol.size());
    let code = file.sections().find_map(|s| s.data_range(start, size).ok().flatten()).unwrap();
    let flow = flow(code, start, &[], &Image::new(&data).expect("x86-64"));
    check(&flow, start, start + size);
    (flow, start, start + size)
}

/// What must hold of every flow: blocks, padding and undecoded bytes tile the function, edges lead
/// to blocks, loops are nested in their parents.
fn check(flow: &Flow, start: u64, end: u64) {
    let mut parts: Vec<(u64, u64)> = flow.blocks.iter().map(|b| (b.start, b.end)).collect();
    parts.extend(flow.padding.iter().chain(&flow.undecoded));
    parts.sort_unstable();
    let mut at = start;
    for (from, to) in parts {
        assert!(from == at && to > from, "{from:#x}..{to:#x} at {at:#x}");
        at = to;
    }
    assert_eq!(at, end);
    assert!(flow.blocks.is_sorted_by_key(|b| b.start));
    for (index, block) in flow.blocks.iter().enumerate() {
        assert_eq!(flow.block_at(block.start), Some(index));
        assert_eq!(flow.block_at(block.end - 1), Some(index));
        assert!(flow.instructions.binary_search_by_key(&block.start, |i| i.0).is_ok());
        for edge in &block.edges {
            match edge {
                Edge::Block(to) => assert!(*to < flow.blocks.len()),
                Edge::Outside(to) => assert!(!(start..end).contains(to)),
            }
        }
        assert!(
            !block.edges.is_empty() || block.is_exit || block.unresolved,
            "{:#x} goes nowhere",
            block.start
        );
    }
    for (index, this) in flow.loops.iter().enumerate() {
        assert!(this.blocks.is_sorted() && this.blocks.contains(&this.head));
        assert!(this.back_edges.iter().all(|b| this.blocks.contains(b)));
        let parent = this.parent.map(|p| &flow.loops[p]);
        assert!(this.parent.is_none_or(|p| p < index), "outer loops come first");
        assert_eq!(this.depth, parent.map_or(1, |p| p.depth + 1));
        assert!(parent.is_none_or(|p| this.blocks.iter().all(|b| p.blocks.contains(b))));
    }
}

fn shared(path: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings").join(path);
    let data = fs::read(&path).ok();
    if data.is_none() {
        eprintln!("skipped: {} is not here", path.display());
    }
    data
}

fn has(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: no {tool} here");
    }
    there
}

/// Compiles `source` to a file; also its assembly, as text.
fn compile(folder: &Path, source: &str, args: &[&str]) -> (PathBuf, String) {
    let (input, program) = (folder.join("source.c"), folder.join("program"));
    fs::write(&input, source).unwrap();
    let run = |more: &[&str], output: &Path| {
        let done =
            Command::new("gcc").args(args).args(more).arg(&input).arg("-o").arg(output).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    run(&[], &program);
    let assembly = folder.join("source.s");
    run(&["-S"], &assembly);
    (program, fs::read_to_string(assembly).unwrap())
}

/// The binary of Google's autofdo that its own tests of jump tables use. Figures: its test and
/// objdump -d: two switches over 0 to 18, main's last instruction at 0x400627.
#[test]
fn the_two_switches_of_autofdos_test_program_have_nineteen_targets_each() {
    let Some(data) = shared("autofdo/jump_table_test.binary") else { return };
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
    if !has("gcc") || !has("objdump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        for kind in [
            &["-no-pie", "-fno-pie", "-fcf-protection=none"][..],
            &["-pie", "-fPIE", "-fcf-protection=none"],
            &["-pie", "-fPIE", "-fcf-protection=full"],
        ] {
            let args = [&[level, "-fno-reorder-blocks-and-partition"], kind].concat();
            let (program, assembly) = compile(folder.path(), SWITCHES, &args);
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
    let range = [format!("--start-address={start}"), format!("--stop-address={end}")];
    let listing = Command::new("objdump")
        .args(["-d", "-w", "--no-show-raw-insn"])
        .args(range)
        .arg(program)
        .output()
        .unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
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

#[test]
fn loops_nest_as_the_source_does() {
    if !has("gcc") {
        return;
    }
    let source = r#"
        void multiply(int n, double *c, const double *a, const double *b) {
            for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
        }
        long in_a_row(long n, volatile long *p) {
            for (long i = 0; i < n; i++) *p = i;
            for (long i = 0; i < n; i++) for (long j = i; j < n; j++) *p = j;
            do *p = 1; while (*p);
            return *p;
        }
        int main(void) { return 0; }"#;
    let folder = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O1", "-Os"] {
        let (program, _) = compile(folder.path(), source, &[level]);
        let data = fs::read(program).unwrap();
        let depths = |name| {
            let (flow, ..) = function(&data, name);
            let deepest =
                flow.blocks.iter().filter_map(|b| b.innermost).map(|l| flow.loops[l].depth);
            let mut depths: Vec<u32> = flow.loops.iter().map(|l| l.depth).collect();
            assert_eq!(deepest.max(), depths.iter().max().copied(), "{name}");
            depths.sort_unstable();
            depths
        };
        assert_eq!(depths("multiply"), [1, 2, 3], "{level}");
        assert_eq!(depths("in_a_row"), [1, 1, 1, 2], "{level}");
    }
}

#[test]
fn tail_calls_leave_and_computed_jumps_are_resolved_only_where_bounded() {
    if !has("gcc") {
        return;
    }
    let source = r#"
        int other(int a);
        __asm__(".text\n.globl other\nother:\n lea 1(%rdi),%eax\n ret\n");
        __attribute__((noinline)) int tail(int a) { return other(a * 2); }
        __attribute__((noinline)) int through(int (*f)(int), int a) { return f(a + 1); }
        #define BODY(index) \
            static const void *const table[] = { &&a, &&b, &&c, &&d }; \
            int n = 0; \
            for (;;) { goto *table[index]; a: n++; continue; b: n += 2; continue; \
                       c: n *= 3; continue; d: return n; }
        int bounded(const unsigned *p) { BODY(*p++ & 3) }
        int unbounded(const unsigned *p) { BODY(*p++) }
        int main(int n, char **v) {
            return tail(n) + through(tail, n) + bounded((void *)v[0]) + unbounded((void *)v[0]); }"#;
    let folder = tempfile::tempdir().unwrap();
    for kind in [["-no-pie", "-fno-pie"], ["-pie", "-fPIE"]] {
        let (program, _) = compile(folder.path(), source, &[&["-O2"], &kind[..]].concat());
        let data = fs::read(program).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let other = file.symbols().find(|s| s.name() == Ok("other")).unwrap().address();
        let (tail, ..) = function(&data, "tail");
        assert_eq!(tail.blocks.last().unwrap().edges, [Edge::Outside(other)]);
        let (through, ..) = function(&data, "through");
        let last = through.blocks.last().unwrap();
        assert!(last.unresolved && last.edges.is_empty());
        let (bounded, ..) = function(&data, "bounded");
        assert!(!bounded.tables.is_empty() && bounded.tables.iter().all(|t| t.1.len() == 4));
        assert!(bounded.blocks.iter().all(|b| !b.unresolved));
        // Nothing says how long its table is: no table rather than four targets and some garbage.
        let (unbounded, ..) = function(&data, "unbounded");
        assert!(unbounded.tables.is_empty() && unbounded.blocks.iter().any(|b| b.unresolved));
    }
}

/// `FILE:FUNCTION+N` counts the same blocks.
#[test]
fn a_functions_blocks_are_numbered_alike_everywhere() {
    let Some(data) = shared("autofdo/jump_table_test.binary") else { return };
    let (flow, ..) = function(&data, "main");
    for (number, block) in flow.blocks.iter().enumerate() {
        let found = read_location(&data, &Location::Function("main".into(), number)).unwrap();
        let (start, bytes) = (found.start, found.bytes);
        assert_eq!((start, start + bytes.len() as u64), (block.start, block.end));
    }
    let beyond = Location::Function("main".into(), flow.blocks.len());
    assert!(read_location(&data, &beyond).unwrap_err().to_string().contains("no basic block"));
}

/// Memory whose every word is an address of the code, so that tables are found in garbage too.
struct Everywhere(u64, u64);

impl Memory for Everywhere {
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let target = self.0 + address.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.1;
        target.to_le_bytes().get(..length).map(<[u8]>::to_vec)
    }
}

/// Pieces of switches between arbitrary bytes: indirect jumps, compares, branches, padding.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        &[0x83, 0xf8, 0x12],                         // cmp eax,18
        &[0x77, 0x10],                               // ja +16
        &[0x77, 0xf0],                               // ja -16
        &[0x89, 0xc0],                               // mov eax,eax
        &[0xff, 0x24, 0xc5, 0x00, 0x10, 0x40, 0x00], // jmp [rax*8+0x401000]
        &[0x48, 0x8d, 0x15, 0x00, 0x01, 0x00, 0x00], // lea rdx,[rip+0x100]
        &[0x48, 0x63, 0x04, 0x82],                   // movsxd rax,[rdx+rax*4]
        &[0x48, 0x01, 0xd0],                         // add rax,rdx
        &[0xff, 0xe0],                               // jmp rax
        &[0x48, 0xff, 0xc0],                         // inc rax
        &[0x89, 0x45, 0xf8],                         // mov [rbp-8],eax
        &[0x8b, 0x45, 0xf8],                         // mov eax,[rbp-8]
        &[0x83, 0xe0, 0x07],                         // and eax,7
        &[0xe8, 0x00, 0x00, 0x00, 0x00],             // call
        &[0x0f, 0x1f, 0x00],                         // nop
        &[0xc3],                                     // ret
        &[0xf0],                                     // lock
        &[0x06],                                     // invalid
    ];
    let known = proptest::sample::select(known).prop_map(<[u8]>::to_vec);
    let bytes = proptest::collection::vec(any::<u8>(), 0..6);
    proptest::collection::vec(prop_oneof![4 => known, 1 => bytes], 0..120)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn arbitrary_bytes_are_cut_into_blocks_that_tile_them(
        code in prop_oneof![proptest::collection::vec(any::<u8>(), 0..600), garbage()],
        start in prop_oneof![Just(0u64), Just(0x40_1000), Just(u64::MAX - 700)],
        observed in proptest::collection::vec(0u64..700, 0..4),
    ) {
        let observed: Vec<u64> = observed.into_iter().map(|o| start + o).collect();
        let memory = Everywhere(start, code.len().max(1) as u64);
        let flow = flow(&code, start, &observed, &memory);
        check(&flow, start, start + code.len() as u64);
        for table in &flow.tables {
            assert!(table.1.len() <= 1 << 16);
        }
    }
}

/// Code made to be slow: a long chain of branches to one place, and many indirect jumps behind each
/// other whose index is never bounded.
#[test]
fn code_made_to_be_slow_ends() {
    // jne to the end (6 bytes), repeated; loop heads nested in each other; jmp rax, repeated.
    let count: u32 = 4000;
    let chain: Vec<u8> = (0..count)
        .flat_map(|i| [&[0x0f, 0x85][..], &(6 * (count - i - 1)).to_le_bytes()].concat())
        .collect();
    let nest: Vec<u8> = (0..count)
        .map(|i| [&[0x0f, 0x85][..], &(-6 * (2 * i64::from(i) + 1)).to_le_bytes()[..4]].concat())
        .fold(vec![0x90; 6 * count as usize], |mut code, jump| {
            code.extend(jump);
            code
        });
    let jumps = [0x48, 0xff, 0xc0, 0x75, 0x02, 0xff, 0xe0].repeat(count as usize);
    for code in [chain, nest, jumps] {
        let flow = flow(&code, 0x1000, &[], &Everywhere(0x1000, code.len() as u64));
        check_tiles(&flow, 0x1000, 0x1000 + code.len() as u64);
    }
}

fn check_tiles(flow: &Flow, start: u64, end: u64) {
    let sizes = flow.blocks.iter().map(|b| (b.start, b.end));
    let rest = flow.padding.iter().chain(&flow.undecoded).copied();
    assert_eq!(sizes.chain(rest).map(|(from, to)| to - from).sum::<u64>(), end - start);
}
