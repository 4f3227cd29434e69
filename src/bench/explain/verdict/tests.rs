//! Verdicts on made-up evidence.

use super::super::cycles::is_refuted;
use super::super::model::{Broken, Lengthened};
use super::*;

fn evidence(time: f64, independent: f64, resources: f64) -> Evidence {
    Evidence {
        time: Cycles::exact(time),
        front_end: Some(Cycles::exact(resources)),
        slots: Some(Cycles::exact(resources)),
        independent: Some(Cycles::exact(independent)),
        ..Evidence::default()
    }
}

fn latency(cycles: f64) -> Option<Cycles> {
    Some(Cycles::exact(cycles))
}

fn measured(cycles: f64) -> Option<Cycles> {
    Some(Cycles::exact(cycles))
}

/// Register dependencies broken at no cost.
fn broken(cycles: f64) -> Option<Broken> {
    Some(Broken { remaining: Cycles::exact(cycles), instructions: 1.0, ..Broken::default() })
}

// The three blocks and their figures (block, dependencies broken, front end) are those that a
// prototype measured on Zen 3: dependent imuls with adds, three independent imuls, six nops.
#[test]
fn blocks_of_known_nature_get_their_bound() {
    let imul_chain = Evidence {
        register_latency: latency(3.0),
        registers_broken: broken(1.0),
        both_broken: measured(1.0),
        ..evidence(3.0, 1.0, 0.67)
    };
    assert_eq!(judge(&imul_chain).class, Class::Dependency);
    let imuls = Evidence { register_latency: latency(1.0), ..evidence(3.0, 3.0, 0.5) };
    assert_eq!(judge(&imuls).class, Class::Ports);
    assert_eq!(judge(&evidence(1.0, 1.0, 1.0)).class, Class::IssueWidth);
}

#[test]
fn a_front_end_slower_than_the_slots_is_the_bound() {
    let wide = Evidence { slots: measured(0.67), ..evidence(2.0, 2.0, 2.0) };
    assert_eq!(judge(&wide).class, Class::FrontEnd);
    // The front end's time holds even if others could not be measured.
    let alone = Evidence { independent: None, ..wide };
    assert_eq!(judge(&alone).class, Class::FrontEnd);
}

// The times: store forwarding in the table of docs/results/accuracy.md, blocked and not.
#[test]
fn a_block_faster_without_memory_dependencies_is_bound_by_store_forwarding() {
    let counter = Evidence {
        memory_latency: latency(5.9),
        memory_broken: measured(1.0),
        ..evidence(6.0, 1.0, 0.5)
    };
    assert_eq!(judge(&counter).class, Class::StoreForwarding);
    let blocked = Evidence {
        memory_broken: measured(1.0),
        registers_broken: broken(1.0),
        ..evidence(18.5, 1.0, 0.5)
    };
    assert_eq!(judge(&blocked).class, Class::StoreForwarding);
    // A register dependency of the same latency is not the cause.
    let pinned = Evidence { register_latency: latency(6.0), ..counter };
    assert_eq!(judge(&pinned).class, Class::StoreForwarding);
}

#[test]
fn dependencies_broken_without_effect_decide_nothing() {
    let in_vain = Evidence {
        register_latency: latency(6.0),
        memory_latency: latency(6.0),
        memory_broken: measured(6.0),
        registers_broken: broken(6.0),
        ..evidence(6.0, 1.0, 0.5)
    };
    assert_eq!(judge(&in_vain).class, Class::Undecided);
    let memory_alone = Evidence { register_latency: None, memory_latency: latency(6.0), ..in_vain };
    assert_eq!(judge(&memory_alone).class, Class::Undecided);
}

#[test]
fn two_bounds_too_close_to_each_other_are_undecided() {
    let both = Evidence { register_latency: latency(3.0), ..evidence(3.0, 3.0, 0.5) };
    assert_eq!(judge(&both).class, Class::Undecided);
    let between = Evidence { slots: measured(2.8), ..evidence(3.0, 3.0, 2.8) };
    assert_eq!(judge(&between).class, Class::Undecided);
    let latency_limited = Evidence { residual_latency: Some(3.0), ..evidence(3.0, 3.0, 0.5) };
    assert_eq!(judge(&latency_limited).class, Class::Undecided);
}

#[test]
fn a_jump_that_costs_more_than_its_block_is_unexplained() {
    let verdict = judge(&evidence(1.0, 1.0, 1.0));
    let with = |cycles| with_jump(verdict.clone(), Cycles::exact(cycles), Cycles::exact(1.0));
    assert_eq!(with(1.05).class, Class::IssueWidth);
    assert_eq!(with(7.0).class, Class::Unexplained);
}

#[test]
fn a_time_that_no_bound_reaches_is_unexplained() {
    let short = Evidence {
        register_latency: latency(4.0),
        registers_broken: broken(9.0),
        ..evidence(9.0, 1.0, 0.5)
    };
    let verdict = judge(&short);
    assert_eq!(verdict.class, Class::Unexplained);
    assert!(verdict.why.contains("4.00"), "{}", verdict.why);
    // Slower without dependencies than with them: something is wrong.
    assert_eq!(judge(&evidence(2.0, 3.0, 0.5)).class, Class::Unexplained);
}

#[test]
fn latencies_decide_where_no_dependency_can_be_broken() {
    let only =
        Evidence { independent: None, register_latency: latency(3.0), ..evidence(3.0, 0.0, 0.5) };
    assert_eq!(judge(&only).class, Class::Dependency);
}

// Four additions, one of them loop-carried: 1 cycle by its latency, 4 of 6 slots. Breaking four
// registers takes 4 slots more, 8 of 6 together: at least 1.33 cycles.
#[test]
fn breaking_dependencies_is_inconclusive_if_it_costs_what_it_could_gain() {
    let costly = |cycles| {
        Some(Broken {
            remaining: Cycles::exact(cycles),
            instructions: 4.0,
            cost: 0.67,
            residual_latency: 0.0,
        })
    };
    let adds = Evidence {
        register_latency: latency(1.0),
        registers_broken: costly(1.4),
        ..evidence(1.05, 0.67, 0.67)
    };
    let verdict = judge(&adds);
    assert_eq!(verdict.class, Class::Dependency, "{}", verdict.why);
    let cost = "4 added instructions per iteration, 0.67 cycles of slots; inconclusive";
    assert!(verdict.why.contains(cost), "{}", verdict.why);
    // Much slower than that, or as slow at no cost: something else is the bound.
    let slower = Evidence { registers_broken: costly(2.0), ..adds };
    assert_eq!(judge(&slower).class, Class::Undecided);
    let in_vain = Evidence { registers_broken: broken(1.05), ..adds };
    assert_eq!(judge(&in_vain).class, Class::Undecided);
    // A counter that addresses depend on is not broken: its latency is left.
    let counter =
        Broken { remaining: Cycles::exact(1.05), residual_latency: 1.0, ..Broken::default() };
    assert_eq!(
        judge(&Evidence { registers_broken: Some(counter), ..adds }).class,
        Class::Dependency
    );
}

#[test]
fn slots_measured_only_once_leave_the_ports_open() {
    let ports = evidence(2.0, 2.0, 0.5);
    assert_eq!(judge(&ports).class, Class::Ports);
    let open = Evidence { slots_unconfirmed: true, ..ports };
    assert_eq!(judge(&open).class, Class::Undecided);
}

// A block of 0.67 cycles of slots, and a loop-carried latency of 0 or 1 cycle: its middle is below
// the time, its high end above.
#[test]
fn a_latency_that_may_be_0_does_not_compete() {
    let range = |low, high| Some(Cycles { best: f64::midpoint(low, high), low, high });
    let copy = Evidence { register_latency: range(0.0, 1.0), ..evidence(0.67, 0.67, 0.67) };
    assert_eq!(judge(&copy).class, Class::IssueWidth);
    let near = Evidence { register_latency: range(0.6, 0.7), ..copy };
    assert_eq!(judge(&near).class, Class::Undecided);
}

// A division whose registers are implicit: 18 cycles in a microbenchmark of dependent divisions, 15 in
// the block, where one operand is overwritten.
#[test]
fn a_microbenchmark_bound_by_latency_is_no_bound_of_the_ports() {
    let division = Evidence {
        residual_latency: Some(18.0),
        register_latency: latency(15.0),
        registers_broken: broken(6.0),
        ..evidence(15.0, 18.0, 1.0)
    };
    assert_eq!(judge(&division).class, Class::Dependency);
    assert_eq!(judge(&Evidence { registers_broken: None, ..division }).class, Class::Undecided);
}

// A gather whose latency by the tables is 14 to 30, in a block that takes 4.
#[test]
fn a_refuted_bound_explains_nothing() {
    let cycles = Cycles { best: 22.0, low: 14.0, high: 30.0 };
    let gather = Evidence { register_latency: Some(cycles), ..evidence(4.0, 2.0, 1.0) };
    let verdict = judge(&gather);
    assert_eq!(verdict.class, Class::Unexplained);
    assert!(verdict.why.contains("14.00 to 30.00, above the measurement: refuted"));
    assert!(is_refuted(cycles, gather.time, true));
    assert!(!is_refuted(Cycles::exact(4.1), gather.time, false));
    assert!(is_refuted(Cycles::exact(4.3), gather.time, false));
}

// Natively on Zen 5 (tests/figures/native_blocks.py): eight instructions of 3 to 5 bytes 1.25 cycles, with
// prefixes 1.00; eight `vpxor` zero idioms of 4 bytes 1.31 and 1.31, nops of their lengths 1.17 and 1.00.
#[test]
fn a_front_end_that_is_relieved_without_effect_is_no_verdict() {
    let with = |time: f64, longer: f64| Evidence {
        slots: measured(1.0),
        lengthened: Some(Lengthened { time: Cycles::exact(longer), front_end: Cycles::exact(1.0) }),
        ..evidence(time, time, time)
    };
    let verdict = judge(&with(1.25, 1.0));
    assert_eq!(verdict.class, Class::FrontEnd);
    assert!(verdict.why.contains("longer encodings"), "{}", verdict.why);
    assert_eq!(judge(&with(1.31, 1.31)).class, Class::Undecided);
}

// `mov rax,rbx; xor edx,edx; div r8`: 6.98 cycles natively, and 13.8 for two of them; the division's
// registers are implicit, so that it cannot be made independent.
#[test]
fn units_that_are_left_over_bound_iterations_that_overlap() {
    let division =
        Evidence { residual_latency: Some(22.0), overlaps: true, ..evidence(7.0, 10.4, 0.5) };
    assert_eq!(judge(&division).class, Class::Ports);
    assert_ne!(judge(&Evidence { overlaps: false, ..division }).class, Class::Ports);
    let slots = Some(Cycles::exact(6.0));
    assert_ne!(judge(&Evidence { slots, ..division }).class, Class::Ports);
}

// Three `pdep` and a counter: 1.85 cycles natively, 1.74 with a nop among them, 1.02 without the counter.
#[test]
fn a_chain_much_shorter_than_the_time_is_no_verdict() {
    let counter = Evidence {
        register_latency: latency(1.0),
        registers_broken: broken(1.0),
        ..evidence(1.87, 1.0, 1.0)
    };
    assert_eq!(judge(&counter).class, Class::Undecided);
}

// `add [rsi+rcx*8],rax`: 1.00 natively, 0.50 for each of four words in turn; the addition takes 1.
#[test]
fn the_cost_of_forwarding_is_in_the_evidence() {
    let renamed = Evidence {
        memory_latency: latency(1.0),
        memory_broken: measured(0.5),
        memory_chain_arithmetic: Some(1.0),
        ..evidence(1.0, 0.5, 0.25)
    };
    let verdict = judge(&renamed);
    assert_eq!(verdict.class, Class::StoreForwarding);
    let cost =
        "the arithmetic of that chain takes 1.00 or more, passing through memory 0.00 or less";
    assert!(verdict.why.contains(cost), "{}", verdict.why);
}

#[test]
fn a_bound_that_is_a_range_is_no_number_in_a_sentence() {
    let wide = Cycles { best: 2.95, low: 2.85, high: 3.05 };
    let at = |evidence: Evidence| judge(&evidence).why;
    let exact = evidence(3.0, 3.0, 0.5);
    let ports = at(Evidence { independent: Some(wide), ..exact });
    assert!(ports.contains("take 2.95 (2.85 to 3.05) of 3.00 cycles"), "{ports}");
    let slots = at(Evidence { slots: Some(wide), ..evidence(3.0, 1.0, 0.5) });
    assert!(slots.contains("alone take 2.95 (2.85 to 3.05) cycles of 3.00"), "{slots}");
    let front_end = at(Evidence { front_end: Some(wide), ..evidence(3.0, 1.0, 0.5) });
    assert!(front_end.contains("alone take 2.95 (2.85 to 3.05) cycles of 3.00"), "{front_end}");
    // A range that two digits do not show is printed as a number.
    let narrow = Cycles { best: 3.0, low: 2.999, high: 3.001 };
    let ports = at(Evidence { independent: Some(narrow), ..exact });
    assert!(ports.contains("take 3.00 of 3.00 cycles"), "{ports}");
}

// A variant of a block of 1.08 cycles with loads that wait falsely for other copies' stores took 15.78.
#[test]
fn more_than_the_time_does_not_remain_of_it() {
    let waits = Evidence { registers_broken: broken(15.78), ..evidence(1.08, 0.5, 0.5) };
    let verdict = judge(&waits);
    let longer = "register dependencies broken: 15.78 cycles, more than the block's 1.08";
    assert!(verdict.why.contains(longer), "{}", verdict.why);
    assert!(!verdict.why.contains("15.78 of"), "{}", verdict.why);
    let memory = judge(&Evidence { memory_broken: measured(15.78), ..evidence(1.08, 0.5, 0.5) });
    assert!(memory.why.contains("15.78 cycles, more than the block's 1.08"), "{}", memory.why);
}

// Natively on Zen 5 (tests/figures/verdicts_aside.csv, `loop_short_18`): 2.4 to 4 cycles by its place, padded
// 2.37 at most places; eighteen short instructions at five a cycle take 3.6.
#[test]
fn independent_instructions_that_wait_for_their_front_end_say_nothing_of_the_ports() {
    let short = evidence(3.0, 3.0, 2.3);
    assert_eq!(judge(&short).class, Class::Ports);
    let front_end = |cycles| Evidence { independent_front_end: measured(cycles), ..short };
    assert_eq!(judge(&front_end(2.9)).class, Class::Undecided);
    assert_eq!(judge(&front_end(1.5)).class, Class::Ports);
}

// Natively on Zen 5 (tests/figures/verdicts_errata.csv, `mixed_8b`): 1.08 to 1.27 by its place, 1.00 with
// longer instructions, and there is no load of what was stored.
#[test]
fn store_forwarding_shows_in_every_state_and_not_in_the_control() {
    let block = Evidence { memory_broken: measured(1.0), ..evidence(1.27, 0.9, 0.8) };
    assert_eq!(judge(&block).class, Class::StoreForwarding);
    let somewhere = Evidence { fastest_state: Some(1.08), ..block };
    assert_eq!(judge(&somewhere).class, Class::Undecided);
    let control = |cycles| Evidence { memory_control: measured(cycles), ..block };
    assert_eq!(judge(&control(1.0)).class, Class::Undecided);
    assert_eq!(judge(&control(1.27)).class, Class::StoreForwarding);
    let registers = Evidence { memory_broken: None, registers_broken: broken(1.0), ..somewhere };
    assert_eq!(judge(&registers).class, Class::Undecided);
}

// `mov eax,[rsi-4]; add eax,[rdi]; mov [rsi],eax; …`: natively 1.08 on Zen 5 (tests/figures/verdicts_errata.csv,
// `loop_prefix`), and 1.11 where it loads from elsewhere; by the tables 1 to 8, since values in memory may be renamed.
#[test]
fn a_latency_between_1_and_8_is_no_verdict_by_itself() {
    let range = |low, high| Some(Cycles { best: f64::midpoint(low, high), low, high });
    let vague = Evidence { memory_latency: range(1.0, 8.0), ..evidence(1.11, 0.9, 0.8) };
    assert_eq!(judge(&vague).class, Class::Undecided);
    let known = Evidence { memory_latency: range(1.0, 1.2), ..vague };
    assert_eq!(judge(&known).class, Class::StoreForwarding);
}

// Twelve loads of two bytes in a loop, natively on Zen 5 (tests/figures/verdicts_aside2.csv, `loop_p_loads_12`): 3.0
// for their ports, and with four fewer 2.99 at two of four places.
#[test]
fn a_front_end_as_slow_as_the_ports_is_undecided() {
    let loads = Evidence { slots: measured(1.63), ..evidence(3.0, 3.0, 3.0) };
    assert_eq!(judge(&loads).class, Class::FrontEnd);
    let front_end = |cycles| Evidence { independent_front_end: measured(cycles), ..loads };
    assert_eq!(judge(&front_end(1.5)).class, Class::Undecided);
    assert_eq!(judge(&front_end(2.9)).class, Class::FrontEnd);
}

// A histogram, `inc dword ptr [rdi+rax*4]`: natively 1.0 to 2.2 on Zen 4 as the loop that it is, 3.8 in straight copies,
// whose iterations all count the same value, and 1.0 in copies that count in different places.
#[test]
fn copies_that_forward_say_nothing_of_a_loop_that_does_not() {
    let histogram = Evidence {
        memory_broken: measured(1.0),
        memory_control: measured(3.8),
        ..evidence(1.8, 1.0, 0.8)
    };
    assert!(histogram.copies_are_not_the_loop(Some(false)));
    for forwards in [Some(true), None] {
        assert!(!histogram.copies_are_not_the_loop(forwards), "{forwards:?}");
    }
    let unknown = Evidence { memory_control: None, ..histogram };
    assert!(unknown.copies_are_not_the_loop(Some(false)));
    let alike = Evidence { memory_control: measured(1.8), ..histogram };
    assert!(!alike.copies_are_not_the_loop(Some(false)));
}

// Natively on a Redwood Cove (Golden Cove cores), three loads: 1.5 at 0, 64 and 128, 1.0 at 0, 8 and 16.
#[test]
fn a_block_faster_in_one_line_is_bound_by_where_it_accesses_l1() {
    let banks = Evidence { one_line: measured(1.0), ..evidence(1.5, 1.0, 0.5) };
    assert_eq!(judge(&banks).class, Class::Unexplained, "without a control");
    let control = |cycles| Evidence { one_line_control: measured(cycles), ..banks };
    assert_eq!(judge(&control(1.5)).class, Class::L1Access);
    // The longer encodings make it as fast.
    assert_eq!(judge(&control(1.0)).class, Class::Unexplained);
    let alike = Evidence { one_line: measured(1.5), ..control(1.5) };
    assert_eq!(judge(&alike).class, Class::Unexplained);
}
