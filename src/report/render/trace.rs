//! Intervals in the Trace Event Format, for Perfetto (ui.perfetto.dev) and chrome://tracing: counter tracks, and
//! slices for phases.

use super::phases;
use crate::documents::report::Report;
use crate::documents::series::{Series, level_1, software};
use serde_json::{Map, Value, json};

/// The one process, and its thread with phases.
const PROCESS: u32 = 1;
const PHASES: u32 = 1;

/// The intervals of a report.
pub fn json(whole: &Report, intervals: &[Report]) -> Vec<u8> {
    let title = whole.name();
    let mut events = vec![named("process_name", &title), named("thread_name", "phases")];
    for series in level_1(intervals).into_iter().chain(software(intervals)) {
        counters(&series, &mut events);
    }
    for (number, phase) in whole.phases.iter().enumerate() {
        let functions: Map<String, Value> = phase
            .functions
            .iter()
            .map(|f| (format!("{} ({})", f.name, f.module), json!(percent(f.share))))
            .collect();
        events.push(json!({
            "name": format!("phase {}: {}", number + 1, phases::text(phase)),
            "cat": "phase", "ph": "X", "pid": PROCESS, "tid": PHASES,
            "ts": micros(phase.from), "dur": micros(phase.to - phase.from),
            "args": {"percent of the samples": functions},
        }));
    }
    let about = json!({
        "tool": format!("tdtool {}", whole.tool), "processor": whole.title,
        "source": whole.source.label(), "notes": whole.notes.join("; "),
    });
    json!({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}).to_string().into()
}

fn named(what: &str, name: &str) -> Value {
    json!({"name": what, "ph": "M", "pid": PROCESS, "tid": PHASES, "args": {"name": name}})
}

fn micros(seconds: f64) -> f64 {
    // To the nanosecond: what is beyond is rounding.
    (seconds * 1e9).round() / 1e3
}

fn percent(share: f64) -> f64 {
    (share * 1e4).round() / 1e2
}

/// A counter holds until its next event: the values of an interval at its begin, those of the last also at its end.
/// What was not measured has no value.
fn counters(series: &Series, events: &mut Vec<Value>) {
    let unit = if series.is_share { " (%)" } else { "" };
    let name = format!("{}{unit}", series.title);
    let last = series.intervals.last().map(|interval| (interval.span.1, interval));
    for (time, interval) in series.intervals.iter().map(|i| (i.span.0, i)).chain(last) {
        let value = |value: f64| if series.is_share { percent(value) } else { value };
        let known = series.labels.iter().zip(&interval.values);
        let known = known.filter_map(|(label, of)| Some((label.clone(), json!(value((*of)?)))));
        let values: Map<String, Value> = known.collect();
        if !values.is_empty() {
            events.push(json!({
                "name": name, "ph": "C", "pid": PROCESS, "ts": micros(time), "args": values,
            }));
        }
    }
}
