//! What the reader came for, in a sentence at the head of the page: what most of the time goes to, and what to do next.

use super::pieces::{remark, section, xml};
use super::shown::short;
use crate::documents::report::{FindingKind, Report, Source};
use crate::format;

/// The verdict and the next step; nothing where nothing was measured.
pub(super) fn verdict(report: &Report) -> String {
    let Some((sentence, next)) =
        estimated(report).or_else(|| counted(report)).or_else(|| sampled(report))
    else {
        return String::new();
    };
    let next = next.map(|command| remark("next:", &command)).unwrap_or_default();
    section("verdict", "Verdict", &format!("<p class=\"verdict\">{}</p>\n{next}", xml(&sentence)))
}

type Verdict = (String, Option<String>);

fn estimated(report: &Report) -> Option<Verdict> {
    let program = &report.estimate.as_ref()?.program;
    let next = (!program.next.is_empty()).then(|| program.next.clone());
    (!program.sentence.is_empty()).then(|| (program.sentence.clone(), next))
}

/// The first finding about the counted tree.
fn counted(report: &Report) -> Option<Verdict> {
    let mut said = report.findings.iter().filter(|of| of.kind != FindingKind::NotMeasured);
    said.next().map(|finding| (finding.text.clone(), finding.next.clone()))
}

/// Where the samples are; what they are lost to needs a PMU or an estimate.
fn sampled(report: &Report) -> Option<Verdict> {
    let (first, sampled) = (report.functions.first()?, report.sampled.as_ref()?);
    let name = short(&first.name, &first.short);
    let sentence =
        format!("{:.0} % of the samples of {} are in {name}", 100.0 * first.share, sampled.event);
    let command = report.command.as_ref().filter(|_| report.source == Source::NoPmu);
    let next =
        command.map(|words| format!("tdtool report --estimate -- {}", format::command(words)));
    Some((sentence, next))
}
