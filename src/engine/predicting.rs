//! What the processor said of its predictors, for the model of them.

use crate::documents::count::{Count, PredictedTarget};
use tma::self_test::{Answers, Rule};

/// Adds costs and rule to a document, with a note; the rule that the model takes.
pub fn enter(document: &mut Count, answers: Option<&Answers>) -> Rule {
    let targets = answers.and_then(|answers| answers.targets);
    let shown = targets.and_then(|targets| targets.rule());
    let rule = shown.unwrap_or(Rule::MostFrequent);
    let known = |cost: fn(&Answers) -> Option<f64>| answers.and_then(cost);
    document.misprediction_cycles = known(|answers| answers.misprediction);
    document.ready_misprediction_cycles = known(|answers| answers.ready_misprediction);
    document.indirect_misprediction_cycles = known(|answers| answers.indirect_misprediction);
    document.predicted_target = Some(PredictedTarget {
        rule: match rule {
            Rule::Last => "last",
            Rule::MostFrequent => "most_frequent",
        }
        .to_owned(),
        measured: shown.is_some(),
        quarter: targets.map(|targets| targets.quarter),
        eighth: targets.map(|targets| targets.eighth),
    });
    let cost = |cycles: Option<f64>| cycles.map_or("?".to_owned(), |cycles| format!("{cycles:.0}"));
    let (ready, indirect) =
        (cost(document.ready_misprediction_cycles), cost(document.indirect_misprediction_cycles));
    document.notes.push(match document.misprediction_cycles {
        Some(cycles) => format!(
            "mispredictions are modelled, not counted; one costs {cycles:.0} cycles by the self-test, {ready} where \
             the branch waits for no load of its block and of a return, {indirect} of an indirect jump or call"
        ),
        None => "mispredictions are modelled, not counted; what one costs is not known: the self-test \
                 has no answer yet"
            .to_owned(),
    });
    document.notes.push(note(shown, targets.map(|targets| (targets.quarter, targets.eighth))));
    rule
}

/// What is known of other mispredictions than those of random branches, as part of a list.
pub fn others(answers: &Answers) -> Option<String> {
    let (ready, cost) = (answers.ready_misprediction?, answers.indirect_misprediction?);
    let rule = match answers.targets?.rule() {
        Some(Rule::Last) => "the last one is predicted",
        Some(Rule::MostFrequent) => "the most frequent one is predicted",
        None => "neither the last nor the most frequent one is predicted",
    };
    Some(format!(
        "{ready:.0} where nothing is waited for, {cost:.0} of an indirect jump, of whose targets {rule}"
    ))
}

/// Which rule, and why.
fn note(shown: Option<Rule>, shares: Option<(f64, f64)>) -> String {
    let Some((quarter, eighth)) = shares else {
        return "of several targets the most frequent one is taken to be predicted; what this \
                processor does is not known: the self-test has no answer yet"
            .to_owned();
    };
    let why = format!(
        "jumps that take the rarer of two random targets 25 and 12.5 % of the times are mispredicted {:.0} and \
         {:.0} % of the times in the self-test; the model mispredicts 36 and 19 % by the last target, 29 and \
         14 % by the most frequent one",
        100.0 * quarter,
        100.0 * eighth
    );
    match shown {
        Some(Rule::Last) => format!("of several targets the last one is predicted: {why}"),
        Some(Rule::MostFrequent) => {
            format!("of several targets the most frequent one is predicted: {why}")
        }
        None => format!(
            "of several targets the most frequent one is taken to be predicted, which is not decided: {why}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::self_test::Targets;

    #[test]
    fn the_rule_is_the_one_that_the_processor_shows_and_said() {
        let of = |targets: Option<Targets>| {
            let answers = Answers {
                misprediction: Some(28.0),
                ready_misprediction: Some(22.0),
                indirect_misprediction: Some(33.0),
                targets,
                ..Answers::default()
            };
            let mut document = Count::default();
            let rule = enter(&mut document, Some(&answers));
            assert!(document.notes[0].contains("28 cycles"), "{:?}", document.notes);
            assert!(document.notes[0].contains("22 where"), "{:?}", document.notes);
            assert!(document.notes[0].contains("33 of an indirect"), "{:?}", document.notes);
            let row = document.predicted_target.unwrap();
            (rule, row.rule, row.measured, document.notes[1].clone())
        };
        let (rule, name, measured, note) = of(Some(Targets { quarter: 0.36, eighth: 0.2 }));
        assert_eq!((rule, name.as_str(), measured), (Rule::Last, "last", true));
        assert!(note.contains("are mispredicted 36 and 20 %"), "{note}");
        let (rule, name, measured, note) = of(Some(Targets { quarter: 0.25, eighth: 0.2 }));
        assert_eq!((rule, name.as_str(), measured), (Rule::MostFrequent, "most_frequent", false));
        assert!(note.contains("not decided"), "{note}");
        assert!(of(None).3.contains("no answer yet"));
    }
}
