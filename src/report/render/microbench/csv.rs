//! Microbenchmarks as CSV rows.

use crate::render::csv::{self, number};
use bench::microbench::{Cycles, Latencies, Measurement};

/// The columns of [`row`].
pub const HEADER: &str =
    "multiset,instructions,cycles,low,high,ipc,loop_cycles,bound_low,bound_high,status,reason";
/// The columns of [`latency_rows`].
pub const LATENCY_HEADER: &str =
    "form,input,from,output,to,cycles,low,high,least,chained,status,reason,chain,link";

/// One row, without a line break.
pub fn row(report: &Measurement) -> String {
    let of = |cycles: &Option<Cycles>, get: fn(&Cycles) -> f64| number(cycles.as_ref().map(get));
    let bound = report.bounded_by.as_ref();
    csv::row([
        name(report),
        report.instructions.to_string(),
        of(&report.cycles, |c| c.cycles),
        of(&report.cycles, |c| c.low),
        of(&report.cycles, |c| c.high),
        number(report.ipc),
        of(&report.looped, |c| c.cycles),
        number(bound.map(|b| b.low)),
        number(bound.map(|b| b.high)),
        report.status.word().to_owned(),
        report.reason.clone().unwrap_or_default(),
    ])
}

/// The multiset as it is given.
pub fn name(report: &Measurement) -> String {
    let one = |f: &bench::microbench::FormCount| match f.count {
        1 => f.form.clone(),
        n => format!("{}*{n}", f.form),
    };
    report.multiset.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// One row for each pair, with a line break each.
pub fn latency_rows(document: &Latencies) -> String {
    let one = |l: &bench::microbench::LatencyResult| {
        let cells = [
            document.form.clone(),
            l.input.to_owned(),
            l.from.clone(),
            l.output.to_owned(),
            l.to.clone(),
            number(l.cycles),
            number(l.low),
            number(l.high),
            number(l.least),
            number(l.chained),
            l.status.word().to_owned(),
            l.reason.clone().unwrap_or_default(),
            l.chain.clone(),
            number(l.link),
        ];
        csv::row(cells) + "\n"
    };
    document.latencies.iter().map(one).collect()
}

/// A list of forms, with a header.
pub fn list_rows(listed: &[bench::microbench::Listed]) -> String {
    let one = |l: &bench::microbench::Listed| {
        let cells = [
            l.form.clone(),
            l.code.clone(),
            l.extensions.join(" "),
            l.reason.clone().unwrap_or_default(),
        ];
        csv::row(cells) + "\n"
    };
    format!("form,code,extensions,reason\n{}", listed.iter().map(one).collect::<String>())
}
