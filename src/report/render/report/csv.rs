//! The report as CSV: one row per node, bottleneck, info, software count, part of an estimate, function and loop.

use crate::documents::estimate::Part;
use crate::documents::report::{Place, Report};
use crate::documents::series;
use crate::render::csv::Row;

/// Column names, the first line.
pub const HEADER: &str = "kind,id,parent,level,value,error,running,over,flagged,bottleneck,unit,\
                          missing,core,scope,begin,end";

/// Renders `report` without the header line.
pub fn rows(report: &Report) -> String {
    // About what a row takes.
    let rows = report.nodes.len() + report.bottlenecks.len() + report.info.len();
    let mut out = String::with_capacity(128 * (rows + report.software.len()));
    let mut places = Places::default();
    for n in &report.nodes {
        let mut row = Row::new(&mut out);
        row.text("node").text(&n.id).text(n.parent.as_deref().unwrap_or_default());
        row.text(&n.level.to_string()).number(n.value).number(n.error).number(n.running);
        row.flag(n.over).flag(Some(n.flagged)).flag(Some(n.bottleneck));
        row.text("ratio").text(n.missing.as_deref().unwrap_or_default());
        row.raw(places.of(&n.place));
        out.push('\n');
    }
    let bottlenecks = report.bottlenecks.iter().map(|b| ("bottleneck", b));
    for (kind, i) in bottlenecks.chain(report.info.iter().map(|i| ("info", i))) {
        let mut row = Row::new(&mut out);
        row.text(kind)
            .text(&i.id)
            .text("")
            .text("")
            .number(i.value)
            .number(i.error)
            .number(i.running);
        row.flag(i.over)
            .text("")
            .text("")
            .text(&i.unit)
            .text(i.missing.as_deref().unwrap_or_default());
        row.raw(places.of(&i.place));
        out.push('\n');
    }
    for (name, value) in &report.software {
        let why = report.software_missing.get(name).map_or("not measured", String::as_str);
        let mut row = Row::new(&mut out);
        row.text("software").text(name).text("").text("").number(*value);
        row.number(report.software_error.get(name).copied()).text("").text("").text("").text("");
        row.text(series::software_unit(name)).text(if value.is_none() { why } else { "" });
        row.raw(places.of(&Place { interval: report.interval, ..Place::default() }));
        out.push('\n');
    }
    code(report, &mut out, &mut places);
    out
}

/// Parts of the estimated program, functions, and loops: the estimated ones, if there are any, with their bottleneck.
fn code(report: &Report, out: &mut String, places: &mut Places) {
    let whole = Place { interval: report.interval, ..Place::default() };
    let mut row = |words: [&str; 3], value: Option<f64>, error: Option<f64>, why: &str| {
        let [kind, id, parent] = words;
        let mut row = Row::new(out);
        row.text(kind).text(id).text(parent).text("").number(value).number(error);
        row.text("").text("").text("").text("").text("ratio").text(why);
        row.raw(places.of(&whole));
        out.push('\n');
    };
    if let Some(estimate) = &report.estimate {
        let parts = &estimate.program.parts;
        let every = parts.iter().flat_map(|one| std::iter::once(one).chain(parts.below(one.0)));
        let backend = parts.get(Part::BackendBound).map(|share| (Part::BackendBound, share));
        for (of, part) in every.chain(backend) {
            let value = part.has_value().then_some(part.value);
            let error = (part.high - part.value).max(part.value - part.low);
            let why = || part.reason.as_ref().map_or("not known".to_owned(), ToString::to_string);
            let why = if value.is_none() { why() } else { String::new() };
            let parent = of.parent().map_or("", Part::name);
            row(["estimate", of.name(), parent], value, Some(error), &why);
        }
    }
    for of in &report.functions {
        row(
            ["function", &of.name, &of.module],
            Some(of.share),
            report.sampling_error(of.share),
            of.gap.as_deref().unwrap_or(""),
        );
    }
    match &report.estimate {
        Some(estimate) => {
            for of in &estimate.loops {
                let id = format!("{} {}", of.place(), of.name);
                let error = report.sampling_error(of.share);
                row(["loop", &id, of.bottleneck.name()], Some(of.share), error, "");
            }
        }
        None => {
            for of in report.loops.iter().map(|row| &row.code) {
                let id = format!("{}..{} {}", of.start, of.end, of.function);
                row(["loop", &id, &of.module], Some(of.share), report.sampling_error(of.share), "");
            }
        }
    }
}

/// The last place as fields: that of many rows.
#[derive(Default)]
struct Places {
    last: Option<Place>,
    text: String,
}

impl Places {
    fn of(&mut self, place: &Place) -> &str {
        if self.last.as_ref() != Some(place) {
            self.text.clear();
            let (begin, end) = place.interval.unzip();
            let mut row = Row::new(&mut self.text);
            row.text(place.core.as_deref().unwrap_or_default());
            row.text(place.scope.as_deref().unwrap_or_default()).number(begin).number(end);
            self.last = Some(place.clone());
        }
        &self.text
    }
}
