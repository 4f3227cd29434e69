//! Evidence without what names its owner's program: paths, symbols, source files and arguments.

use report::documents::Report;
use report::documents::evidence::Evidence;
use report::documents::wall_time::TimeRow;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tma::{Error, Result};

/// Shorter names are replaced where they are all of a text only.
const SHORTEST: usize = 4;

/// Members whose texts are fixed words or addresses, whatever a program and its functions are called.
const WORDS: [&str; 22] = [
    "schema",
    "tool",
    "kind",
    "event",
    "processor",
    "table",
    "run",
    "timer",
    "bound",
    "contention",
    "how",
    "probe",
    "level",
    "rule",
    "address",
    "start",
    "end",
    "head",
    "from",
    "to",
    "of",
    "block",
];

/// Names and their placeholders.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    /// Placeholders for `all`, in order.
    fn add(&mut self, what: &str, all: impl IntoIterator<Item = String>) {
        let mut number = 0;
        for name in all {
            if !name.is_empty() && !self.0.contains_key(&name) {
                number += 1;
                self.0.insert(name, format!("{what}-{number}"));
            }
        }
    }

    fn text(&self, text: &str) -> String {
        if let Some(placeholder) = self.0.get(text) {
            return placeholder.clone();
        }
        let mut found = text.to_owned();
        // Longer ones first: a name may be a part of another.
        let mut all: Vec<_> = self.0.iter().filter(|(name, _)| name.len() >= SHORTEST).collect();
        all.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, placeholder) in all {
            if found.contains(name.as_str()) {
                found = found.replace(name.as_str(), placeholder);
            }
        }
        found
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(all) => all.into_iter().map(|one| self.value(one)).collect(),
            Value::Object(all) => {
                let all = all.into_iter().map(|(key, one)| {
                    let one = match key.as_str() {
                        key if WORDS.contains(&key) => one,
                        // A line's source is the name of a file.
                        "source" if one.is_string() => one,
                        "places" => self.places(one),
                        _ => self.value(one),
                    };
                    (key, one)
                });
                Value::Object(all.collect::<Map<_, _>>())
            }
            other => other,
        }
    }

    /// The only keys that are names: modules.
    fn places(&self, value: Value) -> Value {
        let Value::Object(all) = value else { return value };
        let named = |(name, one): (String, Value)| {
            (self.0.get(&name).cloned().unwrap_or(name), self.value(one))
        };
        Value::Object(all.into_iter().map(named).collect())
    }
}

/// The evidence with placeholders, always the same ones for the same evidence; what it evaluates to is not changed.
///
/// # Errors
/// A name is a word of the format, so that what is left is no evidence.
pub fn redacted(evidence: &Evidence) -> Result<Evidence> {
    let mut bare = evidence.clone();
    bare.report = evidence.report.as_ref().map(|report| Box::new(without_names(report)));
    let count = &mut bare.count;
    count.values.clear();
    count.allocation_sites.clear();
    count.contradictions.clear();
    count.hot = None;
    for row in count.loads.iter_mut().chain(&mut count.stores) {
        (row.field, row.memory) = (None, None);
    }
    count.contended_lines.iter_mut().for_each(|line| line.place.clear());
    let names = names(evidence);
    let arguments = |of: &[String]| of.iter().take(1).map(|_| "program".to_owned()).collect();
    bare.command = arguments(&evidence.command);
    bare.count.command = arguments(&evidence.count.command);
    "program".clone_into(&mut bare.name);
    bare.redacted = true;
    let value = serde_json::to_value(&bare).map(|value| names.value(value));
    value.and_then(serde_json::from_value).map_err(|error| {
        Error::failed("cannot replace the names in the evidence")
            .because(error)
            .hint("leave --redact out, and look through the file before you pass it on")
    })
}

fn without_names(report: &Report) -> Report {
    Report {
        uarch: report.uarch.clone(),
        title: report.title.clone(),
        tool: report.tool.clone(),
        duration: report.duration,
        level: report.level,
        repeats: report.repeats,
        software: report.software.clone(),
        wall_time: report.wall_time.iter().map(unnamed).collect(),
        ..Report::new(report.source)
    }
}

fn unnamed(row: &TimeRow) -> TimeRow {
    TimeRow { from: Vec::new(), advice: None, ..row.clone() }
}

fn names(of: &Evidence) -> Names {
    let mut names = Names::default();
    let hot = &of.samples.functions;
    let count = &of.count;
    let modules = hot.iter().map(|one| one.module.clone());
    let rows = count.loads.iter().chain(&count.stores);
    let of_count = count.blocks.iter().map(|row| (row.module.clone(), row.function.clone()));
    let of_count: Vec<(String, String)> = of_count
        .chain(count.loops.iter().map(|row| (row.module.clone(), row.function.clone())))
        .chain(count.branches.iter().map(|row| (row.module.clone(), row.function.clone())))
        .chain(count.refused.iter().map(|row| (row.module.clone(), row.function.clone())))
        .chain(rows.map(|row| (row.module.clone(), row.function.clone())))
        .collect();
    let pinned = of.pinned.iter().flat_map(|run| run.places.keys());
    let places = of.recorded.places.keys().chain(pinned).cloned();
    names.add("module", modules.chain(of_count.iter().map(|of| of.0.clone())).chain(places));
    let functions = hot.iter().map(|one| one.name.clone());
    names.add("function", functions.chain(of_count.iter().map(|of| of.1.clone())));
    let lines = of.functions.iter().flat_map(|code| code.lines.values());
    names.add("file", lines.filter_map(|line| Some(line.source.as_ref()?.0.clone())));
    let report = of.report.iter();
    let of_report = report.flat_map(|one| one.command.iter().flatten().chain(&one.subject));
    let arguments = of.command.iter().chain(of_report).chain([&of.name]);
    names.add("argument", arguments.filter(|one| one.len() >= SHORTEST).cloned());
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::{
        BlockRow, BranchRow, Count, Level, LevelShare, LoadRow, LoopRow, Modelled, PredictedTarget,
    };
    use report::documents::evidence::{Code, HotCode, Line};
    use tma::Address;
    use tma::self_test::Rule;

    #[test]
    fn nothing_names_the_program() {
        let mut of = Evidence::default();
        let function = HotCode {
            module: "/home/me/secret".to_owned(),
            name: "secret_key".to_owned(),
            ..HotCode::default()
        };
        of.samples.functions = vec![function];
        let source = Some(("src/secret.c".to_owned(), 7));
        let lines = BTreeMap::from([(16, Line { samples: 3, source })]);
        of.functions = vec![Code { lines, ..Code::default() }];
        of.command = vec!["/home/me/secret".to_owned(), "--password=secret".to_owned()];
        of.count.command = of.command.clone();
        of.notes.0 = vec!["/home/me/secret: secret_key was not counted".to_owned()];
        of.recorded.places = BTreeMap::from([("/home/me/secret".to_owned(), vec![(1, 2)])]);
        let bare = redacted(&of).unwrap();
        let text = serde_json::to_string(&bare).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert!(bare.redacted && bare.samples.functions[0].module == "module-1");
        assert_eq!(bare.notes.0, ["module-1: function-1 was not counted"]);
        assert_eq!(bare.recorded.places["module-1"], [(1, 2)]);
        assert_eq!(
            text,
            serde_json::to_string(&redacted(&of).unwrap()).unwrap(),
            "always the same"
        );
    }

    /// Functions and programs that are called as members and words of the format are.
    #[test]
    fn names_that_are_words_of_the_format_change_nothing_else() {
        let mut of = Evidence { schema: "tdtool.evidence/1".to_owned(), ..Evidence::default() };
        let named = |name: &str| HotCode { name: name.to_owned(), ..HotCode::default() };
        of.samples.functions =
            ["count", "core", "samples", "name", "cpu-clock", "x1140"].map(named).to_vec();
        let level = LevelShare { level: Level::Memory, ..LevelShare::default() };
        of.count = Count {
            blocks: vec![BlockRow { function: "derived".to_owned(), ..BlockRow::default() }],
            loops: vec![LoopRow { function: "last".to_owned(), ..LoopRow::default() }],
            branches: vec![BranchRow {
                function: "modelled".to_owned(),
                address: Address(0x1140),
                mispredicted: Some(Modelled::default()),
                ..BranchRow::default()
            }],
            loads: vec![LoadRow {
                function: "DRAM".to_owned(),
                levels: vec![level],
                ..LoadRow::default()
            }],
            predicted_target: Some(PredictedTarget {
                rule: Rule::Last,
                ..PredictedTarget::default()
            }),
            ..Count::default()
        };
        of.samples.event = "cpu-clock".to_owned();
        of.command = vec!["tdtool".to_owned(), "loads".to_owned()];
        let bare = redacted(&of).unwrap();
        assert_eq!((&*bare.schema, &*bare.samples.event), ("tdtool.evidence/1", "cpu-clock"));
        let row = &bare.count.loads[0];
        assert_eq!((&*row.function, row.levels[0].level), ("function-10", Level::Memory));
        let names: Vec<&str> = bare.samples.functions.iter().map(|one| &*one.name).collect();
        assert_eq!(names, [1, 2, 3, 4, 5, 6].map(|number| format!("function-{number}")));
        assert_eq!(bare.count.branches[0].address, Address(0x1140));
    }
}
