//! What `tdtool doctor` says of the self-test: each answer, and why the others are open.

use crate::predicting;
use crate::self_test_words::{name, reason};
use pmu::machine::{Finding, Level};
use tma::Core;
use tma::self_test::{Answer, Answers, Consumer, Open};

/// The known answers in one finding, and one for each that is open.
pub fn findings(core: &Core) -> Vec<Finding> {
    let Some(answers) = core.answers() else {
        let what = "self-test: not made, since blocks cannot be run; the table's facts are used";
        return vec![finding(Level::Limited, what.to_owned())];
    };
    let known = known(answers);
    let contradictions = core.contradictions();
    let cause = (!contradictions.is_empty())
        .then(|| format!("it differs from the table and wins: {}", contradictions.join("; ")));
    let level = if cause.is_none() { Level::Ok } else { Level::Limited };
    let what = match known.is_empty() {
        true => "self-test: nothing is known yet".to_owned(),
        false => format!("self-test: {}", known.join("; ")),
    };
    let open = answers.open.iter().map(|(answer, why)| Finding {
        cause: Some(format!("{}{}", reason(why), needed(*answer))),
        remedy: remedy(why).map(str::to_owned),
        ..finding(Level::Limited, format!("self-test, open: {}", name(*answer)))
    });
    [Finding { cause, ..finding(level, what) }].into_iter().chain(open).collect()
}

fn finding(level: Level, what: String) -> Finding {
    Finding { id: "self_test", level, what, cause: None, remedy: None }
}

fn known(answers: &Answers) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    let either = |answer: Option<bool>, yes: &str, no: &str| {
        answer.map(|is| if is { yes.to_owned() } else { no.to_owned() })
    };
    known.extend(width(answers));
    known.extend(either(answers.nops_fused, "nops share slots", "a nop takes a slot"));
    let moves = "moves share the slot of what changes their target";
    known.extend(either(answers.moves_fused, moves, "a move takes a slot"));
    let fences = "fences slow the code after them";
    known.extend(either(answers.fence_slows, fences, "fences do not slow code"));
    let loops = "short loops differ from long ones";
    known.extend(either(answers.loop_differs, loops, "short loops are like long ones"));
    let aligned = "jump targets need alignment to 64";
    known.extend(either(answers.needs_alignment, aligned, "jump targets need no alignment"));
    known.extend(answers.false_distances.as_ref().map(|distances| {
        let each: Vec<String> = distances.iter().map(|d| format!("{d:#x}")).collect();
        match each.is_empty() {
            true => "no false store-to-load dependence".to_owned(),
            false => format!("loads wait falsely for stores {} above", each.join(", ")),
        }
    }));
    known.extend(answers.misprediction.map(|c| format!("a misprediction costs {c:.0} cycles")));
    known.extend(predicting::others(answers));
    known.extend(answers.biased.as_ref().and_then(|biased| {
        let rate = biased.alone(8)?;
        Some(format!(
            "random branches of 1 in 8 are mispredicted {:.1} % of the times",
            100.0 * rate
        ))
    }));
    let rates = [
        (answers.constant_adds, "dependent additions of a constant"),
        (answers.moves, "dependent moves"),
    ];
    let rates: Vec<String> =
        rates.into_iter().filter_map(|(rate, what)| Some(format!("{:.1} {what}", rate?))).collect();
    known.extend((!rates.is_empty()).then(|| format!("a cycle {}", rates.join(", "))));
    known
}

/// The width, and how it was seen.
fn width(answers: &Answers) -> Option<String> {
    let mix = answers.mix.as_deref().unwrap_or("an unnamed mix");
    let width = answers.width?;
    let seen = answers.seen.filter(|seen| seen.attempts > 0).map(|seen| {
        format!(", in {} of {} attempts, the slowest {:.1}", seen.best, seen.attempts, seen.slowest)
    });
    Some(format!("{width:.1} instructions a cycle ({mix}{})", seen.unwrap_or_default()))
}

/// What goes without it.
fn needed(answer: Answer) -> String {
    let all: Vec<&str> = answer.consumers().iter().map(|consumer| consumed(*consumer)).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("; only {} go without it", all.join(" and "))
    }
}

fn consumed(consumer: Consumer) -> &'static str {
    match consumer {
        Consumer::Sentinel => "the sentinel of blocks (a narrower one is used)",
        Consumer::WidthCheck => "the check of blocks against the width",
        Consumer::FrontEndBounds => "front-end and slot bounds of blocks (by the table)",
        Consumer::StoreAliasing => "the store-aliasing check of blocks (by the table)",
        Consumer::BranchCycles => "cycles of mispredictions",
        Consumer::BranchModel => "modelled mispredictions (as most processors have them)",
        Consumer::BadSpeculation => "Bad Speculation of estimates",
        Consumer::Identification => "the choice among tables by measurement",
    }
}

fn remedy(why: &Open) -> Option<&'static str> {
    match why {
        Open::NotAsked
        | Open::Contended(_)
        | Open::Disagree { .. }
        | Open::Exceeds { .. }
        | Open::Narrower { .. }
        | Open::Impossible { .. } => {
            Some("make it again while nothing else runs: tdtool doctor --self-test")
        }
        Open::NoRule | Open::Predicted | Open::DependsOn { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::self_test::{Returns, Signs, Targets};

    fn of(name: &str, answers: Answers) -> Vec<Finding> {
        let core = Core::modelled(&events::library(), name).unwrap();
        core.self_test.answers_or(|| answers);
        findings(&core)
    }

    #[test]
    fn the_self_test_s_answers_are_named_and_contradict_a_table_visibly() {
        let answers = Answers {
            width: Some(5.9),
            mix: Some("load-constant".to_owned()),
            nops_fused: Some(true),
            moves_fused: Some(false),
            fence_slows: Some(true),
            loop_differs: Some(false),
            needs_alignment: Some(false),
            false_distances: Some(vec![0x400, 0x800, 0x1000]),
            misprediction: Some(22.4),
            ready_misprediction: Some(18.2),
            indirect_misprediction: Some(26.6),
            return_misprediction: Some(17.0),
            misprediction_load: Some(4.5),
            targets: Some(Targets { quarter: 0.36, eighth: 0.2 }),
            returns: Some(Returns { alternate: 0.0, fives: 0.3 }),
            ..Answers::default()
        };
        // As measured natively on a Zen 4.
        let all = of("zen4", answers.clone());
        let found = &all[0];
        assert_eq!((all.len(), found.level), (1, Level::Ok), "{:?}", found.cause);
        assert!(found.what.contains("5.9 instructions a cycle (load-constant)"), "{}", found.what);
        assert!(found.what.contains("a misprediction costs 22 cycles"), "{}", found.what);
        let indirect = "18 where nothing is waited for, 27 of an indirect jump, of whose targets the last one is predicted";
        assert!(found.what.contains(indirect), "{}", found.what);
        assert!(found.what.contains("nops share slots") && found.what.contains("0x400, 0x800"));
        let other = Answers { nops_fused: Some(false), width: Some(7.9), ..answers };
        let cause = of("zen4", other)[0].cause.clone().unwrap();
        assert!(cause.contains("not fused, the table states fused"), "{cause}");
        assert!(cause.contains("7.9 instructions a cycle, the table states 6"), "{cause}");
        assert_eq!(findings(&Core::default())[0].level, Level::Limited);
    }

    #[test]
    fn each_open_answer_has_its_own_reason_and_says_what_goes_without_it() {
        let signs = Signs { switches: Some(3), stolen: None, spread: Some(0.2) };
        let open = [
            (Answer::Width, Open::Contended(signs)),
            (Answer::NopsFused, Open::DependsOn { answer: Answer::Width }),
            (Answer::Misprediction, Open::Disagree { low: 20.0, high: 44.0 }),
        ];
        let answers = Answers { open: open.into_iter().collect(), ..Answers::default() };
        let all = of("zen4", answers);
        let causes: Vec<&str> = all.iter().filter_map(|f| f.cause.as_deref()).collect();
        assert_eq!(causes.len(), 3);
        assert!(causes[0].contains("3 involuntary context switches"), "{}", causes[0]);
        assert!(causes[1].starts_with("it needs another answer, sustained width"), "{}", causes[1]);
        assert!(causes[2].starts_with("attempts disagree, from 20.0 to 44.0"), "{}", causes[2]);
        assert!(causes[2].contains("Bad Speculation") && !causes[2].contains("shared"));
    }
}
