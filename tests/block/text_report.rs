//! What the text of a report says: addresses, notes and remedies fit what was measured.

use super::{block, json, sandbox};
use crate::support::files::{Folder, text};
use crate::support::tools::{gcc, tool};

/// A loop, and a jump to code before its function.
const JUMPS: &str = r#"__asm__("before: nop\n"
    ".globl odd\n.type odd,@function\nodd: xor %eax,%eax\n"
    "1: inc %rax\n cmp $9,%rax\n jl 1b\n test %edi,%edi\n je before\n jmp after\n.size odd,.-odd\n"
    "after: ret\n");
    int main(void) { return 0; }"#;

#[test]
fn a_programs_block_has_the_addresses_that_objdump_shows() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), JUMPS, &["-O1"], "program") else { return };
    let Some(dump) = tool("objdump", &["-d", "-M", "intel", text(&program)]) else { return };
    let Some(_busy) = sandbox() else { return };
    // `1131:  7c f7   jl     112a <odd+0x2>`: the address before the bytes, the target before its name.
    let shown = |address: &str| {
        let of = |line: &&str| line.trim_start().starts_with(&format!("{address}:"));
        dump.lines().find(of).unwrap_or_else(|| panic!("{address}: {dump}"))
    };
    for place in ["odd+0", "odd+1", "odd+2"] {
        let document = json(&[&format!("{}:{place}", text(&program))]);
        for line in document["block"]["instructions"].as_array().unwrap() {
            let address = line["address"].as_str().unwrap().trim_start_matches("0x");
            let (dumped, said) = (shown(address), line["text"].as_str().unwrap());
            if said.starts_with('j') {
                let target = dumped.split(" <").next().unwrap().rsplit(' ').next().unwrap();
                assert!(said.ends_with(&format!(" 0x{target}")), "{said}: {dumped}");
            }
        }
    }
    // Each of two blocks has its own.
    let of = |number: u32| format!("{}:odd+{number}", text(&program));
    let quick = ["--quick", "--budget", "50", "--format", "json"];
    let pair = block([&[&*of(0), "--against", &of(1)], &quick[..]].concat()).json();
    for (name, number) in [("a", 0), ("b", 1)] {
        let alone = json(&[&of(number)]);
        assert_eq!(pair[name]["block"]["instructions"], alone["block"]["instructions"], "{name}");
    }
}

#[test]
fn a_block_without_a_program_has_offsets_and_no_addresses() {
    let Some(_busy) = sandbox() else { return };
    // dec ecx; jne to seven bytes before it.
    let document = json(&["ffc975f5"]);
    let lines = document["block"]["instructions"].as_array().unwrap();
    assert_eq!(lines[1]["text"], "jne short -7", "{document}");
    assert!(lines.iter().all(|line| line.get("address").is_none()), "{document}");
}
