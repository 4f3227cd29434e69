//! The memory that a captured loop reads and writes, and how it ends.

use super::{CALLS, measured, notes};
use crate::block::sandbox;
use crate::support::files::Folder;

/// The table lies on three pages, of which the code names the first.
#[test]
fn data_behind_an_address_in_the_code_is_that_of_the_program() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let source = [
        CALLS,
        r#"__asm__(".section .rodata\n .balign 4096\ntable: .rept 1200\n .quad 1\n .endr\n .quad 0\n.text\n"
        ".globl f\n.type f,@function\nf: xor %eax,%eax\n mov %rsi,%rcx\n"
        "1: lea table(%rip),%rdx\n"
        "2: add (%rdx),%rax\n add $8,%rdx\n cmpq $0,(%rdx)\n jne 2b\n"
        "sub $8000,%rcx\n cmp %rdi,%rcx\n jae 1b\n ret\n.size f,.-f\n");"#,
    ]
    .concat();
    let Some(captured) = measured(&source, &folder) else { return };
    let notes = notes(&captured);
    assert!(notes.contains(" iterations "), "{notes}");
}

/// The carry flag from before the loop is part of its sum: flags are not taken over.
#[test]
fn a_run_that_ends_unlike_the_program_is_refused() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    let source = [
        CALLS,
        r#"__asm__(".globl f\n.type f,@function\nf: xor %eax,%eax\n mov $50,%ecx\n stc\n"
        "1: adc $0,%rax\n dec %ecx\n jnz 1b\n ret\n.size f,.-f\n");"#,
    ]
    .concat();
    let Some(captured) = measured(&source, &folder) else { return };
    let reason = format!("{} {}", captured["reason"], notes(&captured));
    assert!(reason.contains("it does not end as in the program"), "{captured}");
}

/// Follows pointers, one in each page, so many times.
fn chase(pages: usize) -> String {
    let source = r#"
void f(void *first);
static char a[PAGES + 1][4096] __attribute__((aligned(4096)));
__asm__(".globl f\n.type f,@function\nf:\n1: mov (%rdi),%rdi\n test %rdi,%rdi\n jne 1b\n ret\n.size f,.-f\n");
int main(void) {
    for (int i = 0; i + 1 < PAGES; i++) *(void **)a[i] = a[i + 1];
    for (int c = 0; c < 300; c++) f(a[0]);
    return 0;
}"#;
    source.replace("PAGES", &pages.to_string())
}

/// The first-level data TLB has at most 96 entries (the manuals of all cores in `events/`).
#[test]
fn more_pages_than_the_first_level_tlb_has_entries_violate_an_assumption() {
    let folder = Folder::new();
    let Some(_busy) = sandbox() else { return };
    for (pages, outcome) in [(252, "violated"), (8, "held"), (300, "violated")] {
        let Some(captured) = measured(&chase(pages), &folder) else { return };
        assert_ne!(captured["status"], "failed", "{captured}");
        let all = captured["assumptions"].as_array().unwrap();
        let of = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
        let (tlb, lines) = (of("data-tlb"), of("l1-data"));
        assert_eq!(tlb["verdict"], outcome, "{tlb}");
        let words = tlb["how"].as_str().unwrap();
        assert!(words.contains(&format!(" {pages} pages")), "{words}");
        let words = lines["how"].as_str().unwrap();
        assert!(words.contains(&format!("{pages} cache")), "{words}");
        // All of them are at the start of their page, and so in one set.
        assert_eq!(lines["verdict"], outcome, "{words}");
    }
}
