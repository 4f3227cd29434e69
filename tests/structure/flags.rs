//! No code of ours reads flags that are undefined where it does (Intel SDM, volume 2, "Flags Affected"): programs of
//! tests are looked at when they are built, the workloads here.

use crate::support::flags::{undefined_reads, undefined_reads_of};
use crate::support::run::TDTOOL;
use std::path::Path;

/// Code, and the offsets of what reads an undefined flag, by the manual's description of each instruction.
const KNOWN: [(&str, &[u8], &[u64]); 9] = [
    ("dec %rdi; imul %rax,%rax; jnz", b"\x48\xff\xcf\x48\x0f\xaf\xc0\x75\xf7", &[7]),
    ("imul %rax,%rax; dec %rdi; jnz", b"\x48\x0f\xaf\xc0\x48\xff\xcf\x75\xf7", &[]),
    ("imul %rax,%rax; jo", b"\x48\x0f\xaf\xc0\x70\xfa", &[]),
    ("imul %rax,%rax; mov %rax,%rbx; sete %al", b"\x48\x0f\xaf\xc0\x48\x89\xc3\x0f\x94\xc0", &[7]),
    ("div %rcx; jc", b"\x48\xf7\xf1\x72\xfb", &[3]),
    ("shl $3,%rax; jo", b"\x48\xc1\xe0\x03\x70\xfa", &[4]),
    ("shl $3,%rax; jz", b"\x48\xc1\xe0\x03\x74\xfa", &[]),
    ("bsf %rax,%rcx; jc; jz", b"\x48\x0f\xbc\xc8\x72\xfa\x74\xf8", &[4]),
    ("imul %rax,%rax; ret; jz", b"\x48\x0f\xaf\xc0\xc3\x74\xfa", &[]),
];

#[test]
fn flags_that_are_read_where_they_are_undefined_are_found() {
    for (what, code, expected) in KNOWN {
        assert_eq!(undefined_reads(code, 0), expected, "{what}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn workloads_read_no_undefined_flags() {
    let mut functions = 0;
    let found = undefined_reads_of(Path::new(TDTOOL), |name| {
        let is_one = name.contains("tdtool_workload") || name.contains("8workload");
        functions += usize::from(is_one);
        is_one
    });
    assert!(functions > 20, "only {functions} functions");
    assert_eq!(found, [] as [String; 0]);
}
