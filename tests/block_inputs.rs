//! Where a block may come from, and what may be chosen about it, as a user gives it.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod block_support;
#[path = "fuzz/parsers.rs"]
mod parsers;

use block_support::{hex, json, run, sandbox, stderr};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// iacaMarks.h of Intel's Architecture Code Analyzer 3.0.
const IACA_START: [u8; 8] = [0xbb, 0x6f, 0, 0, 0, 0x64, 0x67, 0x90];
const IACA_END: [u8; 8] = [0xbb, 0xde, 0, 0, 0, 0x64, 0x67, 0x90];
const ADD: [u8; 3] = [0x48, 0x01, 0xd8]; // add rax,rbx

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs gcc on `source` in `folder`; `None`, said aloud, where there is none.
fn gcc(folder: &Path, source: &str, args: &[&str], output: &str) -> Option<PathBuf> {
    let (input, output) = (folder.join("source.c"), folder.join(output));
    fs::write(&input, source).unwrap();
    let done = Command::new("gcc").args(args).arg(&input).arg("-o").arg(&output).output();
    match done {
        Ok(done) if done.status.success() => Some(output),
        Ok(done) => panic!("gcc: {}", stderr(&done)),
        Err(error) => {
            eprintln!("skipped: no gcc here: {error}");
            None
        }
    }
}

fn assembler() -> bool {
    let there = Command::new("as").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: no assembler here");
    }
    there
}

#[test]
fn standard_input_takes_raw_code_its_digits_and_marked_code() {
    if !sandbox() {
        return;
    }
    let marked = [&[0x90][..], &IACA_START, &ADD, &IACA_END, &[0xc3]].concat();
    for input in [&ADD[..], b"4801d8\n", b"\\x48\\x01\\xd8", &marked] {
        assert_eq!(hex(&json(&["-"], input)), "4801d8", "{input:x?}");
    }
    let twice = [&marked[..], &marked].concat();
    assert_eq!(json(&["-"], &twice).as_array().unwrap().len(), 2);
    for (input, word) in [(&[0x90; 5000][..], "too long"), (b"", "empty"), (&marked[..15], "pair")]
    {
        let output = run(&["-"], input);
        assert_eq!(output.status.code(), Some(1), "{word}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}

#[test]
fn a_terminal_is_no_input() {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let output = block_support::command(&["-"]).stdin(terminal.slave).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("terminal"), "{}", stderr(&output));
}

#[test]
fn a_compilers_assembly_gives_its_marked_loop() {
    let folder = tempfile::tempdir().unwrap();
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
    if !sandbox() {
        return;
    }
    let both = json(&["--asm-file", text(&assembly), "--att"], b"");
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
    // One of them by itself, by its name, its number, or from standard input.
    let content = fs::read(&assembly).unwrap();
    let one = json(&["--asm-file", "-", "--att", "--region", "the loop"], &content);
    assert_eq!(one["block"], inner["block"]);
    let one = json(&["--asm-file", text(&assembly), "--att", "--region", "1"], b"");
    assert_eq!(one["block"], outer["block"]);
    let none = run(&["--asm-file", text(&assembly), "--att", "--region", "the lop"], b"");
    assert!(stderr(&none).contains("did you mean `the loop`?"), "{}", stderr(&none));
    // Compilers write AT&T syntax without a word: the file tells, and the report says so.
    let told = json(&["--asm-file", text(&assembly), "--region", "the loop"], b"");
    assert_eq!(told["block"], inner["block"]);
    assert!(told["notes"][0].as_str().unwrap().contains("AT&T syntax"), "{told}");
    let args = ["-O1", "-g", "-S", "-masm=intel"];
    let Some(intel) = gcc(folder.path(), source, &args, "intel.s") else { return };
    let same = json(&["--asm-file", text(&intel), "--region", "the loop"], b"");
    assert_eq!((hex(&same), &same["notes"]), (hex(inner), &serde_json::json!([])));
}

#[test]
fn operands_are_in_the_order_of_the_files_syntax() {
    if !assembler() || !sandbox() {
        return;
    }
    // sub rbx,rax; cmovne rcx,rbx (Intel's manual, volume 2: 48 29 /r, 48 0F 45 /r)
    let att = b"# LLVM-MCA-BEGIN\nsubq %rax,%rbx\ncmovneq %rbx,%rcx\n# LLVM-MCA-END\n";
    let intel = b".intel_syntax noprefix\nsub rbx,rax\ncmovne rcx,rbx\n";
    for (text, args) in [(&att[..], &[][..]), (att, &["--att"]), (intel, &[])] {
        let args = [&["--asm-file", "-"], args].concat();
        assert_eq!(hex(&json(&args, text)), "4829c3480f45cb", "{args:?}");
    }
}

#[test]
fn of_many_complaints_the_first_are_told_and_the_remedy_last() {
    if !assembler() {
        return;
    }
    let text = "mov rax, qword ptr [rbx]\n".repeat(130);
    let told = stderr(&run(&["--asm-file", "-", "--att"], text.as_bytes()));
    assert!(told.contains("line 1:") && told.contains(" more like these"), "{told}");
    assert!(told.lines().count() < 10, "{told}");
    assert!(told.lines().last().unwrap().contains("leave out --att"), "{told}");
}

#[test]
fn digits_that_name_a_file_are_told_from_it() {
    let folder = tempfile::tempdir().unwrap();
    // b2 is `mov dl,imm8` without its operand; c390 is code: ret; nop.
    for name in ["b2", "90"] {
        fs::write(folder.path().join(name), "a program").unwrap();
    }
    for command in ["block", "deps"] {
        let output = Command::new(env!("CARGO_BIN_EXE_tdtool"))
            .args([command, "b2"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.contains("a file of that name") && told.contains("b2:FUNCTION"), "{told}");
    }
    if !sandbox() {
        return;
    }
    let mut measured = block_support::command(&["90", "--quick", "--budget", "50"]);
    let output = measured.current_dir(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("note: `90` is read as hexadecimal digits"), "{told}");
}

/// Two functions whose blocks follow from the text: `tail` is `inc rax; ret`, `count` is as below.
const BLOCKS: &str = r#"__asm__(".globl count\n.type count,@function\ncount:\n xor %eax,%eax\n"
    "1: inc %rax\n add %rax,%rbx\n cmp $9,%rax\n jl 1b\n ret\n.size count,.-count\n"
    ".globl tail\n.type tail,@function\ntail:\n inc %rax\n ret\n.size tail,.-tail\n");
    int main(void) { return 0; }"#;

#[test]
fn the_blocks_of_a_function_are_listed_with_their_numbers_and_loops() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let of = |place: &str| format!("{}:{place}", text(&program));
    let output = run(&["--list", &of("count"), "--format", "json"], b"");
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let columns = |key: &str| -> Vec<serde_json::Value> {
        listed["blocks"].as_array().unwrap().iter().map(|b| b[key].clone()).collect()
    };
    assert_eq!(columns("instructions"), [1, 4, 1]);
    assert_eq!(columns("loop_depth"), [0, 1, 0]);
    assert_eq!(columns("first"), ["xor eax,eax", "inc rax", "ret"]);
    let inside = columns("start")[1].as_str().unwrap().to_owned();
    let same = run(&["--list", &of(&inside), "--format", "json"], b"");
    assert_eq!(same.stdout, output.stdout, "an address names its function");
    let lines = String::from_utf8(run(&["--list", &of("count"), "--ascii"], b"").stdout).unwrap();
    assert!(lines.is_ascii() && lines.contains("+1") && lines.contains("jl "), "{lines}");
    for wrong in ["4801d8", &of("cuont")] {
        let output = run(&["--list", wrong], b"");
        assert!(!output.status.success() && stderr(&output).contains("try:"), "{wrong}");
    }
    assert!(stderr(&run(&[&of("count+9")], b"")).contains("--list"));
    if sandbox() {
        let first = json(&[&of("count")], b"");
        let note = first["notes"][0].as_str().unwrap();
        assert!(note.contains("first of 3") && note.contains("--list"), "{first}");
        assert_eq!(json(&[&of("count+0")], b"")["notes"], serde_json::json!([]));
    }
}

#[test]
fn a_programs_block_is_measured_without_what_leaves_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    if !sandbox() {
        return;
    }
    let of = |place: &str| format!("{}:{place}", text(&program));
    let tail = json(&[&of("tail")], b"");
    assert_eq!(hex(&tail), "48ffc0");
    assert!(tail["notes"][0].as_str().unwrap().starts_with("without `ret`"), "{tail}");
    // Nothing else is in it; and bytes by themselves are what they are.
    for place in [of("count+2"), "48ffc0c3".to_owned()] {
        let refused = json(&[&place], b"");
        assert_eq!(refused["status"], "rejected", "{refused}");
    }
    let reason = json(&["48ffc0c3"], b"")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("leave it out"), "{reason}");
}

#[test]
fn a_start_inside_of_an_instruction_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let data = fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let start = file.symbol_by_name("count").unwrap().address();
    let notes = |from: u64| {
        let place = format!("{}:{from:#x}..{:#x}", text(&program), start + 8);
        let mut deps = Command::new(env!("CARGO_BIN_EXE_tdtool"));
        let output = deps.args(["deps", &place, "--format", "json"]).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["notes"].as_array().unwrap().iter().map(ToString::to_string).collect::<String>()
    };
    // xor eax,eax has two bytes, inc rax three: 48 ff c0.
    assert!(!notes(start + 2).contains("inside"));
    let told = notes(start + 3);
    assert!(told.contains("inside of `inc rax` of count"), "{told}");
}

#[test]
fn registers_of_a_file_are_what_a_block_starts_with() {
    if !sandbox() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registers");
    fs::write(&path, "rbx=0x25000\nrcx=0x26000 # the other\n").unwrap();
    // mov rax,[rbx]; mov rdx,[rcx]
    let args = ["488b03488b11", "--registers", text(&path)];
    let document = json(&args, b"");
    assert_eq!(document["pages"], serde_json::json!(["0x25000", "0x26000"]), "{document}");
    assert!(document["notes"][0].as_str().unwrap().contains("initial registers"), "{document}");
    // What is said by hand counts.
    let document = json(&[&args[..], &["--init", "rbx=0x27000"]].concat(), b"");
    assert_eq!(document["pages"], serde_json::json!(["0x27000", "0x26000"]), "{document}");
    fs::write(&path, "[0x1000]=1\n").unwrap();
    assert!(stderr(&run(&args, b"")).contains("mem=VALUE"));
}

#[test]
fn intel_syntax_iaca_bytes_and_files_without_markers_are_read_too() {
    if !assembler() || !sandbox() {
        return;
    }
    let marked = "nop\nmov ebx, 111\n.byte 0x64, 0x67, 0x90\nadd rax, rbx\nmov ebx,222; .byte 0x64,0x67,0x90\nret";
    assert_eq!(hex(&json(&["--asm-file", "-"], marked.as_bytes())), "4801d8");
    assert_eq!(hex(&json(&["--asm-file", "-"], b"add rax, rbx # all of it\n")), "4801d8");
    let osaca = b".L1:\n# OSACA-BEGIN\n add rax, rbx\n jne .L1\n# OSACA-END\n ret\n";
    assert_eq!(hex(&json(&["--asm-file", "-"], osaca)), "4801d875fb");
    for (input, word) in [
        (&b"# LLVM-MCA-BEGIN\nnop"[..], "no end"),
        (b"# LLVM-MCA-BEGIN\n# LLVM-MCA-END", "empty"),
        (b"# LLVM-MCA-BEGIN\n.data\n.long 0\n# LLVM-MCA-END", "different sections"),
        (b"nop\nbogus rax", "line 2"),
        (b"/**/.incbin \"/etc/passwd\"", "directive"),
        (b".macro a b c\n.\\b\\c \"/etc/passwd\"\n.endm\na inc bin", "directive"),
        (b".zero 99999999999", ".zero"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "no code"),
    ] {
        let output = run(&["--asm-file", "-"], input);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(input));
        assert!(stderr(&output).contains(word), "{word}: {}", stderr(&output));
    }
}

#[test]
fn a_program_gives_its_functions_blocks_and_address_ranges() {
    let folder = tempfile::tempdir().unwrap();
    // Written out, so that the blocks are known: 0: xor; 1: inc, add, cmp, jl; 2: ret.
    let source = r#"__asm__(".globl count\n.type count,@function\ncount:\n xor %eax,%eax\n"
        "1: inc %rax\n add %rax,%rbx\n cmp $9,%rax\n jl 1b\n ret\n.size count,.-count\n");
        int main(void) { return 0; }"#;
    let Some(program) = gcc(folder.path(), source, &["-O1"], "program") else { return };
    if !sandbox() {
        return;
    }
    let data = fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let start = file.symbol_by_name("count").unwrap().address();
    let at = |place: &str| json(&[&format!("{}:{place}", text(&program))], b"");
    assert_eq!(hex(&at("count")), "31c0");
    assert_eq!(hex(&at("count+1")), "48ffc04801c34883f8097cf4");
    let range = format!("{:#x}..{:x}", start + 2, start + 8);
    assert_eq!(hex(&at(&range)), "48ffc04801c3");
    for (place, word) in
        [("count+3", "counted from 0"), ("cuont", "`count`"), ("0..8", "no code at")]
    {
        let output = run(&[&format!("{}:{place}", text(&program))], b"");
        assert!(!output.status.success());
        assert!(stderr(&output).contains(word), "{place}: {}", stderr(&output));
    }
    let output = run(&[text(&program)], b"");
    assert!(stderr(&output).contains("FILE:FUNCTION"), "{}", stderr(&output));
}

#[inline(never)]
fn mixed(a: u64, b: u64) -> u64 {
    std::hint::black_box(a).wrapping_mul(b) ^ b
}

#[test]
fn this_tests_own_binary_is_a_program_like_any_other() {
    if !sandbox() {
        return;
    }
    assert_eq!(mixed(3, 5), 10);
    let own = std::env::current_exe().unwrap();
    let data = fs::read(&own).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let symbol = file.symbols().find(|s| s.name().is_ok_and(|n| n.contains("block_inputs5mixed")));
    let symbol = symbol.unwrap();
    let document = json(&[&format!("{}:{}", text(&own), symbol.name().unwrap())], b"");
    let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
    let code = section.data_range(symbol.address(), symbol.size()).unwrap().unwrap();
    let code: String = code.iter().map(|b| format!("{b:02x}")).collect();
    assert!(!hex(&document).is_empty() && code.starts_with(hex(&document)));
}

#[test]
fn initial_values_are_what_was_asked_for_whatever_else_is_tried() {
    if !sandbox() {
        return;
    }
    // mov rcx,[rbx]; mov rdx,[rcx]
    let args = ["488b0b488b11", "--init", "rbx=0x20000", "--init", "mem=196608"];
    let document = json(&args, b"");
    assert_eq!(document["pages"], serde_json::json!(["0x20000", "0x30000"]), "{document}");
    assert_eq!(document["values"]["registers"][3], 0x20000);
    // A null pointer has no other set of values to save it.
    let document = json(&["488b03", "--init", "rbx=0"], b"");
    assert_eq!(document["status"], "failed", "{document}");
    for (init, word) in [("ebx=1", "rbx=VALUE"), ("rbx", "REG=VALUE"), ("rbx=x", "hexadecimal")] {
        let output = run(&["90", "--init", init], b"");
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(word), "{init}: {}", stderr(&output));
    }
}

#[test]
fn a_document_given_back_repeats_its_values_and_pages() {
    if !sandbox() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("block.json");
    // mov rcx,[rbx]; mov rdx,[rcx], with values that no set has
    let first = json(&["488b0b488b11", "--init", "rbx=0x25000", "--init", "mem=0x35000"], b"");
    fs::write(&path, first.to_string()).unwrap();
    let again = json(&["--repeat", text(&path)], b"");
    for key in ["block", "values", "pages"] {
        assert_eq!(again[key], first[key], "{key}");
    }
    fs::write(&path, first.to_string().replace("0x35000", "0x36000")).unwrap();
    let other = json(&["--repeat", text(&path)], b"");
    assert_eq!(other["status"], "failed");
    let reason = other["reason"].as_str().unwrap();
    assert!(reason.contains("0x35000 too") && reason.contains("not 0x36000"), "{reason}");
    let failed = json(&["488b03", "--no-mapping"], b"");
    assert!(failed["reason"].as_str().unwrap().contains("page fault"), "{failed}");
    fs::write(&path, failed.to_string()).unwrap();
    assert!(stderr(&run(&["--repeat", text(&path)], b"")).contains("did not run"));
}

#[test]
fn every_knob_is_taken_by_itself_and_out_of_range_refused() {
    if !sandbox() {
        return;
    }
    let taken = [
        &["--passes", "2"][..],
        &["--placements", "1"],
        &["--rounds", "4"],
        &["--retries", "0"],
        &["--copies", "16"],
        &["--align", "13"],
        &["--physical-pages", "4"],
        &["--page-limit", "8"],
        &["--value-sets", "2"],
        &["--no-reseed"],
        &["--no-mapping"],
        &["--single-factor"],
        &["--no-loop"],
        &["--method", "bhive"],
    ];
    for knobs in taken {
        let document = json(&[&["4801d8"], knobs].concat(), b"");
        assert!(matches!(document["status"].as_str(), Some("ok" | "unstable")), "{knobs:?}");
    }
    for knobs in
        [["--align", "64"], ["--copies", "1"], ["--placements", "7"], ["--page-limit", "0"]]
    {
        assert_eq!(run(&[&["90"], &knobs[..]].concat(), b"").status.code(), Some(2), "{knobs:?}");
    }
    // Two pages are one too many.
    let document = json(&["488b03488b8b00100000", "--page-limit", "1"], b"");
    assert_eq!(document["status"], "failed");
}

/// A program of one function with IACA markers, and its object file; marked.s is their source.
const PROGRAM: &[u8] = include_bytes!("fixtures/block/marked");
const OBJECT: &[u8] = include_bytes!("fixtures/block/marked.o");

#[test]
fn iaca_markers_in_programs_and_object_files_are_found() {
    // inc eax; add eax,[rip+variable]; cmp eax,9; jl; as objdump -d prints the program.
    let code = "ffc00305761f000083f8097cf3";
    let region = |data| isa::code::read_binary(data).unwrap().remove(0).bytes;
    let hex = |bytes: Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(region(PROGRAM)), code);
    // Before linking the variable has no address: it gets one, and the rest is as it was.
    let object = hex(region(OBJECT));
    assert_eq!((&object[..8], &object[16..]), (&code[..8], &code[16..]));
    assert_ne!(&object[8..16], "00000000");
}

/// Pieces that the parsers know, between arbitrary bytes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        &IACA_START,
        &IACA_END,
        b"# LLVM-MCA-BEGIN a\n",
        b"# LLVM-MCA-END a\n",
        b"# OSACA-BEGIN\n",
        b"/* OSACA-END */\n",
        b".string \"",
        b"/*",
        b"*/",
        b".p2align 4,,10\n",
        b"\"",
        b",",
        b"\r\n",
        b"4801d8",
        b"\\x48 0x01",
        b"hex,status,reason,cycles,low,high,unrolled,loop,pages\n",
        b"\xef\xbb\xbf",
        b"\x7fELF\x02\x01\x01",
        b"rax=0x",
        b"r8d=-1",
        b"mem=18446744073709551615",
        b"a.out:main+",
        b":401000..401008",
        b"{\"schema\":\"tdtool.block/1\",\"block\":{\"hex\":\"90\"},\"values\":",
    ];
    let known = proptest::sample::select(known).prop_map(<[u8]>::to_vec);
    let bytes = proptest::collection::vec(any::<u8>(), 0..12);
    proptest::collection::vec(prop_oneof![3 => known, 1 => bytes], 0..10)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Whatever the bytes are, each parser ends with a value or with an error that says something.
    #[test]
    fn no_input_breaks_a_parser(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        parsers::feed(&bytes);
    }

    /// The same of input that gets further into them.
    #[test]
    fn no_nearly_right_input_breaks_a_parser(bytes in pieces()) {
        parsers::feed(&bytes);
    }

    /// The same of a real program, with some bytes changed or its end cut off.
    #[test]
    fn no_broken_program_breaks_a_parser(
        linked in any::<bool>(),
        changes in proptest::collection::vec((0usize..800, any::<u8>()), 1..6),
        end in 64usize..1600,
    ) {
        let mut data = if linked { PROGRAM } else { OBJECT }.to_vec();
        for (at, byte) in changes {
            let at = at % data.len();
            data[at] = byte;
        }
        data.truncate(end);
        parsers::feed(&data);
    }
}

#[test]
fn words_that_are_no_block_get_cause_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("p.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("written");
    let of = format!("{}:main", text(&source));
    for (given, cause) in [
        ("nofile", "neither machine code nor a file"),
        ("nofile:main", "cannot read nofile"),
        (of.as_str(), "it is text, not a compiled program"),
        ("480", "odd number of digits"),
    ] {
        let told = String::from_utf8_lossy(&run(&[given], b"").stderr).into_owned();
        assert!(told.contains(cause) && told.contains("\ntry:   "), "{told}");
    }
}

#[test]
fn a_long_measurement_shows_on_a_terminal_what_it_is_at_and_leaves_no_trace() {
    use std::io::Read as _;
    if !sandbox() {
        return;
    }
    let terminal = nix::pty::openpty(None, None).unwrap();
    // imul rax,rbx; add rcx,rax; and four more to leave out
    let args = ["480fafc34801c14801d64801d74901d04901d1", "--what-if", "--budget", "500"];
    let mut command = block_support::command(&args);
    command.env("TERM", "xterm").stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null()).stderr(terminal.slave);
    let start = std::time::Instant::now();
    let mut child = command.spawn().unwrap();
    // The parent's end of the terminal goes with the command, so that reading ends.
    drop(command);
    let (mut shown, mut bytes) = (fs::File::from(terminal.master), Vec::new());
    // A terminal without another end is an error to read from.
    let _ = shown.read_to_end(&mut bytes);
    child.wait().unwrap();
    let took = start.elapsed();
    let shown = String::from_utf8_lossy(&bytes).into_owned();
    if took > std::time::Duration::from_secs(3) {
        assert!(shown.contains(" passes; "), "{took:?}: {shown:?}");
    }
    assert!(shown.is_empty() || shown.ends_with("\r\x1b[K"), "{shown:?}");
}
