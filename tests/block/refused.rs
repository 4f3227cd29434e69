//! Instructions that must not run: refused before they do.

use super::hostile::{assert_healthy, healthy, impatient};
use super::{measure, sandbox};
use bench::Status;

#[test]
fn what_must_not_run_is_refused_before_it_runs() {
    let Some(_busy) = sandbox() else { return };
    let mut measurer = impatient();
    let before = healthy(&mut measurer);
    // Encodings from the Intel and AMD manuals' opcode tables.
    for hex in [
        "0f05",          // syscall
        "0f34",          // sysenter
        "cd80",          // int 0x80
        "cc",            // int3
        "0f0b",          // ud2
        "48cf",          // iretq
        "9d",            // popfq
        "6800000400 9d", // AC by popf
        "6800010000 9d", // TF by popf
        "c3",            // ret
        "cb",            // far ret
        "ffd0",          // call rax
        "ffe0",          // jmp rax
        "e800000000",    // call
        "eb0148 0f05",   // a jump into the middle
        "e2fe",          // loop
        "e3fe",          // jrcxz
        "f4",            // hlt
        "fa",            // cli
        "fb",            // sti
        "ec",            // in al,dx
        "ee",            // out dx,al
        "6c",            // insb
        "0f30",          // wrmsr
        "0f32",          // rdmsr
        "0f33",          // rdpmc
        "0f20c0",        // mov rax,cr0
        "0f21c0",        // mov rax,dr0
        "0f00d8",        // ltr
        "0f0110",        // lgdt
        "0f0100",        // sgdt
        "0f01f8",        // swapgs
        "f3480faec0",    // rdfsbase
        "f3480faec8",    // rdgsbase
        "f3480faed0",    // wrfsbase
        "f3480faed8",    // wrgsbase
        "8ee0",          // mov fs,eax
        "8ed0",          // mov ss,eax
        "0fa1",          // pop fs
        "0fb403",        // lfs
        "0f01d0",        // xgetbv
        "0f01d1",        // xsetbv
        "0fae23",        // xsave
        "0fae2b",        // xrstor
        "0fae03",        // fxsave
        "0fae0b",        // fxrstor
        "0f01ef",        // wrpkru
        "0f01ee",        // rdpkru
        "c4e27b4b0418",  // tileloadd
        "c4e2784900",    // ldtilecfg
        "c4e27849c0",    // tilerelease
        "0fae3b",        // clflush
        "660fae3b",      // clflushopt
        "660fae33",      // clwb
        "0f01fc",        // clzero
        "0f01c8",        // monitor
        "f30faef0",      // umonitor
        "0f01c1",        // vmcall
        "0f01d9",        // vmmcall
        "0fa2",          // cpuid
        "0fc7f0",        // rdrand
        "c7f800000000",  // xbegin
        "0f01d5",        // xend
        "f20f38f803",    // enqcmd
        "f30f01ea",      // saveprevssp
        "0f08",          // invd
    ] {
        let report = measure(&mut measurer, hex);
        assert_eq!(report.status, Status::Rejected, "{hex}: {:?}", report.reason);
        assert!(report.reason.is_some(), "{hex}");
    }
    assert_healthy(&mut measurer, &before, "all that is refused");
}
