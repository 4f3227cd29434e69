//! Tests of what the self-test's answers mean for modelled mispredictions.

use super::*;
use tma::self_test::Targets;

const ALL: Executed = Executed { targets: true, calls: true, returns: true };

#[test]
fn notes_are_on_branches_that_were_executed() {
    let answers = Answers { misprediction: Some(28.0), ..Answers::default() };
    let notes = |answers: Option<&Answers>, executed| {
        let mut document = Count::default();
        enter(&mut document, answers, executed);
        [document.notes, document.model].concat().join("\n")
    };
    for answers in [None, Some(&answers)] {
        let none = notes(answers, Executed::default());
        for kind in ["indirect", "jump", "call", "target", "return"] {
            assert!(!none.contains(kind), "{kind}: {none}");
        }
        let jumps = notes(answers, Executed { targets: true, ..Executed::default() });
        assert!(jumps.contains("of several targets"), "{jumps}");
        assert!(!jumps.contains("indirect calls") && !jumps.contains("return"), "{jumps}");
        let calls = notes(answers, Executed { calls: true, ..Executed::default() });
        assert!(calls.contains("indirect calls of several functions"), "{calls}");
    }
    // Costs taken over from other branches are said to be.
    let ready = Answers { ready_misprediction: Some(22.0), ..answers.clone() };
    assert!(notes(Some(&ready), ALL).contains("22 assumed of a return"));
    let own = Answers { return_misprediction: Some(17.0), ..ready };
    assert!(notes(Some(&own), ALL).contains("17 of a return"));
}

#[test]
fn the_rule_is_the_one_that_the_processor_shows_and_said() {
    let of = |targets: Option<Targets>| {
        let answers = Answers {
            misprediction: Some(28.0),
            ready_misprediction: Some(22.0),
            indirect_misprediction: Some(33.0),
            misprediction_load: Some(5.0),
            targets,
            ..Answers::default()
        };
        let mut document = Count::default();
        let rule = enter(&mut document, Some(&answers), ALL).targets.unwrap_or_default();
        assert!(document.model[0].contains("28 cycles"), "{:?}", document.model);
        assert!(document.model[0].contains("22 where"), "{:?}", document.model);
        assert!(document.model[0].contains("33 of an indirect"), "{:?}", document.model);
        let row = document.predicted_target.unwrap();
        (rule, row.rule, row.measured, document.model[1].clone())
    };
    // By hand: a call through an object waits for three loads, one more than the self-test's jump.
    let costs = Costs {
        ready: Some(22.0),
        waiting: Some(28.0),
        indirect: Some(33.0),
        returns: Some(17.0),
        load: Some(5.0),
    };
    assert_eq!(costs.one(&What::Entered, 1), Some(17.0));
    let target = |loads| costs.one(&What::Target, loads);
    assert_eq!((target(0), target(2), target(3)), (Some(33.0), Some(33.0), Some(38.0)));
    let outcome = |loads| costs.one(&What::Outcome, loads);
    assert_eq!((outcome(0), outcome(1), outcome(3)), (Some(22.0), Some(28.0), Some(38.0)));
    let (rule, named, measured, note) = of(Some(Targets { quarter: 0.36, eighth: 0.2 }));
    assert_eq!((rule, named, measured), (Rule::Last, Rule::Last, true));
    assert!(note.contains("are mispredicted 36 and 20 %"), "{note}");
    let (rule, named, measured, note) = of(Some(Targets { quarter: 0.25, eighth: 0.2 }));
    assert_eq!((rule, named, measured), (Rule::MostFrequent, Rule::MostFrequent, false));
    assert!(note.contains("not decided"), "{note}");
    assert!(of(None).3.contains("no answer yet"));
    // Neither of the predictors nor of cycles: one line has both, and what to do.
    let mut document = Count::default();
    enter(&mut document, None, ALL);
    let [note] = &document.notes[..] else { panic!("{:?}", document.notes) };
    for said in ["6 of 6 properties", "cycles are not known", "`tdtool doctor --self-test`"] {
        assert!(note.contains(said), "{note}");
    }
    // As measured on Zen 4, and without an answer.
    let shown = Some(Returns { alternate: 0.0, fives: 0.31 });
    for (returns, rule, measured) in [(shown, Below::Around, true), (None, Below::Oldest, false)] {
        let answers = Answers { returns, ..Answers::default() };
        let mut document = Count::default();
        enter(&mut document, Some(&answers), ALL);
        let row = document.predicted_return.unwrap();
        assert_eq!((row.rule, row.measured), (rule, measured));
    }
}
