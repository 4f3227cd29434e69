//! Where a block may come from: standard input, digits, files; and what is no block.

use super::parsers::{ADD, IACA_END, IACA_START, OBJECT, PROGRAM};
use super::{block_reading, command, hex, json_reading, sandbox};
use crate::support::files::Folder;
use crate::support::pty::terminal;
use crate::support::run::{self, run};
use crate::support::shown;
use isa::code::read_binary;

#[test]
fn standard_input_takes_raw_code_its_digits_and_marked_code() {
    let Some(_busy) = sandbox() else { return };
    let marked = [&[0x90][..], &IACA_START, &ADD, &IACA_END, &[0xc3]].concat();
    for input in [&ADD[..], b"4801d8\n", b"\\x48\\x01\\xd8", &marked] {
        assert_eq!(hex(&json_reading(&["-"], input)), "4801d8", "{input:x?}");
    }
    let twice = [&marked[..], &marked].concat();
    assert_eq!(json_reading(&["-"], &twice).as_array().unwrap().len(), 2);
    let refused = [&[0x90; 5000][..], b"", &marked[..15]];
    let shown = refused.map(|input| shown::outputs(&block_reading(&["-"], input), &Folder::new()));
    assert_shown!("standard_input_that_is_no_block", shown.join("\n"));
}

#[test]
fn a_terminal_is_no_input() {
    let (_master, slave) = terminal();
    let output = run::ended(run::start(command(["-"]).stdin(slave)));
    assert_eq!(output.code(), Some(2));
    assert!(output.stderr.contains("terminal"), "{}", output.stderr);
}

#[test]
fn digits_that_name_a_file_are_distinguished_from_it() {
    let folder = Folder::new();
    // b2 is `mov dl,imm8` without its operand; c390 is code: ret; nop.
    for name in ["b2", "90"] {
        folder.write(name, "a program");
    }
    let asked = |word| {
        let ran = run(run::command([word, "b2"]).current_dir(folder.path()));
        shown::outputs(&ran, &folder)
    };
    assert_shown!("digits_that_name_a_file", ["block", "deps"].map(asked).join("\n"));
    let Some(_busy) = sandbox() else { return };
    let mut quick = command(["90", "--quick", "--budget", "50"]);
    let stderr = run(quick.current_dir(folder.path())).stdout;
    assert!(stderr.contains("`90`"), "{stderr}");
}

#[test]
fn iaca_markers_in_programs_and_object_files_are_found() {
    // inc eax; add eax,[rip+variable]; cmp eax,9; jl; as objdump -d prints the program.
    let code = "ffc00305761f000083f8097cf3";
    let region = |data| read_binary(data).unwrap().remove(0).bytes;
    let hex = |bytes: Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(region(PROGRAM)), code);
    // Before linking the variable has no address: it gets one, and the rest is as it was.
    let object = hex(region(OBJECT));
    assert_eq!((&object[..8], &object[16..]), (&code[..8], &code[16..]));
    assert_ne!(&object[8..16], "00000000");
}

#[test]
fn words_that_are_no_block_get_cause_and_remedy() {
    let folder = Folder::new();
    let source = folder.write("p.c", "int main(void) { return 0; }\n");
    let of = format!("{source}:main");
    let shown =
        ["nofile", "nofile:main", &of, "480"].map(|given| shown::of(&["block", given], &folder));
    assert_shown!("words_that_are_no_block", shown.join("\n"));
}
