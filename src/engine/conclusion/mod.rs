//! Concludes a report in one or two sentences: what takes the time, with the number, as far as it is known. `next`
//! has the commands that show more.

mod next;

use crate::commands::Carried;
use crate::topdown::LiveAsk;
use crate::wall_time;
use next::{MUCH, kernel};
use profile::event::EventKind;
use report::documents::Report;
use report::documents::estimate::Estimate;
use report::documents::report::{Conclusion, FindingKind};
use report::documents::report_code::{CodeRow, FunctionRow, Sampled};
use report::format;
use report::render::width::elided;
use tma::text::several;

/// Enters the conclusion of a report of a whole measurement; `live`: what was asked of a live measurement; its commands
/// have the `carried` options.
pub(crate) fn conclude(report: &mut Report, live: Option<&LiveAsk>, carried: &Carried) {
    if report.interval.is_some() {
        return;
    }
    wall_time::count_calls(report);
    let verdict = verdict(report).unwrap_or_default();
    let next = next::next(report, live);
    let is_empty = verdict.is_empty() && next.is_empty();
    report.conclusion = (!is_empty).then_some(Conclusion { verdict, next });
    carried.enter(report);
}

/// An estimate of less of the time says of how much it is.
const NEARLY_ALL: f64 = 0.9;
/// Code with this share of the time is what the report is about.
const HOT: f64 = 0.3;
/// With fewer samples a share of half is known to no better than ±18 points (binomial, 95 %).
const FEW: u64 = 30;
/// Longest name of a function.
const NAME: usize = 48;
/// The unit of which rates are shown.
const THOUSAND: f64 = 1000.0;

/// The verdict; none where nothing was measured, or of several trees.
fn verdict(report: &Report) -> Option<String> {
    if report.is_counted() {
        return counted(report);
    }
    match &report.estimate {
        Some(estimate) => Some(estimated(report, estimate)),
        None => sampled(report, report.sampled.as_ref().filter(|sampled| sampled.samples > 0)?),
    }
}

/// That of the counted tree.
fn counted(report: &Report) -> Option<String> {
    use FindingKind::{Bottleneck, Nothing, Undecided};
    let mut found = report.findings.iter();
    let first = found.find(|one| matches!(one.kind, Bottleneck | Undecided | Nothing))?;
    (report.places().len() == 1).then(|| first.text.clone())
}

/// That of the estimated tree, and of how much of the time it is.
fn estimated(report: &Report, estimate: &Estimate) -> String {
    let (covered, kernel) = (estimate.covered, kernel(report));
    let said = &estimate.program.sentence;
    if let (Some(first), true) = (wall_time::verdict(report), covered > 0.0) {
        let analysed = percent(covered);
        return format!(
            "{first} Of the {analysed} of its processor time that was analysed: {said}"
        );
    }
    if covered >= NEARLY_ALL {
        return said.clone();
    }
    let analysed = percent(covered);
    if covered > 0.0 && kernel > covered {
        return format!(
            "{} Of the {analysed} of the time that was analysed: {said}",
            in_kernel(report)
        );
    }
    // Code without a file, say, is not analysed: if that has more, it is what the report is about.
    let is_analysed = |row: &FunctionRow| {
        estimate.functions.iter().any(|of| (&of.module, &of.name) == (&row.module, &row.name))
    };
    let mut others = report.functions.iter().filter(|row| !is_analysed(row));
    let other = others.next().is_some_and(|first| first.share > covered);
    if other || covered <= 0.0 {
        let said = match covered > 0.0 {
            true => format!("Only {analysed} of the time is in code that can be analysed."),
            false => said.clone(),
        };
        let found = report.sampled.as_ref().and_then(|of| sampled(report, of));
        return found.map_or_else(|| said.clone(), |found| format!("{found} {said}"));
    }
    match kernel >= 0.01 {
        true => {
            format!("{said} Analysed: {analysed} of the time; the kernel has {}.", percent(kernel))
        }
        false => format!("{said} Analysed: {analysed} of the time."),
    }
}

/// Where the samples are.
fn sampled(report: &Report, sampled: &Sampled) -> Option<String> {
    let found = wall_time::verdict(report);
    if found.is_some() {
        return found;
    }
    if kernel(report) >= MUCH {
        return Some(in_kernel(report));
    }
    if sampled.samples < FEW {
        return Some(format!(
            "Only {}, too few to say where the time is.",
            several(sampled.samples, "sample")
        ));
    }
    let is_time = matches!(EventKind::of(&sampled.event), EventKind::Time | EventKind::Cycles);
    let whole = match (is_time, sampled.kernel) {
        (true, Some(_)) => "the time".to_owned(),
        (true, None) => "the time outside the kernel, which was not sampled,".to_owned(),
        (false, _) => format!("the samples of {}", sampled.event),
    };
    let first = report.functions.first()?;
    let name =
        |short: &str, whole: &str| elided(if short.is_empty() { whole } else { short }, NAME);
    let of_loop = report.loops.first().map(|one| &one.code).filter(|one| one.share >= HOT);
    let found = match of_loop {
        Some(CodeRow { function, function_short, share, file, line, .. }) => format!(
            "{} of {whole} is in one loop of {}{}",
            percent(*share),
            name(function_short, function),
            place(file.as_deref(), *line)
        ),
        None if first.share >= HOT => {
            let FunctionRow { short, name: whole_name, share, .. } = first;
            format!("{} of {whole} is in {}", percent(*share), name(short, whole_name))
        }
        None => format!(
            "No function has more than {} of {whole}; the hottest is {}",
            percent(first.share),
            name(&first.short, &first.name)
        ),
    };
    let why = if is_time { "; samples do not show why" } else { "" };
    Some(format!("{found}{why}."))
}

/// That most of the time is in the kernel, and what brings the program there.
fn in_kernel(report: &Report) -> String {
    let faults = report.many_faults().map_or(String::new(), |rate| {
        let rate = (rate / THOUSAND).round() * THOUSAND;
        format!(", with {} page faults a second of processor time", format::count(rate))
    });
    format!("{} of the time is in the kernel{faults}.", percent(kernel(report)))
}

fn percent(share: f64) -> String {
    match share {
        share if share < 0.1 => format!("{:.1} %", 100.0 * share),
        share => format!("{:.0} %", 100.0 * share),
    }
}

/// ` (file.c:4)`.
fn place(file: Option<&str>, line: Option<u32>) -> String {
    let name = file.map(|file| file.rsplit('/').next().unwrap_or(file));
    name.zip(line).map_or(String::new(), |(name, line)| format!(" ({name}:{line})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::estimate::Row;
    use report::documents::report::Source;
    use report::documents::report_code::LoopRow;

    fn report(kernel: f64, loops: &[f64]) -> Report {
        let mut report = Report::new(Source::NoPmu);
        report.sampled = Some(Sampled {
            event: "cpu-clock".into(),
            samples: 100,
            kernel: Some(kernel),
            ..Sampled::default()
        });
        report.functions =
            vec![FunctionRow { name: "walk".into(), share: 0.25, ..FunctionRow::default() }];
        let of = |share: &f64| {
            let code = CodeRow {
                function: "walk".into(),
                file: Some("/src/chase.c".into()),
                line: Some(4),
                share: *share,
                ..CodeRow::default()
            };
            LoopRow { code, ..LoopRow::default() }
        };
        report.loops = loops.iter().map(of).collect();
        report
    }

    #[test]
    fn samples_give_the_hottest_code_and_no_reason() {
        let of = |kernel, loops: &[f64]| verdict(&report(kernel, loops)).unwrap();
        assert_eq!(
            of(0.1, &[0.57]),
            "57 % of the time is in one loop of walk (chase.c:4); samples do not show why."
        );
        assert_eq!(
            of(0.1, &[0.1]),
            "No function has more than 25 % of the time; the hottest is walk; samples do not show why."
        );
        assert_eq!(of(0.89, &[0.1]), "89 % of the time is in the kernel.");
    }

    /// By hand: 1,024,054 faults in 2.519 s are 406,532 a second.
    #[test]
    fn an_estimate_of_a_part_of_the_time_says_so() {
        let mut report = report(0.93, &[]);
        report.software.insert("page_faults".into(), Some(1_024_054.0));
        report.software.insert("task_clock_ms".into(), Some(2519.0));
        let program = Row { sentence: "Memory Bound: 94 %.".into(), ..Row::default() };
        report.estimate = Some(Estimate { covered: 0.067, program, ..Estimate::default() });
        assert_eq!(
            verdict(&report).unwrap(),
            "93 % of the time is in the kernel, with 407,000 page faults a second of processor time. Of the 6.7 % of the time that \
             was analysed: Memory Bound: 94 %."
        );
        report.estimate.as_mut().unwrap().covered = 0.95;
        assert_eq!(verdict(&report).unwrap(), "Memory Bound: 94 %.");
    }

    #[test]
    fn where_most_is_in_code_that_was_not_analysed_that_is_named() {
        let mut report = report(0.0, &[]);
        report.functions[0].share = 0.92;
        let program = Row { sentence: "Retiring: 94 %.".into(), ..Row::default() };
        report.estimate = Some(Estimate { covered: 0.051, program, ..Estimate::default() });
        assert_eq!(
            verdict(&report).unwrap(),
            "92 % of the time is in walk; samples do not show why. Only 5.1 % of the time is in code that can be analysed."
        );
    }

    #[test]
    fn where_nothing_could_be_estimated_it_says_where_the_time_is() {
        let mut report = report(0.0, &[0.57]);
        let program = Row { sentence: "No estimate: no symbols.".into(), ..Row::default() };
        report.estimate = Some(Estimate { covered: 0.0, program, ..Estimate::default() });
        assert_eq!(
            verdict(&report).unwrap(),
            "57 % of the time is in one loop of walk (chase.c:4); samples do not show why. No estimate: no symbols."
        );
    }
}
