//! Functions and their basic blocks and loops, against what the source says.

use super::function;
use crate::support::files::{Folder, shared};
use crate::support::tools::gcc;
use isa::flow::Edge;
use isa::program::{Location, read_location};
use object::{Object as _, ObjectSymbol as _};
use std::fs;

#[test]
fn loops_nest_as_the_source_does() {
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
    let folder = Folder::new();
    for level in ["-O0", "-O1", "-Os"] {
        let Some(program) = gcc(folder.path(), source, &[level], "program") else { return };
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
    let folder = Folder::new();
    for kind in [["-no-pie", "-fno-pie"], ["-pie", "-fPIE"]] {
        let arguments = [&["-O2"], &kind[..]].concat();
        let Some(program) = gcc(folder.path(), source, &arguments, "program") else { return };
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
    let Some(path) = shared("recordings/autofdo/jump_table_test.binary") else { return };
    let data = fs::read(path).unwrap();
    let (flow, ..) = function(&data, "main");
    for (number, block) in flow.blocks.iter().enumerate() {
        let found = read_location(&data, &Location::Function("main".into(), number)).unwrap();
        let (start, bytes) = (found.start, found.bytes);
        assert_eq!((start, start + bytes.len() as u64), (block.start, block.end));
    }
    let beyond = Location::Function("main".into(), flow.blocks.len());
    assert!(read_location(&data, &beyond).is_err());
}
