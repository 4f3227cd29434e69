//! Which code has entry counts: libraries, functions around addresses; code that cannot be probed says why.

use super::counts::{PLAIN, counted, function, numbers};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::gcc;
use probe::count::{Uncounted, Unprobed, Wanted};
use probe::facts::NoCode;
use std::path::{Path, PathBuf};

/// A library that is loaded by dlopen, and its function `part`.
const PLUGIN: &str = "long part(long n) { long s = 0;
    for (long i = 0; i < n; i++) { s += i ^ n; __asm__ volatile(\"\" : \"+r\"(s)); } return s; }";
const LOADER: &str = "#include <dlfcn.h>
    int main(int count, char **arguments) {
        void *library = dlopen(arguments[1], RTLD_NOW);
        long (*part)(long) = (long (*)(long))dlsym(library, \"part\");
        return part(12345) == 0;
    }";

#[test]
fn a_library_is_counted_from_when_it_is_mapped() {
    let _busy = busy();
    let folder = Folder::new();
    let library = gcc(folder.path(), PLUGIN, &["-O1", "-shared", "-fPIC"], "plugin.so");
    let program = gcc(folder.path(), LOADER, &["-O1", "-ldl"], "loader");
    let (Some(library), Some(program)) = (library, program) else { return };
    let wanted = [function(&library, "part")];
    let command = [super::name(&program), super::name(&library)];
    let Some(counts) = counted(&command, &wanted) else { return };
    let part = counts.functions[0].as_ref().unwrap();
    assert!(numbers(part).contains(&12345), "{part:?}");
}

#[test]
fn an_address_stands_for_the_function_around_it() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O1"], "plain") else { return };
    let out = folder.path().join("out");
    let command = [super::name(&program), super::name(&out)];
    let nested = function(&program, "nested");
    if counted(&command, std::slice::from_ref(&nested)).is_none() {
        return;
    }
    let inside = format!("{:#x}", nested.range.start + 1);
    let own = ["count", "--functions", &inside, "--format", "json", "--"];
    let ran = tdtool(own.iter().chain(&command));
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
    let document = ran.json();
    let blocks = document["blocks"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block["function"] == "nested"), "{document}");
    assert!(blocks.iter().any(|block| block["count"] == 70 * 3000), "{document}");
}

#[test]
fn what_is_not_probed_says_why() {
    let _busy = busy();
    let folder = Folder::new();
    let program = gcc(folder.path(), PLAIN, &["-O1"], "plain");
    let Some(program) = program else { return };
    let writable = with_writable_code(&program);
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    let absent = PathBuf::from("/nowhere/program");
    let nested = function(&program, "nested");
    let wanted = [
        nested.clone(),
        Wanted { range: 0x10..0x10, ..nested.clone() },
        Wanted { path: script.clone(), range: 0..16 },
        Wanted { path: absent.clone(), range: 0..16 },
        function(&writable, "nested"),
    ];
    let Some(counts) = counted(&["true"], &wanted) else { return };
    let why = |number: usize| counts.functions[number].as_ref().unwrap_err();
    assert_eq!(*why(0), Unprobed::NotMapped.into());
    assert_eq!(*why(1), NoCode::Length.into());
    let of_script = NoCode::Script("/bin/sh".to_owned());
    assert_eq!(*why(2), Uncounted::File(script, of_script));
    let of_absent = std::io::Error::from_raw_os_error(libc::ENOENT);
    assert_eq!(*why(3), Uncounted::File(absent, of_absent.into()));
    assert_eq!(*why(4), Uncounted::File(writable, NoCode::WritableCode));
    assert_eq!(counts.exit, Some(pmu::Exit::Status(0)));
}

/// `run` as assembly, with what it is called with. Pointers to its labels are worked out from distances
/// to its start.
fn threaded(labels: &str) -> String {
    [
        "#include <stdio.h>\nvoid *tab[4];\nextern int ofs[];\nextern long run(long op, long x);\n",
        "__asm__(\".text\\n.globl run\\n.type run,@function\\nrun:\\n\"\n",
        "\" mov %rsi,%rax\\n lea tab(%rip),%rdx\\n cmp $3,%rdi\\n je .Lop0\\n jmp *(%rdx,%rdi,8)\\n\"\n",
        labels,
        "\" ret\\n .size run,.-run\\n.section .rodata\\n.globl ofs\\n\"\n",
        "\"ofs: .long .Lop0-run, .Lop1-run\\n.text\\n\");\n",
        "int main(void) {\n for (int i = 0; i < 2; i++) tab[i] = (char *)run + ofs[i];\n long x = 0;\n",
        " for (int i = 0; i < 3000; i++) x = run(i % 3 == 2 ? 3 : i % 3, x);\n",
        " printf(\"%ld\\n\", x);\n return x != RESULT;\n}\n",
    ]
    .concat()
}

/// A jump by distances, to one of four labels in a row, after a call that never comes back: gcc aligns the stack
/// before the call, so that the code after it is reached at another depth than the call has.
const AFTER_THE_END: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noreturn, noinline, cold)) void die(void);
__attribute__((noinline)) long f(long w, long x) {
    static const int t[4] = { &&a0 - &&a0, &&a1 - &&a0, &&a2 - &&a0, &&a3 - &&a0 };
    unsigned r = 0;
    if (__builtin_expect(x > 1000, 1)) goto *(&&a0 + t[w]);
    die();
    a0: __asm__ volatile("clc");
    a1: r += 0x12345678; __asm__ volatile("cmc");
    a2: r += 0x1234567; __asm__ volatile("");
    a3: r += 0x123456;
    return r;
}
void die(void) { puts("x"); exit(3); }
int main(void) { unsigned long s = 0; for (long i = 0; i < 4000; i++) s += f(i % 4, i + 2000); return s == 0; }
"#;

#[test]
fn code_after_a_call_that_never_comes_back_may_be_a_hidden_label() {
    let _busy = busy();
    let folder = Folder::new();
    for level in ["-O1", "-Os"] {
        let Some(program) = gcc(folder.path(), AFTER_THE_END, &[level], "after") else { return };
        let Some(counts) = counted(&[super::name(&program)], &[function(&program, "f")]) else {
            return;
        };
        assert_eq!(counts.exit, Some(pmu::Exit::Status(0)));
        let f = counts.functions[0].as_ref().unwrap();
        // Of 4,000 calls a quarter goes to each label: those after a block's first one are no entries of it.
        let entries = f.blocks.iter().filter_map(|block| block.count.as_ref().ok());
        assert!(entries.clone().all(|n| [0, 1000, 4000].contains(n)), "{level}: {f:?}");
        assert!(entries.clone().any(|n| *n == 4000), "{level}: {f:?}");
    }
}

#[test]
fn a_jump_that_looks_like_a_tail_call_may_lead_to_a_hidden_label() {
    let _busy = busy();
    let folder = Folder::new();
    // A jump over several instructions would cover .Lop1; a count derived from others would lack its entries.
    let covered = "\".Lop0: inc %eax\\n dec %ecx\\n.Lop1: nop\\n jmp .Lend\\n\"\n\
         \".Lmid: add $0x12345678,%ecx\\n.Lend: add $0x01234567,%edx\\n\"\n";
    let derived = "\".Lop0: inc %eax\\n.Lop1: add $2,%eax\\n\"\n";
    // A count after .Lop1, where one instruction has room for a jump, would have its entries, too.
    let inside = "\".Lop0: inc %eax\\n.Lop1: add $0x01234567,%edx\\n\"\n";
    for (labels, result) in [(covered, 2000), (derived, 8000), (inside, 2000)] {
        let source = threaded(labels);
        let result = format!("-DRESULT={result}");
        let Some(program) = gcc(folder.path(), &source, &["-O1", &result], "hidden") else {
            return;
        };
        let wanted = [function(&program, "run")];
        let Some(counts) = counted(&[super::name(&program)], &wanted) else { return };
        assert_eq!(counts.exit, Some(pmu::Exit::Status(0)), "{labels}");
        let run = counts.functions[0].as_ref().unwrap();
        assert_eq!((run.checked, run.blocks[0].count.clone()), (0, Ok(3000)), "{run:?}");
        // Of the three values of i % 3 two lead to .Lop0.
        if let Some(Ok(entries)) = run.blocks.get(2).map(|block| &block.count) {
            assert_eq!(*entries, 2000, "{labels} {run:?}");
        }
    }
}

/// A loop with two jumps back, both of which leave to the same block, too.
const TWO_LATCHES: &str = r#"
extern int two(int n);
__asm__(".text\n.globl two\n.type two,@function\n"
    "two: mov $0x11111111,%eax\n jmp 2f\n"
    "1: add $0x11111111,%eax\n dec %edi\n jz 3f\n"
    "2: add $0x01111111,%eax\n test $1,%dil\n jz 1b\n"
    " add $0x00111111,%eax\n dec %edi\n jnz 2b\n"
    "3: add $0x00011111,%eax\n ret\n.size two,.-two\n");
int main(void) { for (int i = 0; i < 7; i++) two(100); return 0; }
"#;

#[test]
fn entries_of_a_loop_are_known_although_its_jumps_back_are_not() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), TWO_LATCHES, &["-O1"], "two") else { return };
    let Some(counts) = counted(&[super::name(&program)], &[function(&program, "two")]) else {
        return;
    };
    let two = counts.functions[0].as_ref().unwrap();
    let head = two.loops[0].head;
    let back = two.edges.iter().filter(|edge| edge.to == head && edge.count.is_none());
    assert_eq!(back.count(), 2, "{two:?}");
    // Seven calls, each of which counts 100 down to 0.
    assert_eq!((two.loops[0].entries, two.loops[0].iterations), (Some(7), Some(700)), "{two:?}");
    assert_eq!(two.loops[0].reason, None);
}

/// A function of short instructions, whose flags live on.
const ONLY_PUNS: &str = r#"
#include <stdio.h>
extern long f(long n);
__asm__(".text\n.globl f\n.type f,@function\n"
    "f: mov %rdi,%rax\n1: add %rdi,%rax\n dec %rdi\n jnz 1b\n ret\n .size f,.-f\n");
int main(void) { return f(1000000) != 500001500000; }
"#;

#[test]
fn a_file_in_which_all_probes_are_puns_is_counted() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-O1", "-fno-pie", "-no-pie"];
    let Some(program) = gcc(folder.path(), ONLY_PUNS, &options, "puns") else { return };
    // Where a pun leads depends on its bytes; in some runs the heap lies there.
    let mut run = 0;
    loop {
        run += 1;
        let Some(counts) = counted(&[super::name(&program)], &[function(&program, "f")]) else {
            return;
        };
        assert_eq!(counts.exit, Some(pmu::Exit::Status(0)));
        match &counts.functions[0] {
            Ok(f) => break assert_eq!(f.blocks[0].count, Ok(1), "{f:?}"),
            Err(why) => assert!(run < 8 && why.to_string().contains("no probe fits"), "{why}"),
        }
    }
}

/// A copy of a program whose header lets it write its code: `PF_W` of the executable segments (ELF
/// gABI, program header: 56 bytes, type at 0, flags at 4; `e_phoff` at 32, `e_phnum` at 56).
fn with_writable_code(program: &Path) -> PathBuf {
    let mut data = std::fs::read(program).unwrap();
    let word = |data: &[u8], at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    let headers = word(&data, 32) as usize;
    for number in 0..usize::from(data[56]) {
        let header = headers + 56 * number;
        if word(&data, header) == 1 && data[header + 4] & 1 != 0 {
            data[header + 4] |= 2;
        }
    }
    let copy = program.with_extension("writable");
    std::fs::write(&copy, data).unwrap();
    copy
}
