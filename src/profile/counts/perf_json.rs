//! Lines of `perf stat -j`: one JSON object per line, counts as strings.
//!
//! Keys as perf 5.19 to 6.x write them: `event`, `counter-value`, `unit`, `event-runtime`,
//! `pcnt-running`, `variance`, `metric-value`, `metric-unit`, `interval`, `cgroup`, and one of
//! `cpu`, `core`, `die`, `cluster`, `cache`, `socket`, `node`, `thread`.

use super::builder::{self, BlockKey, Builder, ParsedCount};
use super::recording::Count;
use super::scope::{Scope, ScopeKind};
use serde_json::{Map, Value};
use tma::error::Result;

/// Whether a line is one of perf's objects with a count.
pub fn recognise(text: &str) -> bool {
    object(text).is_some_and(|o| o.contains_key("counter-value") && o.contains_key("event"))
}

/// Parses one line.
///
/// # Errors
/// As [`Builder::row`].
pub fn line(number: u32, text: &str, builder: &mut Builder) -> Result<()> {
    let text = text.trim();
    if let Some(comment) = text.strip_prefix('#') {
        if comment.trim_start().starts_with("started on") {
            builder.start_run();
        }
        return Ok(());
    }
    let Some(object) = object(text) else {
        builder.skip(number, "not a whole JSON object", text);
        return Ok(());
    };
    let key = match key(&object) {
        Ok(key) => key,
        Err(why) => {
            builder.skip(number, why, text);
            return Ok(());
        }
    };
    if let (Some(value), Some(name)) =
        (float(&object, "metric-value"), string(&object, "metric-unit"))
        && !name.is_empty()
        && value.is_finite()
    {
        builder.metric(number, &key, name, value);
    }
    let count = object.get("counter-value").map(|value| match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    });
    let Some(count) = count else {
        if !object.contains_key("metric-value") && !object.contains_key("metricgroup") {
            builder.skip(number, "there is neither a count nor a metric", text);
        }
        return Ok(());
    };
    let Some(name) = string(&object, "event").filter(|e| !e.is_empty()) else {
        builder.skip(number, "there is no event", text);
        return Ok(());
    };
    let count = match builder::count(&count) {
        Ok(count) => count,
        Err(why) => {
            builder.skip(number, why, text);
            return Ok(());
        }
    };
    let share = float(&object, "pcnt-running").filter(|p| (0.0..=100.5).contains(p));
    let found = ParsedCount {
        name,
        count,
        running: share.filter(|_| matches!(count, Count::Value(_))).map(|p| (p / 100.0).min(1.0)),
        run_time: object.get("event-runtime").and_then(Value::as_u64).filter(|t| *t > 0),
        group: None,
        unit: string(&object, "unit").unwrap_or(""),
    };
    builder.row(number, &key, &found)
}

fn object(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    // Some versions end the lines with a comma; metrics can be printed as `nan` or `inf`.
    let text = text.strip_suffix(',').unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) => None,
        Err(_) => match serde_json::from_str(&without_nan(text)) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        },
    }
}

/// Replaces bare `nan` and `inf`, as some versions of perf print them, by `null`.
fn without_nan(text: &str) -> String {
    let mut out = text.to_owned();
    for bare in ["-nan", "nan", "-inf", "inf"] {
        out = out.replace(&format!(": {bare},"), ": null,");
        out = out.replace(&format!(": {bare}}}"), ": null}");
    }
    out
}

fn string<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).map(str::trim)
}

/// A number, or a number in a string.
fn float(object: &Map<String, Value>, key: &str) -> Option<f64> {
    match object.get(key)? {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    }
}

fn key(object: &Map<String, Value>) -> std::result::Result<BlockKey, &'static str> {
    let mut key = BlockKey::default();
    if let Some(interval) = object.get("interval") {
        let nanos = interval
            .as_f64()
            .filter(|s| (0.0..1e9).contains(s))
            .ok_or("the interval is not a time in seconds")?;
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
        key.scope = Some(Scope { kind, name, cgroup: None });
        break;
    }
    if let Some(cgroup) = string(object, "cgroup").filter(|c| !c.is_empty()) {
        let whole = || Scope { kind: ScopeKind::Whole, name: String::new(), cgroup: None };
        key.scope.get_or_insert_with(whole).cgroup = Some(cgroup.to_owned());
    }
    Ok(key)
}
