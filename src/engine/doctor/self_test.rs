//! Findings of `tdtool doctor` on the self-test: how many answers are known, each of them, and why others are open.

use crate::predicting;
use crate::tested::{name, reason};
use pmu::machine::{Finding, Level};
use tma::Core;
use tma::self_test::{Answer, Answers, Consumer, Open};

/// One finding: how many answers are known. Its evidence are the answers, and why the others are open.
pub fn finding(core: &Core) -> Finding {
    let again = "while nothing else runs: `tdtool doctor --self-test`";
    let Some(answers) = core.answers() else {
        let what = "self-test: not made, since blocks cannot be run; the table's facts are used";
        return Finding {
            remedy: Some(again.to_owned()),
            ..of_level(Level::Limited, what.to_owned())
        };
    };
    let contradictions = core.contradictions();
    let mut evidence = known(answers);
    evidence
        .extend(contradictions.iter().map(|one| format!("differs from the table and wins: {one}")));
    evidence.extend(answers.open.iter().map(|(answer, why)| {
        format!("open: {}: {}{}", name(*answer), reason(why), needed(*answer))
    }));
    // A branch that is always predicted here has no cost to be known.
    let lacking = answers.open.iter().filter(|(_, why)| **why != Open::Predicted);
    let open: Vec<&str> = lacking.map(|(answer, _)| name(*answer)).collect();
    let all = Answer::ALL.len();
    let mut what = format!("self-test: {} of {all} answers known", all - answers.open.len());
    if let [first, rest @ ..] = &open[..] {
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        what += &format!("; open: {first}{more}");
    }
    if !contradictions.is_empty() {
        what += &format!("; {} differ from the table and win", contradictions.len());
    }
    let remedy = match (open.is_empty(), contradictions.is_empty()) {
        (false, _) => again,
        (true, false) => "whether the table is that of this processor: `tdtool tables identify`",
        (true, true) => return Finding { evidence, ..of_level(Level::Ok, what) },
    };
    Finding { remedy: Some(remedy.to_owned()), evidence, ..of_level(Level::Limited, what) }
}

fn of_level(level: Level, what: String) -> Finding {
    Finding::new("self_test", level, what)
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
    known.extend(answers.fillers.map(|rate| {
        let filler = if answers.nops_fused == Some(true) { "moves" } else { "nops" };
        format!(
            "{rate:.1} {filler} a cycle, which stand for instructions in front-end and slot bounds"
        )
    }));
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
    known.extend(answers.calls.map(|_| predicting::in_turn(answers.rules().calls).to_owned()));
    known.extend(answers.several.as_ref().and_then(predicting::several));
    known.extend(answers.biased.as_ref().and_then(|biased| {
        let rate = biased.alone(8)?;
        Some(format!(
            "random branches of 1 in 8 are mispredicted {:.1} % of the times",
            100.0 * rate
        ))
    }));
    known.extend(answers.remembered.as_ref().and_then(predicting::remembered));
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

/// The note on features that go without this answer.
fn needed(answer: Answer) -> String {
    let all: Vec<&str> = answer.consumers().iter().map(|consumer| consumed(*consumer)).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("; only this goes without it: {}", all.join(", "))
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

#[cfg(test)]
mod tests {
    use super::*;
    use tma::self_test::{Returns, Signs, Targets};

    fn of(name: &str, answers: Answers) -> Finding {
        let core = Core::modelled(&events::library(), name).unwrap();
        core.self_test.answers_or(|| answers);
        finding(&core)
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
        let found = of("zen4", answers.clone());
        assert_eq!(found.level, Level::Ok, "{found:?}");
        let has =
            |found: &Finding, part: &str| found.evidence.iter().any(|line| line.contains(part));
        assert!(has(&found, "5.9 instructions a cycle (load-constant)"), "{found:?}");
        assert!(has(&found, "a misprediction costs 22 cycles"), "{found:?}");
        let indirect = "18 where nothing is waited for, 27 of an indirect jump, of whose targets the last one is predicted";
        assert!(has(&found, indirect), "{found:?}");
        assert!(has(&found, "nops share slots") && has(&found, "0x400, 0x800"));
        let other = Answers { nops_fused: Some(false), width: Some(7.9), ..answers };
        let differs = of("zen4", other);
        assert!(has(&differs, "not fused, the table states fused"), "{differs:?}");
        assert!(has(&differs, "7.9 instructions a cycle, the table states 6"), "{differs:?}");
        assert!(differs.level == Level::Limited && differs.remedy.is_some());
        let none = finding(&Core::default());
        assert!(none.level == Level::Limited && none.remedy.is_some());
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
        let found = of("zen4", answers);
        assert_eq!(
            found.what,
            "self-test: 18 of 21 answers known; open: sustained width and 2 more"
        );
        assert!(found.remedy.is_some_and(|text| text.contains("--self-test")));
        let open: Vec<&str> =
            found.evidence.iter().filter_map(|line| line.strip_prefix("open: ")).collect();
        assert_eq!(open.len(), 3);
        assert!(open[0].contains("3 involuntary context switches"), "{}", open[0]);
        assert!(open[1].contains("it needs another answer, sustained width"), "{}", open[1]);
        assert!(open[2].contains("attempts disagree, from 20.0 to 44.0"), "{}", open[2]);
        assert!(open[2].contains("Bad Speculation") && !open[2].contains("shared"));
    }

    #[test]
    fn what_this_core_always_predicts_is_no_limitation() {
        let open = [(Answer::ReturnMisprediction, Open::Predicted)].into_iter().collect();
        let found = of("zen4", Answers { open, ..Answers::default() });
        assert!(found.level == Level::Ok && found.remedy.is_none(), "{found:?}");
    }
}
