//! Evidence without what names its owner's program: paths, symbols, source files and arguments.

use crate::documents::Report;
use crate::documents::evidence::Evidence;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Shorter names are replaced where they are all of a text only.
const SHORTEST: usize = 4;

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
                let all = all.into_iter().map(|(name, one)| (self.key(name), self.value(one)));
                Value::Object(all.collect::<Map<_, _>>())
            }
            other => other,
        }
    }

    fn key(&self, name: String) -> String {
        self.0.get(&name).cloned().unwrap_or(name)
    }
}

/// The evidence with placeholders, always the same ones for the same evidence; what it evaluates to is not changed.
pub fn redacted(evidence: &Evidence) -> Evidence {
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
    let names = names(evidence);
    let arguments = |of: &[String]| of.iter().take(1).map(|_| "program".to_owned()).collect();
    bare.command = arguments(&evidence.command);
    bare.count.command = arguments(&evidence.count.command);
    "program".clone_into(&mut bare.name);
    bare.redacted = true;
    // Values of these types are values of JSON.
    let value = serde_json::to_value(&bare).map(|value| names.value(value));
    value.and_then(serde_json::from_value).unwrap_or_default()
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
        ..Report::new(report.source)
    }
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
    let places = of.recorded.places.keys().cloned();
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
    use crate::documents::evidence::{Code, HotCode, Line};

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
        let bare = redacted(&of);
        let text = serde_json::to_string(&bare).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert!(bare.redacted && bare.samples.functions[0].module == "module-1");
        assert_eq!(bare.notes.0, ["module-1: function-1 was not counted"]);
        assert_eq!(bare.recorded.places["module-1"], [(1, 2)]);
        assert_eq!(text, serde_json::to_string(&redacted(&of)).unwrap(), "always the same");
    }
}
