//! Verdicts on made-up evidence.

use super::*;

fn evidence(time: f64, free: f64, supply: f64) -> Evidence {
    Evidence {
        time: Cycles::exact(time),
        front_end: Some(Cycles::exact(supply)),
        slots: Some(Cycles::exact(supply)),
        free: Some(Cycles::exact(free)),
        ..Evidence::default()
    }
}

fn chain(cycles: f64) -> Option<Chain> {
    Some(Chain { cycles: Cycles::exact(cycles) })
}

fn left(cycles: f64) -> Option<Cycles> {
    Some(Cycles::exact(cycles))
}

/// A cut that costs nothing.
fn cut(cycles: f64) -> Option<Cut> {
    Some(Cut { left: Cycles::exact(cycles), instructions: 1.0, ..Cut::default() })
}

// The three blocks and their figures (block, dependencies broken, front end) are those that a
// prototype measured on Zen 3: an imul chain with adds, three independent imuls, six nops.
#[test]
fn blocks_of_known_nature_get_their_bound() {
    let imul_chain = Evidence {
        registers: chain(3.0),
        cut: cut(1.0),
        loose: left(1.0),
        ..evidence(3.0, 1.0, 0.67)
    };
    assert_eq!(judge(&imul_chain).class, Class::Dependency);
    let imuls = Evidence { registers: chain(1.0), ..evidence(3.0, 3.0, 0.5) };
    assert_eq!(judge(&imuls).class, Class::Ports);
    assert_eq!(judge(&evidence(1.0, 1.0, 1.0)).class, Class::IssueWidth);
}

#[test]
fn more_than_the_slots_ask_for_is_the_front_end() {
    let wide = Evidence { slots: left(0.67), ..evidence(2.0, 2.0, 2.0) };
    assert_eq!(judge(&wide).class, Class::FrontEnd);
    // What the front end takes it takes, whatever else could not be measured.
    let alone = Evidence { free: None, ..wide };
    assert_eq!(judge(&alone).class, Class::FrontEnd);
}

// The times: store forwarding in the table of docs/results/dependencies.md, blocked and not.
#[test]
fn memory_kept_apart_tells_store_forwarding() {
    let counter = Evidence { memory: chain(5.9), apart: left(1.0), ..evidence(6.0, 1.0, 0.5) };
    assert_eq!(judge(&counter).class, Class::StoreForwarding);
    let blocked = Evidence { apart: left(1.0), cut: cut(1.0), ..evidence(18.5, 1.0, 0.5) };
    assert_eq!(judge(&blocked).class, Class::StoreForwarding);
    // The chain of registers beside it is as long by its latencies, but not the cause.
    let pinned = Evidence { registers: chain(6.0), ..counter };
    assert_eq!(judge(&pinned).class, Class::StoreForwarding);
}

#[test]
fn what_was_broken_in_vain_is_no_verdict() {
    let vain = Evidence {
        registers: chain(6.0),
        memory: chain(6.0),
        apart: left(6.0),
        cut: cut(6.0),
        ..evidence(6.0, 1.0, 0.5)
    };
    assert_eq!(judge(&vain).class, Class::Undecided);
    let memory_alone = Evidence { registers: None, memory: chain(6.0), ..vain };
    assert_eq!(judge(&memory_alone).class, Class::Undecided);
}

#[test]
fn two_that_come_close_are_not_decided() {
    let both = Evidence { registers: chain(3.0), ..evidence(3.0, 3.0, 0.5) };
    assert_eq!(judge(&both).class, Class::Undecided);
    let between = Evidence { slots: left(2.8), ..evidence(3.0, 3.0, 2.8) };
    assert_eq!(judge(&between).class, Class::Undecided);
    let floored = Evidence { floor: Some(3.0), ..evidence(3.0, 3.0, 0.5) };
    assert_eq!(judge(&floored).class, Class::Undecided);
}

#[test]
fn a_jump_that_costs_more_than_its_block_is_not_explained_by_the_rest() {
    let judged = judge(&evidence(1.0, 1.0, 1.0));
    let with = |cycles| with_jump(judged.clone(), Cycles::exact(cycles), Cycles::exact(1.0));
    assert_eq!(with(1.05).class, Class::IssueWidth);
    assert_eq!(with(7.0).class, Class::Unexplained);
}

#[test]
fn what_nothing_explains_is_said_so() {
    let short = Evidence { registers: chain(4.0), cut: cut(9.0), ..evidence(9.0, 1.0, 0.5) };
    let judged = judge(&short);
    assert_eq!(judged.class, Class::Unexplained);
    assert!(judged.why.contains("4.00"), "{}", judged.why);
    // Slower without dependencies than with them: something is wrong.
    assert_eq!(judge(&evidence(2.0, 3.0, 0.5)).class, Class::Unexplained);
}

#[test]
fn latencies_are_enough_where_no_chain_can_be_broken() {
    let only = Evidence { free: None, registers: chain(3.0), ..evidence(3.0, 0.0, 0.5) };
    assert_eq!(judge(&only).class, Class::Dependency);
}

// Four additions of which one is a chain: 1 cycle by its latency, 4 of 6 slots. Cuts of four registers
// take 4 slots more, 8 of 6 together: with them it cannot take less than 1.33 cycles.
#[test]
fn a_cut_that_costs_what_it_could_gain_says_nothing() {
    let dear = |cycles| {
        Some(Cut { left: Cycles::exact(cycles), instructions: 4.0, cost: 0.67, rest: 0.0 })
    };
    let adds = Evidence { registers: chain(1.0), cut: dear(1.4), ..evidence(1.05, 0.67, 0.67) };
    let judged = judge(&adds);
    assert_eq!(judged.class, Class::Dependency, "{}", judged.why);
    assert!(judged.why.contains("cuts: 4 an iteration, 0.67 cycles of slots"), "{}", judged.why);
    // What takes much longer than that waits for something else, and so does what a cheap cut leaves.
    let slower = Evidence { cut: dear(2.0), ..adds };
    assert_eq!(judge(&slower).class, Class::Undecided);
    let vain = Evidence { cut: cut(1.05), ..adds };
    assert_eq!(judge(&vain).class, Class::Undecided);
    // A counter that addresses are made of is not cut: its chain is left.
    let counter = Cut { left: Cycles::exact(1.05), rest: 1.0, ..Cut::default() };
    assert_eq!(judge(&Evidence { cut: Some(counter), ..adds }).class, Class::Dependency);
}

// A block of 0.67 cycles of slots, and a chain that takes 0 or 1 cycle: its middle is below the time,
// its high end above.
#[test]
fn a_chain_that_may_be_nothing_is_no_rival() {
    let range =
        |low, high| Some(Chain { cycles: Cycles { best: f64::midpoint(low, high), low, high } });
    let copy = Evidence { registers: range(0.0, 1.0), ..evidence(0.67, 0.67, 0.67) };
    assert_eq!(judge(&copy).class, Class::IssueWidth);
    let near = Evidence { registers: range(0.6, 0.7), ..copy };
    assert_eq!(judge(&near).class, Class::Undecided);
}

// A division whose registers are implicit: 18 cycles in a kernel of divisions that wait for each other,
// 15 in the block, where one operand is set anew.
#[test]
fn a_kernel_that_is_a_chain_is_no_bound_of_the_ports() {
    let division = Evidence {
        floor: Some(18.0),
        registers: chain(15.0),
        cut: cut(6.0),
        ..evidence(15.0, 18.0, 1.0)
    };
    assert_eq!(judge(&division).class, Class::Dependency);
    assert_eq!(judge(&Evidence { cut: None, ..division }).class, Class::Undecided);
}

// A gather whose latency by the tables is 14 to 30, in a block that takes 4.
#[test]
fn what_the_time_refutes_explains_nothing() {
    let cycles = Cycles { best: 22.0, low: 14.0, high: 30.0 };
    let gather = Evidence { registers: Some(Chain { cycles }), ..evidence(4.0, 2.0, 1.0) };
    let judged = judge(&gather);
    assert_eq!(judged.class, Class::Unexplained);
    assert!(judged.why.contains("22.00 (14.00 to 30.00), above the measurement: refuted"));
    assert!(is_refuted(cycles, gather.time, true));
    assert!(!is_refuted(Cycles::exact(4.1), gather.time, false));
    assert!(is_refuted(Cycles::exact(4.3), gather.time, false));
}
