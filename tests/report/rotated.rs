//! A loop whose head is after its body, as compilers lay out `while` loops: the estimate's row has all of it.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;

/// 2000 runs of 20,000 iterations that enter at the comparison; a branch of the body depends on random bits (xorshift,
/// Marsaglia 2003).
const ROTATED: &str = r#"
__attribute__((noinline)) static long rotated(long n, unsigned long s) {
    long sum = 0, i = 0;
    __asm__ volatile(
        "jmp 2f\n"
        "1: mov %[s],%%rax\n shl $13,%%rax\n xor %%rax,%[s]\n"
        "mov %[s],%%rax\n shr $7,%%rax\n xor %%rax,%[s]\n"
        "mov %[s],%%rax\n shl $17,%%rax\n xor %%rax,%[s]\n"
        "test $0x10,%b[s]\n jz 2f\n add $3,%[sum]\n"
        "2: inc %[i]\n cmp %[n],%[i]\n jl 1b\n"
        : [s] "+r"(s), [sum] "+r"(sum), [i] "+r"(i) : [n] "r"(n) : "rax", "cc");
    return sum;
}
int main(void) {
    long sum = 0;
    for (int k = 0; k < 2000; k++) sum += rotated(20000, 88172645463325252UL + k);
    return sum == 1;
}
"#;

#[test]
fn a_rotated_loop_has_its_body_its_branches_and_its_trips() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, ROTATED, &[]) else { return };
    let ran = report(&["--estimate", "--format", "json", "--", &program]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    let loops = document["estimate"]["loops"].as_array().expect("loops");
    let found = loops.iter().find(|row| row["name"] == "rotated");
    need!(found.is_some(), format!("too few samples: {:#}", document["estimate"]));
    let row = found.expect("the loop");
    let number = |key: &str| {
        let text = row[key].as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
        u64::from_str_radix(text, 16).expect("an address")
    };
    assert!(number("start") < number("head") && number("head") < number("end"), "{row:#}");
    let code = row["code"].as_array().expect("code");
    assert!(
        code.iter().any(|line| line["text"].as_str().is_some_and(|t| t.starts_with("je "))),
        "{row:#}"
    );
    // 20,000 increments an entry, by the source.
    assert!(row["trips"].as_f64().is_some_and(|trips| (trips - 20_000.0).abs() < 1.0), "{row:#}");
    // Branches are recorded if mispredictions could explain something; half the outcomes of one of two are random.
    let mispredicted = row["mispredicted"].as_f64();
    let why = row["reasons"]["mispredicted"].as_str().unwrap_or_default();
    assert!(mispredicted.is_some() || why.contains("not recorded"), "{row:#}");
    let blocks = document["estimate"]["blocks"].as_array().expect("blocks");
    assert!(!blocks.iter().any(|block| block["start"] == row["head"]), "{blocks:#?}");
}
