//! Renders a report over time. For the Firefox Profiler: samples with their times, categories by node, and
//! intervals as tracks, in the form of processed profiles, which `fxprof-processed-profile` writes. For Perfetto
//! (ui.perfetto.dev) and chrome://tracing, in the Trace Event Format: intervals as counter tracks, phases as
//! slices.

use crate::documents::report::Report;
use crate::documents::report_parts::{Phase, PhaseValue, Timeline};
use crate::documents::series::{Series, level_1, software};
use crate::format::number;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, GraphColor, Marker,
    MarkerFieldFlags, MarkerFieldFormat, MarkerGraphType, MarkerLocations, MarkerTiming,
    MarkerTypeHandle, Profile, ReferenceTimestamp, RuntimeSchemaMarkerField,
    RuntimeSchemaMarkerGraph, RuntimeSchemaMarkerSchema, SamplingInterval, StackHandle,
    StringHandle, ThreadHandle, Timestamp,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Words in the name of a node, and the colours of its category and graph.
const COLOURS: [(&str, CategoryColor, GraphColor); 8] = [
    ("retiring", CategoryColor::Green, GraphColor::Green),
    ("bad", CategoryColor::Magenta, GraphColor::Magenta),
    ("mispredict", CategoryColor::Magenta, GraphColor::Magenta),
    ("memory", CategoryColor::Orange, GraphColor::Orange),
    ("frontend", CategoryColor::Blue, GraphColor::Blue),
    ("fetch", CategoryColor::LightBlue, GraphColor::Teal),
    ("core", CategoryColor::Yellow, GraphColor::Yellow),
    ("backend", CategoryColor::Brown, GraphColor::Red),
];

/// A report, and the intervals that it is the whole of, as JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn firefox(whole: &Report, intervals: &[Report]) -> tma::Result<Vec<u8>> {
    let profile = profile(whole, intervals);
    serde_json::to_vec(&profile).map_err(|e| {
        tma::Error::failed("cannot write the report as a profile of Firefox").because(e)
    })
}

fn profile(whole: &Report, intervals: &[Report]) -> Profile {
    let empty = Timeline::default();
    let timeline = whole.timeline.as_ref().unwrap_or(&empty);
    let title = whole.name();
    // Recordings do not say when they were made: times are since their begin.
    let begin = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let step = step(timeline);
    let mut profile = Profile::new(&title, begin, SamplingInterval::from_nanos(step));
    profile.set_os_name("Linux");
    profile.set_symbolicated(true);
    let mut threads = threads(&mut profile, timeline);
    samples(&mut profile, timeline, &threads, step);
    if threads.is_empty() {
        let process = profile.add_process(&title, 1, at(0.0));
        threads.push(profile.add_thread(process, 1, at(0.0), true));
    }
    for series in level_1(intervals).into_iter().chain(software(intervals)) {
        track(&mut profile, threads[0], &series);
    }
    phase_markers(&mut profile, threads[0], whole);
    profile
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_millis_since_reference(seconds * 1e3)
}

/// Nanoseconds from one sample to the next: the shortest mean of a thread.
fn step(timeline: &Timeline) -> u64 {
    let mut spans: HashMap<u32, (u64, u64, u64)> = HashMap::new();
    for sample in &timeline.taken.samples {
        let span = spans.entry(sample.thread).or_insert((sample.time, sample.time, 0));
        (span.1, span.2) = (sample.time, span.2 + 1);
    }
    let steps = spans.values().filter(|span| span.2 > 1);
    let step = steps.map(|(first, last, number)| (last - first) / (number - 1)).min();
    step.unwrap_or(1_000_000).max(1)
}

fn threads(profile: &mut Profile, timeline: &Timeline) -> Vec<ThreadHandle> {
    let mut processes = HashMap::new();
    let mut out = Vec::new();
    for thread in &timeline.taken.threads {
        let process = *processes
            .entry(thread.pid)
            .or_insert_with(|| profile.add_process(&thread.process, thread.pid, at(0.0)));
        let is_main = thread.pid == thread.tid;
        let handle = profile.add_thread(process, thread.tid, at(0.0), is_main);
        if !thread.name.is_empty() {
            profile.set_thread_name(handle, &thread.name);
        }
        out.push(handle);
    }
    out
}

/// Samples with their stacks. The innermost frame has the category of the node that its time goes to.
fn samples(profile: &mut Profile, timeline: &Timeline, threads: &[ThreadHandle], step: u64) {
    let category = |node: &String| {
        let colour = colour(node).map_or(CategoryColor::Gray, |(category, _)| category);
        profile.add_category(node, colour)
    };
    let categories: Vec<CategoryHandle> = timeline.nodes.iter().map(category).collect();
    let taken = &timeline.taken;
    let names: Vec<StringHandle> =
        taken.frames.iter().map(|frame| profile.intern_string(&frame.name)).collect();
    let mut known: HashMap<(u32, u32, Option<usize>), Option<StackHandle>> = HashMap::new();
    let mut last: HashMap<u32, u64> = HashMap::new();
    for (sample, node) in taken.samples.iter().zip(&timeline.node_of) {
        let Some(thread) = threads.get(sample.thread as usize).copied() else { continue };
        let stack = *known.entry((sample.thread, sample.stack, *node)).or_insert_with(|| {
            let frames = taken.stacks.get(sample.stack as usize).map_or(&[][..], Vec::as_slice);
            let own = node.and_then(|node| categories.get(node)).copied();
            let infos = frames.iter().enumerate().map(|(depth, frame)| {
                let is_leaf = depth + 1 == frames.len();
                let category = own.filter(|_| is_leaf).unwrap_or(CategoryHandle::OTHER);
                let frame = Frame::Label(names[*frame]);
                FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() }
            });
            profile.intern_stack_frames(thread, infos)
        });
        // A sample stands for time of its processor, but for no more than there was since the one before.
        let since = sample.time - last.insert(sample.thread, sample.time).unwrap_or(0);
        let time = Timestamp::from_nanos_since_reference(sample.time);
        let weight = i32::try_from(taken.every).unwrap_or(i32::MAX);
        let cpu = CpuDelta::from_nanos(since.min(step));
        profile.add_sample(thread, time, stack, cpu, weight);
    }
}

fn colour(label: &str) -> Option<(CategoryColor, GraphColor)> {
    let lower = label.to_lowercase();
    COLOURS.iter().find(|(word, ..)| lower.contains(word)).map(|(_, of, graph)| (*of, *graph))
}

/// Shown time: an interval or a phase.
struct Span {
    kind: MarkerTypeHandle,
    name: StringHandle,
    numbers: Vec<f64>,
    text: Option<StringHandle>,
}

impl Marker for Span {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.kind
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.text.unwrap_or(self.name)
    }

    fn number_field_value(&self, field: u32) -> f64 {
        self.numbers.get(field as usize).copied().unwrap_or(f64::NAN)
    }
}

/// A track of stacked bars: one marker for each interval, without one where nothing was measured.
fn track(profile: &mut Profile, thread: ThreadHandle, series: &Series) {
    let key = |number: usize| format!("value{number}");
    let format =
        if series.is_share { MarkerFieldFormat::Percentage } else { MarkerFieldFormat::Decimal };
    let field = |(number, label): (usize, &String)| RuntimeSchemaMarkerField {
        key: key(number),
        label: label.clone(),
        format: format.clone(),
        flags: MarkerFieldFlags::empty(),
    };
    let graph = |(number, label): (usize, &String)| RuntimeSchemaMarkerGraph {
        key: key(number),
        graph_type: MarkerGraphType::Bar,
        color: colour(label).map(|(_, graph)| graph),
    };
    let labels = || series.labels.iter().enumerate();
    // A bar of nothing would hide that it was not measured.
    let is_measured = |(number, _): &(usize, &String)| {
        series.intervals.iter().any(|i| i.values.get(*number).copied().flatten().is_some())
    };
    let kind = profile.register_marker_type(RuntimeSchemaMarkerSchema {
        type_name: format!("tdtool {}", series.title),
        description: Some(format!("{} of each interval", series.title)),
        locations: MarkerLocations::MARKER_CHART | MarkerLocations::MARKER_TABLE,
        chart_label: None,
        tooltip_label: None,
        table_label: None,
        fields: labels().map(field).collect(),
        graphs: labels().filter(is_measured).map(graph).collect(),
    });
    let name = profile.intern_string(&series.title);
    for interval in &series.intervals {
        if interval.values.iter().all(Option::is_none) {
            continue;
        }
        // A part that was not measured is null.
        let numbers = interval.values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        let timing = MarkerTiming::Interval(at(interval.span.0), at(interval.span.1));
        profile.add_marker(thread, timing, Span { kind, name, numbers, text: None });
    }
}

/// A marker for each phase.
fn phase_markers(profile: &mut Profile, thread: ThreadHandle, whole: &Report) {
    if whole.phases.is_empty() {
        return;
    }
    let text = "{marker.data.text}".to_owned();
    let kind = profile.register_marker_type(RuntimeSchemaMarkerSchema {
        type_name: "tdtool phase".to_owned(),
        description: Some("A time in which the intervals are alike".to_owned()),
        locations: MarkerLocations::MARKER_CHART
            | MarkerLocations::MARKER_TABLE
            | MarkerLocations::TIMELINE_OVERVIEW,
        chart_label: Some(text.clone()),
        tooltip_label: None,
        table_label: Some(text),
        fields: vec![RuntimeSchemaMarkerField {
            key: "text".to_owned(),
            label: "Mean".to_owned(),
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        }],
        graphs: Vec::new(),
    });
    let name = profile.intern_string("phase");
    for phase in &whole.phases {
        let text = Some(profile.intern_string(&phase_text(phase)));
        let timing = MarkerTiming::Interval(at(phase.from), at(phase.to));
        profile.add_marker(thread, timing, Span { kind, name, numbers: Vec::new(), text });
    }
}

/// The one process, and its thread with phases.
const PROCESS: u32 = 1;
const PHASES: u32 = 1;

/// The intervals of a report.
pub fn trace(whole: &Report, intervals: &[Report]) -> Vec<u8> {
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
            "name": format!("phase {}: {}", number + 1, phase_text(phase)),
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
/// A quantity that was not measured has no value.
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

/// The values of a phase, the largest shares first.
pub(super) fn phase_text(of: &Phase) -> String {
    let mut values: Vec<&PhaseValue> = of.values.iter().collect();
    if values.iter().all(|value| value.is_share) {
        values.sort_by(|a, b| b.value.unwrap_or(-1.0).total_cmp(&a.value.unwrap_or(-1.0)));
    }
    let text = |of: &PhaseValue| match of.value {
        None => format!("{} not measured", of.label),
        Some(value) if of.is_share => format!("{} {:.1} %", of.label, 100.0 * value),
        Some(value) => format!("{} {}", of.label, number(value)),
    };
    values.into_iter().map(text).collect::<Vec<_>>().join(", ")
}
