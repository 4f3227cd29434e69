//! Initial values and pages: those that are found, and those that are given.

use super::{json, measure, measured, quick, sandbox};
use crate::support::files::Folder;
use crate::support::shown;
use bench::{BlockMeasurer, Measurement, Outcome};
use serde_json::json;

#[test]
fn every_address_a_block_touches_becomes_legal() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = BlockMeasurer::new(quick());
    for hex in [
        "488b00",                        // mov rax,[rax]: a pointer chain
        "64488b042528000000",            // mov rax,fs:[0x28]
        "488b0500100000 48890d00200000", // rip-relative load and store
        "50 5b",                         // push rax; pop rbx
        "4881c700100000 488b07",         // add rdi,4096; mov rax,[rdi]: a page a copy
        "c5fc5806",                      // vaddps ymm0,ymm0,[rsi]
        "4883c701 89d0 48c1ea08 3247ff 0fb6c0 483314c50a110400 4839cf", // gzip's updcrc
    ] {
        let report = measured(&mut measurer, hex);
        assert!(!report.pages.is_empty(), "{hex}");
    }
}

#[test]
fn a_block_runs_with_values_that_suit_it_and_registers_are_set_again_only_if_they_must() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = BlockMeasurer::new(quick());
    let own = |report: &Measurement| {
        report.assumptions.iter().find(|i| i.name.word() == "own-registers").map(|i| i.outcome)
    };
    for hex in [
        "0f284ef7 0f294ff0",           // movaps xmm1,[rsi-9]; movaps [rdi-16],xmm1
        "c5fc2845b0 c5fc299d50ffffff", // vmovaps around [rbp-0x50] and [rbp-0xb0]
        "49c1e603 4b8d0437 488b10",    // shl r14,3; lea rax,[r15+r14]; mov rdx,[rax]
        "31d2 48f7f1",                 // xor edx,edx; div rcx
        "8b0ced44617f01",              // mov ecx,[rbp*8+0x17f6144]
        "488b06 482b00 488b0cc7",      // an index from a difference of loaded values
        "480fa307",                    // bt [rdi],rax
        "d7",                          // xlatb
        "f3480fbdc1 f3a4",             // lzcnt rax,rcx; rep movsb
        "678b03",                      // mov eax,[ebx]
        "c8100000 c9",                 // enter 16,0; leave
    ] {
        let report = measured(&mut measurer, hex);
        assert_eq!(own(&report), Some(Outcome::Held), "{hex}");
    }
    // mov rcx,[rax]; xor eax,eax: the next copy finds a null pointer whatever rax was.
    let report = measure(&mut measurer, "488b08 31c0");
    assert_eq!(own(&report), Some(Outcome::Violated), "{:?}", report.reason);
}

#[test]
fn registers_of_a_file_are_what_a_block_starts_with() {
    let Some(_busy) = sandbox() else { return };
    let folder = Folder::new();
    let path = folder.write("registers", "rbx=0x25000\nrcx=0x26000 # the other\n");
    // mov rax,[rbx]; mov rdx,[rcx]
    let args = ["488b03488b11", "--registers", &path];
    let document = json(&args);
    assert_eq!(document["pages"], json!(["0x25000", "0x26000"]), "{document}");
    assert!(document["notes"][0].as_str().unwrap().contains("registers"), "{document}");
    // What is said by hand counts.
    let document = json(&[&args[..], &["--init", "rbx=0x27000"]].concat());
    assert_eq!(document["pages"], json!(["0x27000", "0x26000"]), "{document}");
}

#[test]
fn initial_values_are_what_was_asked_for_whatever_else_is_tried() {
    let Some(_busy) = sandbox() else { return };
    // mov rcx,[rbx]; mov rdx,[rcx]
    let args = ["488b0b488b11", "--init", "rbx=0x20000", "--init", "mem=196608"];
    let document = json(&args);
    assert_eq!(document["pages"], json!(["0x20000", "0x30000"]), "{document}");
    assert_eq!(document["values"]["registers"][3], 0x20000);
    // A null pointer has no other set of values to save it.
    let document = json(&["488b03", "--init", "rbx=0"]);
    assert_eq!(document["status"], "failed", "{document}");
}

#[test]
fn values_that_cannot_be_set_are_refused_with_those_that_can() {
    let folder = Folder::new();
    let path = folder.write("registers", "[0x1000]=1\n");
    let asked = [
        &["block", "90", "--registers", &path][..],
        &["block", "90", "--init", "ebx=1"],
        &["block", "90", "--init", "rbx"],
        &["block", "90", "--init", "rbx=x"],
    ];
    assert_shown!("values_that_cannot_be_set", shown::each(&asked, &folder));
}

#[test]
fn a_document_given_back_repeats_its_values_and_pages() {
    let Some(_busy) = sandbox() else { return };
    let folder = Folder::new();
    // mov rcx,[rbx]; mov rdx,[rcx], with values that no set has
    let first = json(&["488b0b488b11", "--init", "rbx=0x25000", "--init", "mem=0x35000"]);
    let path = folder.write("block.json", first.to_string());
    let again = json(&["--repeat", &path]);
    for key in ["block", "values", "pages"] {
        assert_eq!(again[key], first[key], "{key}");
    }
    folder.write("block.json", first.to_string().replace("0x35000", "0x36000"));
    let other = json(&["--repeat", &path]);
    assert_eq!(other["status"], "failed");
    let reason = other["reason"].as_str().unwrap();
    assert!(reason.contains("0x35000") && reason.contains("0x36000"), "{reason}");
    let failed = json(&["488b03", "--no-mapping"]);
    assert_eq!(failed["status"], "failed", "{failed}");
    folder.write("block.json", failed.to_string());
    assert_shown!(
        "block_to_repeat_that_did_not_run",
        shown::of(&["block", "--repeat", &path], &folder)
    );
}

/// Two copies read on a page and write on another one; 64 repetitions of them would read on the next page.
/// The second attempt, with the copies restored, once found the pages mapped in another order and was refused.
#[test]
fn a_pointer_near_the_end_of_a_page_does_not_fail_a_long_block() {
    let Some(_busy) = sandbox() else { return };
    let code =
        ["mov rax,[r10]\nmov [rsp-0x40],rax\n", &"add rax,rcx\n".repeat(600), "add r10,0x40\n"]
            .concat();
    let values = ["--init", "r10=0x562118dea4d0", "--init", "rsp=0x7ffcd9195e68"];
    let document = json(&[&["--asm", &code][..], &values].concat());
    let reason = document["reason"].to_string();
    assert!(document["status"] != "failed", "{reason}");
}
