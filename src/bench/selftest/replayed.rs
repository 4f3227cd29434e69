//! Tests on stored results of other processors: replayed as they are, and with each answer's test missing, 30 %
//! wrong or contradictory.

use super::answers;
use super::questions::{ALWAYS, EIGHTH, HALF, NEVER, QUESTIONS, Question};
use super::random::Order;
use super::times::{self, Attempt, NewAttempt, Times};
use super::width::Asked;
use crate::clock::SentinelRun;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tma::self_test::{Answer, Answers, Open, Room, Seen, TargetHistory};

fn replayed(name: &str, stated: Option<u32>) -> Answers {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/processors/self-tests");
    let times = times::given(&folder.join(name)).unwrap();
    answers::of(&times, Asked { stated, cpus: 0 })
}

/// A Granite Rapids that shows the model of a Rocket Lake: `tests/processors/self-tests/README.md` has the figures.
#[test]
fn a_masked_granite_rapids_can_be_measured_on_and_its_mispredictions_cost_25_cycles() {
    let all = [("gnr", Some(6)), ("rkl", Some(5)), ("unknown", None)];
    for (name, stated) in all {
        let answers = replayed(&format!("masked-granite-rapids-{name}.json"), stated);
        assert!(answers.width.is_some(), "{name}: {:?}", answers.open);
        assert!(SentinelRun::wide(Some(&answers)).is_some(), "{name}");
        let cost = answers.misprediction.unwrap();
        assert!((24.5..25.5).contains(&cost), "{name}: {cost}");
        assert!(matches!(answers.open.get(&Answer::Moves), Some(Open::NotAsked)));
        // By the README (9.0 − 3.99) ÷ 25 = 1.6 × 1/8. The file of Rocket Lake has the least of 8,277 attempts, which is less
        // than a random branch usually takes.
        let times_share = 8.0 * answers.biased.unwrap().alone(8).unwrap();
        let expected = if name == "rkl" { 1.2..1.8 } else { 1.5..1.8 };
        assert!(expected.contains(&times_share), "{name}: {times_share}");
    }
    // Its real width, with the masked one's table: the table is wrong.
    let masked = replayed("masked-granite-rapids-gnr.json", Some(5));
    assert!(masked.width.unwrap() > 5.9, "{masked:?}");
}

/// A Zen 4 by version 8: random bytes that a C program goes through again and again take 0.84 ns each up to 32,768 of them, and 1.8 ns
/// of 65,536 (`tests/figures/remembered.py`). The earlier files have no such test, so their range is the widest.
#[test]
fn a_zen_4_remembers_32_768_outcomes_and_others_are_not_known_to() {
    let zen4 = replayed("zen4.json", Some(6));
    let remembered = zen4.remembered.as_ref().unwrap();
    let limit = remembered.limit();
    assert_eq!(limit.0.map(|one| one.outcomes), Some(1 << 15), "{remembered:?}");
    assert_eq!(limit.1.map(|one| one.outcomes), Some(1 << 16), "{remembered:?}");
    let room = zen4.rules().room;
    assert!(room.most - room.least <= 2, "{room:?}");
    let earlier = replayed("masked-granite-rapids-gnr.json", Some(6));
    assert_eq!(earlier.open[&Answer::Remembered], Open::NotAsked);
    assert_eq!(earlier.rules().room, Room::default());
}

/// A Zen 3 by version 9: a C program's calls of functions 16 bytes apart in turn take 10 ns, 24 bytes apart 3
/// (`tests/figures/call_history.py`). The Zen 4's file has no such test, so that both are possible there.
#[test]
fn a_zen_3_has_four_bits_of_called_addresses_in_its_history() {
    let zen3 = replayed("zen3.json", Some(6));
    assert_eq!(zen3.rules().calls, TargetHistory::Low, "{:?}", zen3.calls);
    let zen4 = replayed("zen4.json", Some(6));
    assert_eq!((zen4.calls, zen4.rules().calls), (None, TargetHistory::Unknown));
}

/// Times of a core of 6 a cycle without peculiarities, in 16 attempts alike but for errors of 0.1 %.
fn plain(change: impl Fn(Question, u32) -> Option<f64>) -> Times {
    let mut times = Times::default();
    for i in 0..16 {
        let own = |question: &Question| {
            let cycles = cycles(*question) * (1.0 + 0.001 * f64::from(i % 2));
            Some((question.name(), cycles * change(*question, i)?))
        };
        let attempt = Attempt { cpu: Some(i % 2), stands_for: 1, ..Attempt::default() };
        let cycles = QUESTIONS.iter().filter_map(own).collect();
        times.add(NewAttempt { attempt, cycles }, |_, _| 0.0);
    }
    times
}

fn cycles(question: Question) -> f64 {
    use super::questions::OTHER;
    let share = |bits: u8| 1.0 / f64::from(bits.count_ones()).exp2();
    let wrong = |bits: u8| if bits == NEVER { 0.0 } else { share(bits) };
    match question {
        Question::Branch(bits) | Question::Among(bits) | Question::Jump(bits) => {
            10.0 + 20.0 * wrong(bits)
        }
        // Remembers all of 32,768 outcomes, as a Zen 4 does.
        Question::Repeating(bits) => 10.0 + if bits > 15 { 10.0 } else { 0.0 },
        Question::Second(bits) => 10.0 + if bits == OTHER { 10.0 } else { 0.0 },
        // 4 cycles a load.
        Question::Call(bits) => 10.0 + 28.0 * wrong(bits),
        // All targets in turn are predicted, and of random ones those that are the last one are not.
        Question::Calls(order) => 10.0 + 28.0 * of_several(order),
        Question::Jumps(order) => 10.0 + 20.0 * of_several(order),
        Question::CallsApart => 10.0,
        Question::Nested(places) => 300.0 + if places == u64::MAX { 0.0 } else { 300.0 },
        Question::Fence { .. } | Question::Target(_) => 72.0,
        Question::ConstantChain | Question::MoveChain => question.instructions() as f64,
        _ => question.instructions() as f64 / 6.0,
    }
}

fn of_several(order: Order) -> f64 {
    match order {
        Order::Random(of) => 1.0 - 1.0 / f64::from(of),
        Order::InTurn(_) => 0.0,
    }
}

/// Tests that only this answer uses, or uses first.
fn own(answer: Answer) -> Vec<Question> {
    use super::questions::{ALTERNATE, LOOPS, NEAR, OTHER, QUARTER};
    use Question::{
        Among, Branch, Call, Calls, CallsApart, ConstantChain, Distance, Fence, Jump, Jumps, Loop,
        Mix, MoveChain, Moves, Nested, Nops, Repeating, Second, Target,
    };
    let only = |may: &dyn Fn(Question) -> bool| -> Vec<Question> {
        QUESTIONS.iter().copied().filter(|q| may(*q)).collect()
    };
    match answer {
        Answer::Width => only(&|q| matches!(q, Mix(_))),
        Answer::NopsFused | Answer::Fillers => vec![Nops],
        Answer::MovesFused => vec![Moves],
        Answer::FenceSlows => vec![Fence { memory: true, jump: false }],
        Answer::LoopDiffers => vec![Loop(LOOPS.0)],
        Answer::NeedsAlignment => vec![Target(32)],
        Answer::FalseDistances => vec![Distance(NEAR)],
        Answer::Misprediction => vec![Branch(HALF)],
        Answer::ReadyMisprediction => vec![Second(OTHER)],
        Answer::IndirectMisprediction => vec![Jump(HALF)],
        Answer::ReturnMisprediction | Answer::Returns => vec![Nested(ALTERNATE)],
        Answer::MispredictionLoad => vec![Call(HALF)],
        Answer::Targets => vec![Jump(QUARTER)],
        Answer::Calls => vec![Calls(Order::InTurn(2)), CallsApart],
        Answer::Several => {
            only(&|q| matches!(q, Jumps(_) | Calls(Order::Random(_) | Order::InTurn(4 | 8))))
        }
        Answer::Biased => {
            only(&|q| matches!(q, Branch(b) | Among(b) if ![NEVER, ALWAYS, HALF].contains(&b)))
        }
        Answer::Remembered => only(&|q| matches!(q, Repeating(_))),
        Answer::ConstantAdds => vec![ConstantChain],
        Answer::Moves => vec![MoveChain],
    }
}

/// The answers that a fault in `answer` may open: those that are computed from it.
fn dependents(answer: Answer) -> BTreeSet<Answer> {
    use Answer::{
        Biased, Calls, FenceSlows, Fillers, IndirectMisprediction, Misprediction,
        MispredictionLoad, MovesFused, NopsFused, ReadyMisprediction, ReturnMisprediction, Returns,
        Several, Targets, Width,
    };
    let others: &[Answer] = match answer {
        Width => &[NopsFused, MovesFused, FenceSlows, Fillers],
        NopsFused | Fillers => &[NopsFused, Fillers],
        Misprediction => &[Biased],
        ReadyMisprediction => &[Returns, ReturnMisprediction],
        IndirectMisprediction => &[Targets, MispredictionLoad, Several],
        MispredictionLoad => &[Calls, Several],
        // They may contradict what two in turn show.
        Several => &[Calls],
        Returns | ReturnMisprediction => &[Returns, ReturnMisprediction],
        _ => &[],
    };
    others.iter().copied().chain([answer]).collect()
}

fn fields(answers: &Answers) -> serde_json::Map<String, serde_json::Value> {
    serde_json::to_value(answers).unwrap().as_object().unwrap().clone()
}

/// By how much a time is multiplied, by attempt; none without it.
type Change = fn(u32) -> Option<f64>;

/// Each test missing, 30 % slower and faster, and contradictory: only the answers that it is for change.
#[test]
fn a_fault_in_one_test_reaches_the_answers_that_need_it_and_no_others() {
    let asked = Asked { stated: Some(6), cpus: 2 };
    let sound = answers::of(&plain(|_, _| Some(1.0)), asked);
    assert!(sound.open.is_empty(), "{:?}", sound.open);
    for answer in Answer::ALL {
        let own = own(answer);
        let faults: [(&str, Change); 4] = [
            ("missing", |_| None),
            ("slower", |_| Some(1.3)),
            ("faster", |_| Some(0.7)),
            ("contradictory", |i| Some(if i < 8 { 1.0 } else { 1.6 })),
        ];
        for (fault, change) in faults {
            let times = plain(|q, i| if own.contains(&q) { change(i) } else { Some(1.0) });
            let found = answers::of(&times, asked);
            let may: BTreeSet<String> = dependents(answer)
                .into_iter()
                .map(|a| serde_json::to_value(a).unwrap().as_str().unwrap().to_owned())
                .collect();
            for (name, value) in fields(&found) {
                let summary = ["open", "errors", "seen", "mix"].contains(&name.as_str());
                let same = fields(&sound)[&name] == value;
                assert!(
                    summary || same || may.contains(&name),
                    "{answer:?} {fault}: {name} {value}"
                );
            }
            if fault == "missing" {
                assert!(found.open.contains_key(&answer), "{answer:?}");
            }
            for open in found.open.keys() {
                assert!(dependents(answer).contains(open), "{answer:?} {fault}: {open:?}");
            }
        }
    }
}

#[test]
fn attempts_that_contradict_each_other_leave_a_cost_open() {
    let change = |q: Question, i: u32| {
        Some(if q == Question::Branch(HALF) && i.is_multiple_of(2) { 1.6 } else { 1.0 })
    };
    let found = answers::of(&plain(change), Asked { stated: Some(6), cpus: 2 });
    let why = found.open[&Answer::Misprediction];
    // By hand: 20 + 2 × 12 = 44 cycles in half of them.
    assert!(matches!(why, Open::Disagree { low, high } if low < 21.0 && high > 43.0), "{why:?}");
    assert_eq!(found.open[&Answer::Biased], Open::DependsOn { answer: Answer::Misprediction });
    // A rarer branch has no say in what a misprediction costs.
    let rare = |q: Question, _: u32| Some(if q == Question::Branch(EIGHTH) { 1.6 } else { 1.0 });
    let found = answers::of(&plain(rare), Asked { stated: Some(6), cpus: 2 });
    assert!((found.misprediction.unwrap() - 20.0).abs() < 0.1);
}

/// A sentinel as wide as what was seen, if that is more than the narrow one needs; nothing that was seen once and not again.
#[test]
fn an_open_width_leaves_a_sentinel_that_was_seen() {
    let of = |fastest: f64, why: Open| {
        let answers = Answers {
            mix: Some("load-constant".to_owned()),
            open: [(Answer::Width, why)].into_iter().collect(),
            seen: Some(Seen { fastest, ..Seen::default() }),
            ..Answers::default()
        };
        SentinelRun::wide(Some(&answers)).map(|(_, run)| 240.0 * f64::from(run.repeat) / run.cycles)
    };
    let rate = |found: Option<f64>| found.map(|rate| (rate * 10.0).round() / 10.0);
    let narrower = |found| Open::Narrower { found, stated: 6.0, seen: 1 };
    assert_eq!(rate(of(5.2, narrower(5.2))), Some(5.2));
    assert_eq!(rate(of(3.9, narrower(3.9))), None);
    assert_eq!(rate(of(9.0, Open::Exceeds { found: 9.0, stated: 6.0, seen: 1 })), Some(6.0));
}
