//! Loads of known patterns, from code and values made by hand.

use super::*;
use crate::class::Class;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeMap;

/// A loop of one block.
fn cycle(hex: &str) -> Vec<Part> {
    let bytes = isa::code::parse_hex(hex).unwrap();
    let instructions = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).into_iter().collect();
    vec![Part { instructions, successors: vec![0] }]
}

fn load(width: u32, origins: &[usize]) -> Load {
    Load { width, origins: origins.to_vec() }
}

fn classes(loads: &[Load], burst: Vec<Event>) -> Vec<Class> {
    let all = classify(loads, &[burst]).into_iter().flatten();
    all.inspect(|one| assert_eq!(one.agree, one.windows, "{one:?}")).map(|one| one.class).collect()
}

/// A ring through `count` nodes of 64 bytes in an order that looks random: address → next address.
fn ring(count: u64) -> BTreeMap<u64, u64> {
    let at = |i: u64| 0x10_0000 + 64 * (i * 40_503 % count);
    (0..count).map(|i| (at(i), at((i + 1) % count))).collect()
}

#[test]
fn a_chase_is_its_own_origin_and_a_key_is_an_offset_of_it() {
    // add rbx, [rax+8]; mov rax, [rax]; jmp 0
    let found = origins(&cycle("48 03 58 08, 48 8b 00, eb f7"), &[0, 4]);
    assert_eq!(found, [vec![1], vec![1]]);
    let next = ring(1021);
    let mut at = 0x10_0000;
    let mut burst = Vec::new();
    for _ in 0..512 {
        burst.push(Event { load: 0, address: at + 8, value: Some(at * 7) });
        burst.push(Event { load: 1, address: at, value: Some(next[&at]) });
        at = next[&at];
    }
    let chase = Class::Chase { scale: 1, offset: 0 };
    let expected = [Class::OffsetOfChase { of: 1, offset: 8 }, chase];
    assert_eq!(classes(&[load(8, &found[0]), load(8, &found[1])], burst), expected);
}

#[test]
fn an_unrolled_chase_is_one() {
    // mov rax, [rax]; mov rax, [rax]; jmp 0
    let found = origins(&cycle("48 8b 00, 48 8b 00, eb f8"), &[0, 3]);
    assert_eq!(found, [vec![1], vec![0]]);
    let next = ring(1021);
    let mut at = 0x10_0000;
    let mut burst = Vec::new();
    for n in 0..512 {
        burst.push(Event { load: n % 2, address: at, value: Some(next[&at]) });
        at = next[&at];
    }
    let chase = Class::Chase { scale: 1, offset: 0 };
    assert_eq!(classes(&[load(8, &[1]), load(8, &[0])], burst), [chase.clone(), chase]);
}

#[test]
fn a_chase_of_unoptimised_code_goes_through_the_stack() {
    // mov rax, [rbp-8]; mov rax, [rax]; mov [rbp-8], rax; jmp 0
    let found = origins(&cycle("48 8b 45 f8, 48 8b 00, 48 89 45 f8, eb f3"), &[0, 4]);
    assert_eq!(found, [vec![], vec![0, 1]], "the stack word and what is stored there");
    let next = ring(1021);
    let mut at = 0x10_0000;
    let mut burst = Vec::new();
    for _ in 0..512 {
        burst.push(Event { load: 0, address: 0x7fff_0000, value: Some(at) });
        burst.push(Event { load: 1, address: at, value: Some(next[&at]) });
        at = next[&at];
    }
    let chase = Class::Chase { scale: 1, offset: 0 };
    assert_eq!(classes(&[load(8, &[]), load(8, &found[1])], burst), [Class::Constant, chase]);
}

#[test]
fn a_counter_on_the_stack_is_no_index() {
    // mov rax, [rbp-8]; add rbx, [rcx+rax*8]; inc qword [rbp-8]; jmp 0
    let found = origins(&cycle("48 8b 45 f8, 48 03 1c c1, 48 ff 45 f8, eb f2"), &[0, 4]);
    let burst = (0..512)
        .flat_map(|i| {
            let first = Event { load: 0, address: 0x7fff_0000, value: Some(i) };
            [first, Event { load: 1, address: 0x1000 + 8 * i, value: Some(1) }]
        })
        .collect();
    let all = [load(8, &found[0]), load(8, &found[1])];
    assert_eq!(classes(&all, burst), [Class::Constant, Class::Stride(8)]);
}

#[test]
fn a_hash_of_loaded_keys_is_irregular() {
    // mov rax, [rsi]; add rsi, 8; imul rax, rdx; shr rax, 52; add rbx, [rdi+rax*8]; jmp 0
    let code = "48 8b 06, 48 83 c6 08, 48 0f af c2, 48 c1 e8 34, 48 03 1c c7, eb eb";
    let found = origins(&cycle(code), &[0, 15]);
    assert_eq!(found, [vec![], vec![0]]);
    let burst = (0..512_u64)
        .flat_map(|i| {
            let key = i * i + 17;
            let slot = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
            let first = Event { load: 0, address: 0x1000 + 8 * i, value: Some(key) };
            [first, Event { load: 1, address: 0x10_0000 + 8 * slot, value: Some(1) }]
        })
        .collect();
    let all = [load(8, &[]), load(8, &[0])];
    assert_eq!(classes(&all, burst), [Class::Stride(8), Class::Irregular]);
}

#[test]
fn rows_and_repeated_addresses_are_strides() {
    let row = |i: u64| 0x1000 + 4096 * (i / 20) + 8 * (i % 20);
    let rows = (0..512).map(|i| Event { load: 0, address: row(i), value: Some(1) }).collect();
    assert_eq!(classes(&[load(8, &[])], rows), [Class::Stride(8)]);
    let thrice = |i: u64| Event { load: 0, address: 0x1000 + 8 * (i / 3), value: Some(1) };
    assert_eq!(classes(&[load(8, &[])], (0..512).map(thrice).collect()), [Class::Stride(8)]);
}

#[test]
fn few_executions_have_no_class() {
    let one = |i: u64| Event { load: 0, address: 0x1000 + 8 * i, value: None };
    assert_eq!(classify(&[load(8, &[])], &[(0..7).map(one).collect()]), [None]);
}

#[test]
fn a_scale_and_an_offset_are_found_for_signed_indices_too() {
    let base = 0x7000_0000_0000_u64;
    let indices = [3_i32, -7, 100, 42, -1, 6, 77, 12];
    let pair =
        |i: &i32| (u64::from(i.cast_unsigned()), base.wrapping_add_signed(i64::from(*i) * 24));
    let pairs: Vec<_> = indices.iter().map(pair).collect();
    let expected = Linear { scale: 24, offset: base.cast_signed() };
    assert_eq!(linear(&pairs, 4), Some(expected));
}

#[test]
fn few_different_values_show_no_relation() {
    let pairs: Vec<_> = (0..64).map(|i| (i % 2, 0x1000 + 8 * (i % 2))).collect();
    assert_eq!(linear(&pairs, 8), None);
}

#[test]
fn a_hash_is_not_linear() {
    let hash = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    let pairs: Vec<_> = (0..64).map(|i| (i * 3 + 1, 0x1000 + 8 * hash(i * 3 + 1))).collect();
    assert_eq!(linear(&pairs, 8), None);
}
