//! Plans of small functions, by hand, and their counts.

use super::{Chosen, Kind, NoPlace, Placement, Request, Room, What, observe, plan, solve};
use crate::emit::{emit, emit_observer, most};
use crate::facts::{Block, Exit, Function, Loop};
use iced_x86::{Decoder, DecoderOptions, Instruction, RflagsBits};
use isa::code::parse_hex;

/// A function at 0x1000 of blocks given by their bytes and successors. All flags are dead, but before
/// conditional jumps and in the blocks in `live`. Jumps lead to block starts only.
fn function(blocks: &[(&str, &[usize])], live: &[usize]) -> Function {
    let (mut all, mut bytes) = (Vec::new(), Vec::new());
    for (number, (hex, successors)) in blocks.iter().enumerate() {
        let code = parse_hex(hex).unwrap();
        let start = 0x1000 + bytes.len() as u64;
        let decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
        let instructions: Vec<_> = decoder.into_iter().collect();
        let is_live = |i: &Instruction| live.contains(&number) || i.is_jcc_short_or_near();
        let flags = instructions.iter().map(|i| if is_live(i) { u32::MAX } else { 0 }).collect();
        all.push(Block {
            start,
            end: start + code.len() as u64,
            live: flags,
            certain: instructions.len(),
            instructions,
            successors: successors.to_vec(),
            exit: if successors.is_empty() { Exit::Leaves } else { Exit::None },
            is_entered: number == 0,
            is_reached: true,
        });
        bytes.extend(code);
    }
    let targets = all.iter().flat_map(|b| &b.instructions).map(|i| i.near_branch_target());
    let fixed = targets.filter(|target| *target != 0).collect();
    let range = 0x1000..0x1000 + bytes.len() as u64;
    Function { range, bytes, blocks: all, loops: Vec::new(), fixed, is_complete: true }
}

fn kinds(function: &Function, room: &mut Room) -> Vec<Option<Kind>> {
    let kind = |placement: &Placement| match placement {
        Placement::Placed(site) => Some(site.kind),
        Placement::Within => Some(Kind::Multi),
        _ => None,
    };
    plan(function, room, &Chosen::All).placements.iter().map(kind).collect()
}

/// 1000: test edi,edi; je 1009
/// 1004: mov eax,1 / 1009: ret
const BRANCH: [(&str, &[usize]); 3] =
    [("85 ff, 74 05", &[2, 1]), ("b8 01 00 00 00", &[2]), ("c3", &[])];

#[test]
fn a_short_block_shares_the_jump_of_the_next_one() {
    // The first block has four bytes, and the second is only fallen into: one jump for both.
    let branch = function(&BRANCH, &[]);
    let planned = plan(&branch, &mut Room::default(), &Chosen::All);
    let [Placement::Placed(site), Placement::Within, Placement::Derived] = &planned.placements[..]
    else {
        panic!("{planned:?}");
    };
    assert_eq!((site.kind, site.at, site.next), (Kind::Multi, 0x1000, 0x1009));
    // With a jump into the second block each needs its own.
    let mut entered = branch.clone();
    entered.fixed.extend([0x1004]);
    assert_eq!(kinds(&entered, &mut Room::default()), [None, Some(Kind::Single), None]);
    // 1000 + 5 + (b8 05 74 00): the bytes after `test` give all but the lowest.
    let place = 0x1005_u64.wrapping_add_signed(i32::from_le_bytes([0, 0x74, 0x05, 0xb8]).into());
    let page = place & !0xfff;
    let mut room = Room::new(std::iter::once(page..page + 0x2000), 0);
    let puns = kinds(&entered, &mut room);
    assert!(puns[0].is_some_and(Kind::is_pun) || place >> 63 == 1, "{puns:?}");
}

/// By hand: 2e e9 before 74 05 b8 01 is a jump over `test` whose displacement is 0x1b80574.
#[test]
fn a_prefix_moves_a_jump_to_other_bytes() {
    let mut entered = function(&BRANCH, &[]);
    entered.fixed.extend([0x1004]);
    let place = 0x1006 + 0x01b8_0574;
    let page = place & !0xfff;
    let planned =
        plan(&entered, &mut Room::new(std::iter::once(page..page + 0x1000), 0), &Chosen::All);
    let Placement::Placed(site) = &planned.placements[0] else { panic!("{planned:?}") };
    assert_eq!((site.kind, site.at, site.trampoline), (Kind::Pun(1), 0x1000, Some(place)));
    let patch = emit(site, &entered.bytes[..2], 0, |_| place + 0x1000, place).unwrap();
    let patched = [&patch.jump, &entered.bytes[2..]].concat();
    let jump = Decoder::with_ip(64, &patched, 0x1000, DecoderOptions::NONE).decode();
    assert_eq!((jump.len(), jump.near_branch_target()), (6, place));
}

#[test]
fn counts_follow_and_contradictions_are_found() {
    let branch = function(&BRANCH, &[]);
    // Entered 10 times, 4 times through the second block: 6 jump, 10 return.
    let solved = solve(&branch, &[Some(10), Some(4), None], 0);
    assert_eq!(solved.blocks, [Some(10), Some(4), Some(10)]);
    assert_eq!(solved.edges, [(0, 2, Some(6)), (0, 1, Some(4)), (1, 2, Some(4))]);
    assert!(solved.is_consistent());
    // A sum too much by one.
    let lost = solve(&branch, &[Some(10), Some(4), Some(9)], 0);
    assert_eq!((lost.checked, lost.contradictions.len()), (1, 1), "{lost:?}");
    assert!(solve(&branch, &[Some(10), Some(4), Some(9)], 1).is_consistent());
    // More through the second block than came.
    // One of 3 jumped 4 times: -1 did not.
    let below = solve(&branch, &[Some(3), Some(4), None], 0);
    assert!(below.contradictions.is_empty());
    assert!(below.negative.iter().all(|(_, n)| *n == -1) && !below.is_consistent(), "{below:?}");
}

/// 1000: test edi,edi; mov eax,1; jmp rax, which may lead to the second one
#[test]
fn only_what_runs_as_often_as_a_block_is_entered_has_a_probe() {
    let mut known = function(&[("85 ff, b8 01 00 00 00, ff e0", &[])], &[]);
    assert_eq!(kinds(&known, &mut Room::default()), [Some(Kind::Single)]);
    (known.is_complete, known.blocks[0].certain) = (false, 1);
    let planned = plan(&known, &mut Room::default(), &Chosen::All);
    let [Placement::Refused(why)] = &planned.placements[..] else { panic!("{planned:?}") };
    assert_eq!(*why, NoPlace::Hidden);
}

/// 1000: mov ecx,1; test edi,edi; je 100e
/// 1009: mov eax,1 / 100e: mov ebx,1; ret
const WIDE: [(&str, &[usize]); 3] = [
    ("b9 01 00 00 00, 85 ff, 74 05", &[2, 1]),
    ("b8 01 00 00 00", &[2]),
    ("bb 01 00 00 00, c3", &[]),
];

#[test]
fn no_edge_follows_from_a_block_that_an_unknown_jump_may_lead_into() {
    let mut branch = function(&BRANCH, &[]);
    branch.is_complete = false;
    let edge = |function: &Function| solve(function, &[Some(10), Some(4), Some(10)], 0).edges[2];
    assert_eq!(edge(&branch), (1, 2, Some(4)));
    branch.blocks[1].certain = 0;
    assert_eq!(edge(&branch), (1, 2, None));
}

#[test]
fn a_hot_block_needs_no_probe_where_another_runs_as_often() {
    let wide = function(&WIDE, &[]);
    let all = plan(&wide, &mut Room::default(), &Chosen::All);
    assert_eq!(all.sites().count(), 3, "{all:?}");
    // The first and the last run equally often; the one between is skipped at times.
    let fewer = plan(&wide, &mut Room::default(), &Chosen::Sparing(vec![4, 0, 9]));
    let placed: Vec<bool> = fewer.placements.iter().map(Placement::is_counted).collect();
    assert_eq!(placed, [false, true, true], "{fewer:?}");
    assert_eq!(fewer.placements[0], Placement::Derived);
    assert_eq!(solve(&wide, &[None, Some(4), Some(10)], 0).blocks[0], Some(10));
    // A block that does not run has a probe.
    assert_eq!(
        plan(&wide, &mut Room::default(), &Chosen::Sparing(vec![0, 0, 0])).sites().count(),
        3
    );
}

#[test]
fn trampolines_count_execute_and_go_back() {
    let branch = function(&BRANCH, &[]);
    let planned = plan(&branch, &mut Room::default(), &Chosen::All);
    let site = planned.sites().next().unwrap();
    let bias = 0x5555_0000_0000;
    let counter = |block: usize| bias + 0x80_0000 + 8 * block as u64;
    let patch = emit(site, &branch.bytes[..9], bias, counter, bias + 0x90_0000).unwrap();
    let decoder = Decoder::with_ip(64, &patch.trampoline, bias + 0x90_0000, DecoderOptions::NONE);
    let texts: Vec<String> = decoder.into_iter().map(|i| isa::code::text(&i)).collect();
    // By hand: both counts, the three instructions with their old targets, the way back.
    let expected = [
        "inc qword ptr ds:[0x555500800000]",
        "test edi,edi",
        "je 0x555500001009",
        "inc qword ptr ds:[0x555500800008]",
        "mov eax,1",
        "jmp 0x555500001009",
    ];
    let plain = |text: &String| text.replace("rip+", "").replace("near ", "");
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (found, expected) in texts.iter().map(plain).zip(expected) {
        let word = expected.split(' ').next().unwrap();
        assert!(found.starts_with(word), "{found}, not {expected}");
    }
    assert_eq!(patch.prefixes.len(), 2);
    assert!(patch.prefixes.iter().all(|at| patch.trampoline[*at..*at + 2] == [0x3e; 2]));
    // jmp from 0x1000 to 0x900000: 0x8fefff... less the five bytes of the jump.
    assert_eq!(patch.jump, [&[0xe9][..], &(0x90_0000_u32 - 0x1005).to_le_bytes()].concat());
}

#[test]
fn live_flags_are_kept() {
    let branch = function(&BRANCH, &[0, 1]);
    let planned = plan(&branch, &mut Room::default(), &Chosen::All);
    let site = planned.sites().next().unwrap();
    assert!(site.keeps_flags);
    let patch = emit(site, &branch.bytes[..9], 0, |_| 0x80_0000, 0x90_0000).unwrap();
    // lahf and sahf, once for each of the two counts.
    let count = |byte: u8| {
        let decoder = Decoder::with_ip(64, &patch.trampoline, 0, DecoderOptions::NONE);
        let one =
            |i: &iced_x86::Instruction| i.len() == 1 && patch.trampoline[i.ip() as usize] == byte;
        decoder.into_iter().filter(one).count()
    };
    assert_eq!((count(0x9f), count(0x9e)), (2, 2), "{:x?}", patch.trampoline);
}

/// A request for the outcome of the jump in [`BRANCH`].
const OUTCOME: Request = Request { at: 0x1002, what: What::Outcome };

#[test]
fn a_jump_is_observed_by_a_probe_before_it() {
    // The jump has two bytes, so the instruction after it is executed in the trampoline, too.
    let branch = function(&BRANCH, &[]);
    let found = observe(&branch, &[OUTCOME], &mut Room::default(), most);
    assert!(found.refused.is_empty(), "{found:?}");
    let [observer] = &found.observers[..] else { panic!("{found:?}") };
    assert_eq!((observer.at, observer.next, observer.until), (0x1002, 0x1009, 0x1009));
    // A block that is entered otherwise, too: nothing fits, and there is no room for a pun.
    let mut entered = branch;
    entered.fixed.extend([0x1004]);
    let found = observe(&entered, &[OUTCOME], &mut Room::default(), most);
    assert_eq!((found.observers.len(), found.refused.len()), (0, 1));
    // 1000: mov eax,1; test edi,edi; je 1000: the first instruction has room for the jump, the others
    // stay where they are, and the trampoline executes all.
    let long = function(&[("b8 01 00 00 00 85 ff 74 f7", &[0])], &[]);
    let request = Request { at: 0x1007, what: What::Outcome };
    let found = observe(&long, &[request], &mut Room::default(), most);
    let [observer] = &found.observers[..] else { panic!("{found:?}") };
    assert_eq!((observer.kind, observer.next, observer.until), (Kind::Single, 0x1005, 0x1009));
    let nowhere = Request { at: 0x1001, ..request };
    assert_eq!(observe(&long, &[nowhere], &mut Room::default(), most).refused.len(), 1);
}

/// 1000: test edi,edi; je 1009 / 1004: mov eax,1 / 1009: ret, then three bytes of `nop` and one of `int3`
#[test]
fn a_way_out_of_one_byte_has_room_in_the_padding_after_it() {
    let request = Request { at: 0x1009, what: What::Marked { argument: None, process: 0 } };
    let observed = |padding: &str, more: &[u64]| {
        let mut padded = function(&BRANCH, &[]);
        padded.bytes.extend(parse_hex(padding).unwrap());
        padded.fixed.extend(more.iter().copied());
        observe(&padded, &[request], &mut Room::default(), most).observers
    };
    let [observer] = &observed("0f 1f 00, cc", &[])[..] else { panic!("no probe") };
    assert_eq!((observer.kind, observer.at, observer.until), (Kind::Single, 0x1009, 0x100a));
    assert_eq!(observer.next, 0x100e);
    // Too little; code; something leads there.
    assert_eq!(observed("0f 1f 00", &[]), []);
    assert_eq!(observed("0f 1f 00, c3, cc", &[]), []);
    assert_eq!(observed("0f 1f 00, cc", &[0x100c]), []);
}

/// The loop over records of tests/figures/prefetch/set_aside/leaves.c: of its last block the first instruction has four
/// bytes, and something may lead into them.
#[test]
fn a_block_that_no_jump_fits_into_is_observed_after_the_one_before() {
    let mut leaves = function(
        &[
            ("4c 8b 07, 8b 77 08, 31 d2, 4c 89 c0, 49 8d 48 3c, 90", &[1]),
            ("39 30, 83 d2 00, 48 83 c0 04, 48 39 c1, 75 f2", &[1, 2]),
            ("41 03 50 3c, 48 83 c7 10, 49 01 d1, 49 39 fa, 75 d2", &[0, 3]),
            ("c3", &[]),
        ],
        &[],
    );
    leaves.fixed.extend([0x101f]);
    let address = |at| Request { at, what: What::Address };
    let observed = |leaves: &Function, requests: &[Request]| {
        let found = observe(leaves, requests, &mut Room::default(), most);
        let probes = found.observers.iter().map(|one| (one.at, one.until, one.requests.clone()));
        let mut probes: Vec<_> = probes.collect();
        probes.sort();
        (probes, found.refused)
    };
    let all = [0x1000, 0x1010, 0x101e].map(address);
    let (probes, refused) = observed(&leaves, &all);
    let expected = vec![(0x1000, 0x1006, vec![0]), (0x1010, 0x1022, vec![1, 2])];
    assert_eq!((probes, refused.len()), (expected, 0));
    // Nothing is wanted of the block before.
    let (probes, refused) = observed(&leaves, &all[2..]);
    assert_eq!((probes.len(), refused.len()), (1, 0), "{probes:x?}");
    assert_eq!((probes[0].1, &probes[0].2), (0x1022, &vec![0]));
    // It is also jumped to: executions would be missed.
    leaves.blocks[0].successors.push(2);
    let (probes, refused) = observed(&leaves, &all);
    assert_eq!(probes.len(), 2);
    let [(2, why)] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(*why, NoPlace::MayLead(0x101f));
}

#[test]
fn an_observer_records_before_the_jump_and_keeps_the_flags() {
    let branch = function(&BRANCH, &[]);
    let found = observe(&branch, &[OUTCOME], &mut Room::default(), most);
    let observer = &found.observers[0];
    let (bias, shared, at) = (0x5555_0000_0000, 0x5555_0080_0000, 0x5555_0090_0000);
    let bytes =
        emit_observer(observer, &branch.bytes[2..], bias, &[(OUTCOME, 7)], shared, at).unwrap();
    let decoder = Decoder::with_ip(64, &bytes.trampoline, at, DecoderOptions::NONE);
    let all: Vec<Instruction> = decoder.into_iter().collect();
    let place = |code: &str| {
        let found = all.iter().position(|i| isa::code::text(i).starts_with(code));
        found.unwrap_or_else(|| panic!("no {code}"))
    };
    // By hand: gate; outcome of `je`; flags saved, record taken, flags restored; je; mov; back.
    let order = ["jrcxz", "sete", "lahf", "lock xadd", "sahf", "je", "mov eax,1"];
    let places: Vec<usize> = order.iter().map(|code| place(code)).collect();
    assert!(places.is_sorted(), "{places:?}");
    // Nothing before the flags are saved changes any.
    assert!(all[..places[2]].iter().all(|i| i.rflags_modified() == 0));
    // The closed gate goes to the two instructions before `je`, which restore rcx and rsp.
    assert_eq!(all[places[0]].near_branch_target(), all[places[5] - 2].ip());
    assert!(bytes.trampoline.len() as u64 <= most(1, 2));
}

/// The texts of a trampoline that records the addresses of two loads.
fn two_loads(change: impl Fn(&mut Function)) -> Vec<String> {
    // 1000: mov rax,[rdi]; 1003: mov rcx,[rsi]; 1006: ret
    let mut loads = function(&[("48 8b 07, 48 8b 0e, c3", &[])], &[]);
    change(&mut loads);
    let all = [0x1000, 0x1003].map(|at| Request { at, what: What::Address });
    let found = observe(&loads, &all, &mut Room::default(), most);
    let observer = &found.observers[0];
    let requests: Vec<(Request, u32)> = all.into_iter().zip([0, 1]).collect();
    let (shared, at) = (0x5555_0080_0000, 0x5555_0090_0000);
    let bytes =
        emit_observer(observer, &loads.bytes, 0x5555_0000_0000, &requests, shared, at).unwrap();
    let decoder = Decoder::with_ip(64, &bytes.trampoline, at, DecoderOptions::NONE);
    assert!(bytes.trampoline.len() as u64 <= most(2, 2));
    decoder.into_iter().map(|one| isa::code::text(&one)).collect()
}

#[test]
fn several_records_have_one_closed_gate() {
    let live = |loads: &mut Function| loads.blocks[0].live = vec![u32::MAX; 3];
    let texts = two_loads(live);
    let places = |code: &str| -> Vec<usize> {
        (0..texts.len()).filter(|n| texts[*n].starts_with(code)).collect()
    };
    // By hand: the gate of all, the instructions alone, then each with its record.
    let [gates, records] = ["jrcxz", "lock xadd"].map(places);
    let [first, second] = ["mov rax,[rdi]", "mov rcx,[rsi]"].map(places);
    assert_eq!([gates.len(), records.len(), first.len(), second.len()], [3, 2, 2, 2]);
    let order = [
        gates[0], first[0], second[0], gates[1], records[0], first[1], gates[2], records[1],
        second[1],
    ];
    assert!(order.is_sorted(), "{texts:#?}");
}

#[test]
fn a_gate_keeps_a_carry_that_is_read_later() {
    let texts = two_loads(|loads| loads.blocks[0].live = vec![RflagsBits::CF; 3]);
    assert!(!texts.iter().any(|text| text.starts_with("cmp")), "{texts:#?}");
}

#[test]
fn a_gate_that_may_change_flags_is_a_comparison() {
    let texts = two_loads(|_| {});
    // By hand: the gate, the instructions alone and back, then each with its record.
    let starts = ["cmp qword ptr", "jne", "mov rax,[rdi]", "mov rcx,[rsi]", "jmp"];
    let is_so = texts.iter().zip(starts).all(|(text, start)| text.starts_with(start));
    assert!(is_so, "{texts:#?}");
    assert_eq!(texts.iter().filter(|text| text.starts_with("lock xadd")).count(), 2);
}

/// 1000: mov rax,rdi
/// 1003: dec rdi; jne 1003
/// 1008: ret
#[test]
fn a_short_loop_is_counted_before_the_block_that_would_take_its_bytes() {
    let mut short = function(&[("48 89 f8", &[1]), ("48 ff cf, 75 fb", &[1, 2]), ("c3", &[])], &[]);
    short.loops = vec![Loop { head: 1, latches: vec![1] }];
    let bias = 0x5555_5555_0000;
    let mut room = Room::new(std::iter::once(0x10_0000..bias), bias);
    assert_eq!(kinds(&short, &mut room), [None, Some(Kind::Multi), None]);
}

/// Where no address is free for a short jump, only code at fixed addresses is to be linked otherwise.
#[test]
fn code_that_may_be_anywhere_is_not_to_be_linked_otherwise() {
    let mut entered = function(&BRANCH, &[]);
    entered.fixed.extend([0x1004]);
    for (bias, is_fixed) in [(0, true), (0x5555_5555_0000, false)] {
        let planned = plan(&entered, &mut Room::new(std::iter::empty(), bias), &Chosen::All);
        let Placement::Refused(why) = &planned.placements[0] else { panic!("{planned:?}") };
        assert_eq!(*why, NoPlace::NoRoom { is_fixed });
        assert_eq!(why.to_string().contains("-pie"), is_fixed);
    }
}
