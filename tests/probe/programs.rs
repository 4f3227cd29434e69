//! The programs that are captured.

use crate::support::tools::gcc;
use std::path::{Path, PathBuf};

/// `sums(a, n, sums)`: sums[i] = the odd ones among a[0..=i], added up. Before the loop xmm7 is
/// a[0..2].
///
/// Per iteration: a load, a branch if the number is even, a store, the loop's branch.
pub const LOOP: &str = r#"
__asm__(".globl sums\n.type sums,@function\n"
    "sums: mov %rdx,%r8\n movdqu (%rdi),%xmm7\n xor %eax,%eax\n xor %ecx,%ecx\n"
    ".globl loop_start\nloop_start: mov (%rdi,%rcx,8),%rdx\n test $1,%dl\n jz 2f\n add %rdx,%rax\n"
    "2: mov %rax,(%r8,%rcx,8)\n inc %rcx\n cmp %rsi,%rcx\n jl loop_start\n"
    ".globl loop_end\nloop_end: ret\n.size sums,.-sums\n");
"#;

/// What main calls, and how: sums[] of the last call hold marks where the loop has not been.
pub const CALLER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
long sums(long *a, long n, long *result);
static _Alignas(4096) long a[1024], b[1024];
/* Call c has 10 + c trips; a[i] = 1000 c + 3 i, b[i] = -1 - c. */
static void call(FILE *out, long c) {
    for (long i = 0; i < 1024; i++) { a[i] = 1000 * c + 3 * i; b[i] = -1 - c; }
    fprintf(out, "%lx %lx %lx\n", (long)a, 10 + c, (long)b);
    fflush(out);
    sums(a, 10 + c, b);
}
"#;

/// Main: as many calls as argument 2 says, told in the file of argument 1; argument 3 goes to
/// standard output.
pub const MAIN: &str = r#"
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    if (count > 3) { puts(arguments[3]); fflush(stdout); }
    for (long c = 0; c < atol(arguments[2]); c++) call(out, c);
    fprintf(out, "done\n");
    return 0;
}
"#;

/// The program of [`LOOP`], [`CALLER`] and [`MAIN`].
pub fn program(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    gcc(folder, &[CALLER, LOOP, MAIN].concat(), &[&["-O1"], options].concat(), "program")
}
