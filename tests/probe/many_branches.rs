//! Programs of tens of thousands of branches.

use crate::support::files::{Folder, text};
use crate::support::growth::assert_program_not_quadratic;
use crate::support::tools::gcc;

/// So many functions of eight branches, each of which runs once.
fn source(functions: usize) -> String {
    let jumps: String = (1..=8).map(|n| format!("cmp ${n},%rdi\\nje {n}f\\nnop\\n{n}: ")).collect();
    let function = |n| {
        format!(
            "__asm__(\".text\\n.globl f{n}\\n.type f{n},@function\\nf{n}: {jumps}ret\\n.size f{n},.-f{n}\\n\");\n\
             void f{n}(long);\n"
        )
    };
    let all: String = (0..functions).map(function).collect();
    let calls: String = (0..functions).map(|n| format!("f{n}({n});")).collect();
    format!("{all}int main(void) {{ {calls} return 0; }}\n")
}

#[test]
fn mispredictions_of_a_large_program_take_time_by_its_size() {
    let folder = Folder::new();
    let made = |functions: usize| {
        gcc(folder.path(), &source(functions), &["-O1"], &format!("many{functions}"))
    };
    let (Some(few), Some(many)) = (made(1000), made(4000)) else { return };
    assert_program_not_quadratic("branches of a program", 1000, |functions| {
        let program = if functions == 1000 { &few } else { &many };
        ["count", "--branches", "--format", "json", "--", text(program)].map(str::to_owned).to_vec()
    });
}
