//! Lines of `perf stat -j`: one JSON object per line, counts as strings.
//!
//! The objects may be in an array or have commas between them, and numbers have a decimal comma where the locale has
//! one. Keys as perf 5.19 to 6.x write them: `event`, `counter-value`, `unit`, `event-runtime`, `pcnt-running`, `variance`, `metric-value`, `metric-unit`, `interval`, `cgroup`, and one of
//! `cpu`, `core`, `die`, `cluster`, `cache`, `socket`, `node`, `thread`.

use super::builder::{self, BlockKey, Builder, ParsedCount};
use super::recording::{Count, Scope, ScopeKind, Unparsed};
use serde_json::{Map, Value};
use tma::error::Result;

/// One of perf's objects.
pub type Object = Map<String, Value>;

/// The objects of a line that is one of perf's with a count, or an array of them.
pub fn recognise(text: &str) -> Option<Vec<Object>> {
    objects(text).filter(|all| all.iter().any(has_count))
}

fn has_count(object: &Object) -> bool {
    object.contains_key("counter-value") && object.contains_key("event")
}

/// Adds the objects of a text that other tools laid out over several lines. Whether it had some.
pub fn lies_over_lines(lines: &[(u32, String)], builder: &mut Builder) -> Result<bool> {
    if !lines.first().is_some_and(|(_, text)| text.trim_start().starts_with(['[', '{'])) {
        return Ok(false);
    }
    let text: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
    let text = with_points(&without_nan(&text.join("\n")));
    let mut found = false;
    let mut damage = None;
    let mut rest = &*text;
    loop {
        // As in an array without its brackets.
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = match values.next() {
            None => break,
            Some(Ok(value)) => value,
            Some(Err(error)) => {
                let before = text[..text.len() - rest.len()].matches('\n').count();
                let line = lines.get(before + error.line().saturating_sub(1)).or(lines.last());
                damage = Some((line, Unparsed::NoJson));
                break;
            }
        };
        rest = &rest[values.byte_offset()..];
        let Some(objects) = of_value(value) else {
            damage = Some((lines.first(), Unparsed::NoObject));
            continue;
        };
        for object in objects.iter().filter(|object| has_count(object)) {
            found = true;
            // The lines are not those of the objects.
            add(lines.first().map_or(0, |line| line.0), object, "", builder)?;
        }
    }
    // Without counts, the file is refused.
    if let Some((Some((number, text)), why)) = damage.filter(|_| found) {
        builder.skip(*number, why, text);
    }
    Ok(found)
}

/// Values by name, where a line is an object of metrics only (`--metric-only`).
pub fn metric_only(text: &str) -> Option<Vec<String>> {
    let object = objects(text)?.into_iter().next().filter(|object| object.len() > 1)?;
    let value = |name: &String| float(&object, name).map(|value| format!("{name} {value}"));
    let values: Option<Vec<String>> =
        object.keys().filter(|name| *name != "interval").map(value).collect();
    values.filter(|values| !values.is_empty())
}

/// Parses one line.
pub fn line(number: u32, text: &str, builder: &mut Builder) -> Result<()> {
    let text = text.trim();
    if let Some(comment) = text.strip_prefix('#') {
        if comment.trim_start().starts_with("started on") {
            builder.start_run();
        }
        return Ok(());
    }
    // The brackets of an array whose objects are a line each.
    if matches!(text, "[" | "]" | "],") {
        return Ok(());
    }
    let Some(all) = objects(text) else {
        builder.skip(number, Unparsed::PartOfObject, text);
        return Ok(());
    };
    add_all(number, &all, text, builder)
}

/// Adds the objects that are on the line `text`.
pub fn add_all(number: u32, all: &[Object], text: &str, builder: &mut Builder) -> Result<()> {
    all.iter().try_for_each(|object| add(number, object, text.trim(), builder))
}

/// Adds an object; `text` is the line that it is on.
fn add(number: u32, object: &Object, text: &str, builder: &mut Builder) -> Result<()> {
    let key = match key(object) {
        Ok(key) => key,
        Err(why) => {
            builder.skip(number, why, text);
            return Ok(());
        }
    };
    if let (Some(value), Some(name)) =
        (float(object, "metric-value"), string(object, "metric-unit"))
        && !name.is_empty()
        && value.is_finite()
    {
        builder.metric(number, &key, name, value);
    }
    let count = object.get("counter-value").map(|value| match value {
        Value::String(text) => point(text.trim()),
        other => other.to_string(),
    });
    let Some(count) = count else {
        if !object.contains_key("metric-value") && !object.contains_key("metricgroup") {
            builder.skip(number, Unparsed::NoCount, text);
        }
        return Ok(());
    };
    let Some(name) = string(object, "event").filter(|e| !e.is_empty()) else {
        builder.skip(number, Unparsed::NoEvent, text);
        return Ok(());
    };
    let count = match builder::count(&count) {
        Ok(count) => count,
        Err(why) => {
            builder.skip(number, why, text);
            return Ok(());
        }
    };
    let share = float(object, "pcnt-running").filter(|p| (0.0..=100.5).contains(p));
    let found = ParsedCount {
        name,
        count,
        running: share.filter(|_| matches!(count, Count::Value(_))).map(|p| (p / 100.0).min(1.0)),
        run_time: object.get("event-runtime").and_then(Value::as_u64).filter(|t| *t > 0),
        unit: string(object, "unit").unwrap_or(""),
        ..ParsedCount::default()
    };
    builder.row(number, &key, &found)
}

/// The objects of a line: one, or those of an array, whose brackets may be on other lines.
fn objects(text: &str) -> Option<Vec<Object>> {
    let text = text.trim();
    // Some versions end the lines with a comma.
    let text = text.strip_suffix(',').unwrap_or(text);
    if text.starts_with('[') && text.ends_with(']') {
        return of_value(value(text)?);
    }
    let text = text.strip_prefix('[').unwrap_or(text).trim();
    let text = text.strip_suffix(']').unwrap_or(text).trim();
    if !text.starts_with('{') {
        return None;
    }
    of_value(value(text)?)
}

/// Metrics can be printed as `nan` or `inf`, and numbers with a decimal comma.
fn value(text: &str) -> Option<Value> {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&with_points(&without_nan(text))))
        .ok()
}

fn of_value(value: Value) -> Option<Vec<Object>> {
    match value {
        Value::Object(object) => Some(vec![object]),
        Value::Array(all) => {
            let all: Option<Vec<_>> = all.into_iter().map(of_value).collect();
            Some(all?.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// Replaces the commas of numbers such as `100,00`, as perf writes them in some locales: in JSON, a comma
/// between two digits separates nothing.
fn with_points(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        is_quoted ^= c == '"';
        let is_decimal = c == ','
            && !is_quoted
            && out.ends_with(|c: char| c.is_ascii_digit())
            && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if is_decimal { '.' } else { c });
    }
    out
}

/// A number in a string, whose decimal mark may be a comma.
fn point(text: &str) -> String {
    match text.parse::<f64>() {
        Err(_) if text.matches(',').count() == 1 => text.replace(',', "."),
        _ => text.to_owned(),
    }
}

/// Replaces bare `nan` and `inf`, as some versions of perf print them, by `null`.
fn without_nan(text: &str) -> String {
    let mut out = text.to_owned();
    for bare in ["-nan", "nan", "-inf", "inf"] {
        out = out.replace(&format!(": {bare},"), ": null,");
        out = out.replace(&format!(": {bare}}}"), ": null}");
        out = out.replace(&format!(": {bare}\n"), ": null\n");
    }
    out
}

fn string<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).map(str::trim)
}

/// A number, or a number in a string.
fn float(object: &Object, key: &str) -> Option<f64> {
    match object.get(key)? {
        Value::String(text) => point(text.trim()).parse().ok(),
        other => other.as_f64(),
    }
}

fn key(object: &Object) -> std::result::Result<BlockKey, Unparsed> {
    let mut key = BlockKey::default();
    if let Some(interval) = object.get("interval") {
        let nanos =
            interval.as_f64().filter(|s| (0.0..1e9).contains(s)).ok_or(Unparsed::Interval)?;
        key.time = Some((nanos * 1e9).round() as u64);
    }
    let kinds = [
        ("cpu", ScopeKind::Cpu),
        ("core", ScopeKind::Core),
        ("die", ScopeKind::Die),
        ("cluster", ScopeKind::Die),
        ("cache", ScopeKind::Die),
        ("socket", ScopeKind::Socket),
        ("node", ScopeKind::Node),
        ("thread", ScopeKind::Thread),
    ];
    for (field, kind) in kinds {
        let Some(value) = object.get(field) else { continue };
        let name = match value {
            Value::String(name) => name.trim().to_owned(),
            other => other.to_string(),
        };
        let name = match kind {
            ScopeKind::Cpu => format!("cpu{}", name.trim_start_matches("CPU")),
            _ => name,
        };
        key.scope = Some(Scope { kind, name, ..Scope::default() });
        break;
    }
    if let Some(cgroup) = string(object, "cgroup").filter(|c| !c.is_empty()) {
        key.scope.get_or_insert_default().cgroup = Some(cgroup.to_owned());
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::super::recording::{Recording, Source};
    use super::*;
    use crate::counts::formats::CountFormat;

    fn read(text: &str) -> (bool, Recording) {
        let mut builder = Builder::default();
        builder.start_file(Source { path: "a".into(), format: CountFormat::PerfJson, runs: 1 });
        let lines: Vec<(u32, String)> = (1..).zip(text.lines().map(str::to_owned)).collect();
        let found = lies_over_lines(&lines, &mut builder).unwrap();
        (found, std::mem::take(builder.recording()))
    }

    fn rows(recording: &Recording) -> usize {
        recording.blocks.iter().map(|block| block.rows.len()).sum()
    }

    const OBJECT: &str =
        "{\n\"event\": \"EVENT\",\n\"metric-value\": nan,\n\"counter-value\": \"7\"\n}\n";

    #[test]
    fn objects_over_lines_may_have_bare_nan() {
        let text = [OBJECT.replace("EVENT", "cycles"), OBJECT.replace("EVENT", "branches")];
        let (found, recording) = read(&text.concat());
        assert_eq!((found, rows(&recording), recording.skipped.len()), (true, 2, 0));
    }

    #[test]
    fn objects_over_lines_may_have_commas_between_them() {
        let objects = ["cycles", "branches", "instructions"]
            .map(|event| OBJECT.replace("EVENT", event).trim_end().to_owned());
        for text in [objects.join(",\n"), objects.join("\n,\n") + ",\n"] {
            let (found, recording) = read(&text);
            assert_eq!((found, rows(&recording), recording.skipped.len()), (true, 3, 0), "{text}");
        }
        // The line of what is no JSON, counted from the beginning.
        let (_, recording) = read(&format!("{},\n{},\n?\n", objects[0], objects[1]));
        assert_eq!(recording.skipped.iter().map(|s| s.line).collect::<Vec<_>>(), [11]);
    }

    #[test]
    fn what_follows_a_damaged_value_is_not_lost_in_silence() {
        let second = OBJECT.replace("EVENT", "branches").replace("\"7\"", "7 7");
        let (found, recording) =
            read(&[OBJECT.replace("EVENT", "cycles"), second.clone()].concat());
        assert_eq!((found, rows(&recording)), (true, 1));
        assert_eq!(recording.skipped.iter().map(|s| s.line).collect::<Vec<_>>(), [9]);
        assert!(!read(&second).0, "without a count the file is refused");

        let array = ["[1,\n", &OBJECT.replace("EVENT", "cycles"), "]\n"].concat();
        let (found, recording) = read(&[OBJECT.replace("EVENT", "cycles"), array].concat());
        assert_eq!((found, recording.skipped.len()), (true, 1));
    }
}
