//! Bodies written by hand after the kernel's header and `perf_output_sample()`.
#![allow(clippy::unwrap_used)]

use super::*;
use pmu::records::format::{SampleFormat, branch, field, misc, read};

fn body(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn of(sample_type: u64) -> SampleFormat {
    SampleFormat { sample_type, ..SampleFormat::default() }
}

#[test]
fn every_field_stands_where_the_kernel_writes_it() {
    let format = SampleFormat {
        sample_type: (1 << 25) - 1 - field::WEIGHT,
        read_format: 0,
        branch_sample_type: 0,
        regs_user: 0b1_0000_0001,
        regs_intr: 0b10,
        stack_user: 8,
        sample_id_all: true,
        leave_chains: false,
    };
    let words = [
        7,
        0x40_1000,
        (12 << 32) | 11,
        1000,
        0xdead,
        8,
        9,
        3,
        20, // identifier … period
        42, // READ
        2,
        128_u64.wrapping_neg(),
        0xffff_ffff_8100_0000,   // CALLCHAIN
        (0x0403_0201 << 32) | 4, // RAW
        1,
        0x10,
        0x20,
        0b10 | 5 << 4, // BRANCH_STACK
        2,
        100,
        108, // REGS_USER
        8,
        0x5555,
        6, // STACK_USER: size, bytes, how many of them are valid
        0x0003_0002_0000_00e1,
        0x118_6810_0242,
        6, // WEIGHT_STRUCT, DATA_SRC, TRANSACTION
        1,
        55, // REGS_INTR
        0x77,
        66,
        4096,
        2 << 20, // PHYS_ADDR, CGROUP, page sizes
        16,
        1,
        2, // AUX
    ];
    let s = decode(&body(&words), misc::USER | misc::EXACT_IP, &format).unwrap();
    assert_eq!((s.id, s.ip, s.pid, s.tid), (Some(8), Some(0x40_1000), Some(11), Some(12)));
    assert_eq!((s.time, s.addr, s.stream_id), (Some(1000), Some(0xdead), Some(9)));
    assert_eq!((s.cpu, s.period, s.exact, s.user), (Some(3), Some(20), true, Some(true)));
    assert_eq!(s.readings.as_ref().unwrap().values, [Reading { value: 42, id: None, lost: None }]);
    assert_eq!(*s.chain, [Frame { context: Context::Kernel, ip: 0xffff_ffff_8100_0000 }]);
    assert_eq!(s.raw, [1, 2, 3, 4]);
    assert_eq!((s.branches[0].cycles, s.branches[0].mispredicted), (Some(5), Some(false)));
    assert_eq!(s.registers, Some(Registers { wide: true, values: vec![(0, 100), (8, 108)] }));
    assert_eq!(s.stack, [0x55, 0x55, 0, 0, 0, 0], "the valid bytes");
    assert_eq!(s.interrupt_registers, Some(Registers { wide: false, values: vec![(1, 55)] }));
    assert_eq!(s.weight, Some(Weight { total: 225, parts: Some((2, 3)) }));
    assert_eq!((s.data_source, s.transaction), (Some(0x118_6810_0242), Some(6)));
    assert_eq!((s.physical, s.cgroup, s.data_page), (Some(0x77), Some(66), Some(4096)));
    assert_eq!((s.code_page, s.unread), (Some(2 << 20), 0));
}

#[test]
fn fields_of_newer_kernels_are_counted_and_do_not_harm_the_others() {
    let s = decode(&body(&[5, 6, 7]), 0, &of(field::IP | 1 << 40)).unwrap();
    assert_eq!((s.ip, s.unread), (Some(5), 16));
    let format = SampleFormat { read_format: 1 << 9, ..of(field::IP | field::READ) };
    let s = decode(&body(&[5, 6]), 0, &format).unwrap();
    assert_eq!((s.ip, s.readings.is_none(), s.unread), (Some(5), true, 8));
}

#[test]
fn counts_of_a_group_carry_times_ids_and_losses() {
    use read::{GROUP, ID, LOST, TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING};
    let all = GROUP | ID | LOST | TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING;
    let format = SampleFormat { read_format: all, ..of(field::READ) };
    let s = decode(&body(&[2, 90, 80, 1, 11, 0, 2, 12, 5]), 0, &format)
        .unwrap()
        .readings
        .clone()
        .unwrap();
    assert_eq!((s.enabled, s.running), (Some(90), Some(80)));
    let reading = |value, id, lost| Reading { value, id: Some(id), lost: Some(lost) };
    assert_eq!(s.values, [reading(1, 11, 0), reading(2, 12, 5)]);
    let format = SampleFormat { read_format: all - GROUP, ..format };
    let s = decode(&body(&[1, 90, 80, 11, 4]), 0, &format).unwrap().readings.clone().unwrap();
    assert_eq!((s.running, s.values), (Some(80), vec![reading(1, 11, 4)]));
}

#[test]
fn chains_know_where_each_frame_ran() {
    let chain = [5, 0x1, 512_u64.wrapping_neg(), 0x2, 640_u64.wrapping_neg(), 0xc00c1e];
    let s = decode(&body(&chain), misc::KERNEL, &of(field::CALLCHAIN)).unwrap();
    let frame = |context, ip| Frame { context, ip };
    assert_eq!(*s.chain, [frame(Context::Kernel, 1), frame(Context::User, 2)]);
    let guest = [2, 2048_u64.wrapping_neg(), 0x3];
    let s = decode(&body(&guest), misc::KERNEL, &of(field::CALLCHAIN)).unwrap();
    assert_eq!(*s.chain, [frame(Context::Other, 3)]);
}

/// By hand: `leaf` at 0x1005 was called at 0x2010, that by a call at 0x3020, which is one byte before 0x3021.
#[test]
fn calls_that_have_not_returned_are_a_chain_and_no_branches() {
    let format = SampleFormat {
        branch_sample_type: branch::USER | branch::CALL_STACK,
        ..of(field::IP | field::CALLCHAIN | field::BRANCH_STACK)
    };
    let calls = [2, 0x2010, 0x1000, 0, 0x3020, 0x2000, 0];
    let words = |ip: u64, chain: &[u64]| [&[ip], chain, &calls[..]].concat();
    let frame = |context, ip| Frame { context, ip };
    let callers = [frame(Context::User, 0x2011), frame(Context::User, 0x3021)];
    let user = [2, 512_u64.wrapping_neg(), 0x1005];
    let s = decode(&body(&words(0x1005, &user)), misc::USER, &format).unwrap();
    assert_eq!(*s.chain, [&[frame(Context::User, 0x1005)], &callers[..]].concat());
    assert!(s.branches.is_empty());
    let both = [4, 128_u64.wrapping_neg(), 0xffff, 512_u64.wrapping_neg(), 0x1005];
    let s = decode(&body(&words(0xffff, &both)), misc::KERNEL, &format).unwrap();
    let own = [frame(Context::Kernel, 0xffff), frame(Context::User, 0x1005)];
    assert_eq!(*s.chain, [&own, &callers[..]].concat());
}

#[test]
fn branches_tell_only_what_the_hardware_told() {
    let flags = 15 << 20 | 1 << 24 | 2 << 26 | 0b1101;
    let s = decode(&body(&[2, 1, 2, flags, 3, 4, 0]), 0, &of(field::BRANCH_STACK)).unwrap();
    let [wrong, silent] = s.branches[..] else { panic!("{s:?}") };
    assert_eq!((wrong.mispredicted, wrong.transaction), (Some(true), (true, true)));
    assert_eq!((wrong.kind, wrong.wrong_path, wrong.cycles), (18, true, None));
    assert_eq!((silent.mispredicted, silent.kind, silent.cycles), (None, 0, None));
    let s = decode(&body(&[2, 1, 2, 9 << 4, 3, 4, 0]), 0, &of(field::BRANCH_STACK)).unwrap();
    assert_eq!(s.branches.iter().map(|b| b.cycles).collect::<Vec<_>>(), [Some(9), Some(0)]);
}

#[test]
fn the_index_and_the_counters_around_branches_are_found_or_missed_as_the_kernel_left_them() {
    let both = branch::HW_INDEX | branch::COUNTERS;
    let format =
        SampleFormat { branch_sample_type: both, ..of(field::BRANCH_STACK | field::DATA_SRC) };
    for words in [
        &[1, 77, 1, 2, 3, 0xc0, 0xda7a][..], // index, one entry, its counts
        &[1, 77, 1, 2, 3, 0xda7a],           // no counts
        &[0, 77, 0xda7a],                    // an empty stack
        &[0, 0xda7a],                        // no stack at all
    ] {
        let s = decode(&body(words), 0, &format).unwrap();
        assert_eq!((s.data_source, s.branches.len() as u64), (Some(0xda7a), words[0]), "{words:?}");
    }
}

#[test]
fn a_body_that_claims_more_than_it_has_is_refused_by_the_name_of_the_field() {
    for (bit, words, name) in [
        (field::CALLCHAIN, &[u64::MAX][..], "CALLCHAIN"),
        (field::CALLCHAIN, &[2, 1], "CALLCHAIN"),
        (field::BRANCH_STACK, &[1 << 61, 0], "BRANCH_STACK"),
        (field::STACK_USER, &[8, 1], "STACK_USER"),
        (field::RAW, &[0xffff_ffff], "RAW"),
        (field::IP | field::TID, &[1], "TID"),
    ] {
        let error = decode(&body(words), 0, &of(bit)).unwrap_err();
        assert_eq!(error.field, name, "{error}");
    }
}

#[test]
fn kernel_threads_have_no_user_registers_and_no_stack() {
    let format = SampleFormat {
        regs_user: 0xff,
        ..of(field::REGS_USER | field::STACK_USER | field::PHYS_ADDR)
    };
    let s = decode(&body(&[0, 0, 9]), misc::KERNEL, &format).unwrap();
    assert_eq!((s.registers.is_none(), s.physical, s.user), (true, Some(9), Some(false)));
}
