//! Blocks of assembly: marked regions of what compilers write, both syntaxes.

use super::{block, block_reading, hex, json, json_reading, notes_core_alone, sandbox};
use crate::support::files::{Folder, text};
use crate::support::shown;
use crate::support::tools::{available, gcc};
use object::{Object as _, ObjectSection as _};
use std::fs;

#[test]
fn a_compilers_assembly_gives_its_marked_loop() {
    let folder = Folder::new();
    let source = r##"
        #define MARK(text) __asm__ volatile("# " text)
        extern int variable; int other;
        long sum(const long *p, long n) {
            long s = 0;
            for (long i = 0; i < n; i++) { MARK("LLVM-MCA-BEGIN the loop"); s += p[i] ^ s; }
            MARK("LLVM-MCA-END");
            MARK("OSACA-BEGIN");
            other += variable;
            MARK("OSACA-END");
            return s;
        }"##;
    let Some(assembly) = gcc(folder.path(), source, &["-O1", "-g", "-S"], "source.s") else {
        return;
    };
    let Some(object) = gcc(folder.path(), source, &["-O1", "-c"], "source.o") else { return };
    let Some(_busy) = sandbox() else { return };
    let both = json(&["--asm-file", text(&assembly), "--att"]);
    let (inner, outer) = (&both[0], &both[1]);
    assert_eq!(inner["block"]["name"], "the loop");
    // The loop is what the compiler's own object file holds, its jump no longer than there.
    let data = fs::read(object).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let code = file.section_by_name(".text").unwrap().data().unwrap().to_vec();
    let code: String = code.iter().map(|b| format!("{b:02x}")).collect();
    assert!(code.contains(hex(inner)), "{} in {code}", hex(inner));
    let last = inner["block"]["instructions"].as_array().unwrap().last().unwrap();
    assert!(last["text"].as_str().unwrap().starts_with('j'), "{last}");
    // Two variables without an address, in different places: two pages, both of them legal.
    assert!(matches!(outer["status"].as_str(), Some("ok" | "unstable")), "{outer}");
    assert_eq!(outer["pages"].as_array().unwrap().len(), 2);
    // One of them alone, by its name, its number, or from standard input.
    let content = fs::read(&assembly).unwrap();
    let one = json_reading(&["--asm-file", "-", "--att", "--region", "the loop"], &content);
    assert_eq!(one["block"], inner["block"]);
    let one = json(&["--asm-file", text(&assembly), "--att", "--region", "1"]);
    assert_eq!(one["block"], outer["block"]);
    let none = block(["--asm-file", text(&assembly), "--att", "--region", "the lop"]);
    assert!(none.stderr.contains("`the loop`"), "{}", none.stderr);
    // Compilers write AT&T syntax and do not say so: it is inferred, and the report says so.
    let inferred = json(&["--asm-file", text(&assembly), "--region", "the loop"]);
    assert_eq!(inferred["block"], inner["block"]);
    assert!(inferred["notes"][0].as_str().unwrap().contains("AT&T"), "{inferred}");
    let args = ["-O1", "-g", "-S", "-masm=intel"];
    let Some(intel) = gcc(folder.path(), source, &args, "intel.s") else { return };
    let same = json(&["--asm-file", text(&intel), "--region", "the loop"]);
    assert_eq!(hex(&same), hex(inner));
    assert!(notes_core_alone(&same), "{same}");
}

#[test]
fn operands_are_in_the_order_of_the_files_syntax() {
    if !available("as") {
        return;
    }
    let Some(_busy) = sandbox() else { return };
    // sub rbx,rax; cmovne rcx,rbx (Intel's manual, volume 2: 48 29 /r, 48 0F 45 /r)
    let att = b"# LLVM-MCA-BEGIN\nsubq %rax,%rbx\ncmovneq %rbx,%rcx\n# LLVM-MCA-END\n";
    let intel = b".intel_syntax noprefix\nsub rbx,rax\ncmovne rcx,rbx\n";
    for (text, args) in [(&att[..], &[][..]), (att, &["--att"]), (intel, &[])] {
        let args = [&["--asm-file", "-"], args].concat();
        assert_eq!(hex(&json_reading(&args, text)), "4829c3480f45cb", "{args:?}");
    }
}

#[test]
fn of_many_assembler_errors_the_first_are_shown_and_the_remedy_last() {
    if !available("as") {
        return;
    }
    let text = "mov rax, qword ptr [rbx]\n".repeat(130);
    let stderr = block_reading(&["--asm-file", "-", "--att"], text.as_bytes()).stderr;
    assert!(stderr.contains("256"), "{stderr}");
    assert!(stderr.lines().count() < 10, "{stderr}");
    assert!(stderr.lines().last().unwrap().contains("--att"), "{stderr}");
}

#[test]
fn intel_syntax_iaca_bytes_and_files_without_markers_are_read_too() {
    if !available("as") {
        return;
    }
    let Some(_busy) = sandbox() else { return };
    let marked = "nop\nmov ebx, 111\n.byte 0x64, 0x67, 0x90\nadd rax, rbx\nmov ebx,222; .byte 0x64,0x67,0x90\nret";
    assert_eq!(hex(&json_reading(&["--asm-file", "-"], marked.as_bytes())), "4801d8");
    assert_eq!(hex(&json_reading(&["--asm-file", "-"], b"add rax, rbx # all of it\n")), "4801d8");
    let osaca = b".L1:\n# OSACA-BEGIN\n add rax, rbx\n jne .L1\n# OSACA-END\n ret\n";
    assert_eq!(hex(&json_reading(&["--asm-file", "-"], osaca)), "4801d875fb");
    let refused: [&[u8]; 8] = [
        b"# LLVM-MCA-BEGIN\nnop",
        b"# LLVM-MCA-BEGIN\n# LLVM-MCA-END",
        b"# LLVM-MCA-BEGIN\n.data\n.long 0\n# LLVM-MCA-END",
        b"/**/.incbin \"/etc/passwd\"",
        b".macro a b c\n.\\b\\c \"/etc/passwd\"\n.endm\na inc bin",
        b".zero 99999999999",
        b"\xff\xfe",
        b"",
    ];
    let shown = refused.map(|input| {
        let output = block_reading(&["--asm-file", "-"], input);
        format!("{}\n{}", input.escape_ascii(), shown::outputs(&output, &Folder::new()))
    });
    assert_shown!("assembly_refused", shown.join("\n"));
    // What the assembler itself says.
    let bogus = block_reading(&["--asm-file", "-"], b"nop\nbogus rax");
    assert!(bogus.code() == Some(1) && bogus.stderr.contains("line 2"), "{}", bogus.stderr);
}
