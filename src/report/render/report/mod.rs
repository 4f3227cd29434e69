//! The report as people read it in a terminal, a pipe or a file: its frame, metrics and findings; as CSV in `csv`.
//!
//! | file | concern |
//! |---|---|
//! | `tree` | the tree; software counts; the verdict, what to do next, notes |
//! | `code` | blocks, callers, several events; the source of one function |
//! | `hot_table` | the rows of hot functions and blocks; level 1 of each function |
//! | `estimate` | the estimated tree and code |
//! | `wall_time` | what the wall time went to |
//! | `style` | colour, width, marks |

mod code;
pub mod csv;
mod estimate;
mod hot_table;
mod style;
mod tree;
mod wall_time;

use crate::documents::report::{Finding, FindingKind, InfoRow, NodeRow, Place, Report, Source};
use crate::format;
use crate::render::width::{elided, fit};
use std::collections::HashMap;
use std::fmt::Write as _;
use tma::quantity::Missing;

pub use style::Style;

pub(super) use tree::remarks;

/// How many mismeasured nodes are named one by one.
const NAMED: usize = 6;

/// Infos that a short report shows, by id, where the table has them.
pub const SHORT_INFOS: [&str; 12] = [
    "Info_Thread_IPC",
    "Info_Core_IPC",
    "IPC",
    "Info_Thread_CPI",
    "CPI",
    "Info_System_Core_Frequency",
    "Info_System_Average_Frequency",
    "GHz",
    "Info_Thread_UpTB",
    "UpTC",
    "Info_System_CPUs_Utilized",
    "Info_System_GFLOPs",
];

/// Renders `report`.
pub fn render(report: &Report, style: &Style) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = Renderer { out: &mut out, style, report }.whole();
    let out = if style.ascii { format::ascii(&out) } else { out };
    if style.fits { fit(&out, style.width) } else { out }
}

struct Renderer<'a> {
    out: &'a mut String,
    style: &'a Style,
    report: &'a Report,
}

/// The rows of one part of the measurement.
#[derive(Default)]
struct Rows<'a> {
    nodes: Vec<&'a NodeRow>,
    info: Vec<&'a InfoRow>,
    bottlenecks: Vec<&'a InfoRow>,
    findings: Vec<&'a Finding>,
}

impl Renderer<'_> {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.style.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn whole(&mut self) -> std::fmt::Result {
        self.head()?;
        let report = self.report;
        let places = report.places();
        let index: HashMap<_, usize> =
            places.iter().enumerate().map(|(i, p)| (p.key(), i)).collect();
        let mut parts: Vec<Rows> = places.iter().map(|_| Rows::default()).collect();
        let mut common = Vec::new();
        for node in &report.nodes {
            parts[index[&node.place.key()]].nodes.push(node);
        }
        for info in &report.info {
            parts[index[&info.place.key()]].info.push(info);
        }
        for row in &report.bottlenecks {
            if let Some(&at) = index.get(&row.place.key()) {
                parts[at].bottlenecks.push(row);
            }
        }
        for finding in &report.findings {
            match index.get(&finding.place.key()) {
                Some(&at) => parts[at].findings.push(finding),
                None => common.push(finding),
            }
        }
        self.verdict()?;
        self.wall_time()?;
        for (place, rows) in places.iter().zip(&parts) {
            self.part(place, rows)?;
        }
        for finding in common {
            self.finding(finding)?;
        }
        self.estimate()?;
        self.code()?;
        self.software()?;
        self.next()?;
        self.notes()?;
        self.unread()
    }

    fn head(&mut self) -> std::fmt::Result {
        let r = self.report;
        let dash = format!(" {} ", self.style.marks().dash);
        let mut parts = Vec::new();
        let is_of_samples = self.is_of_samples();
        if is_of_samples && r.source == Source::NoPmu {
            // No tree, so no table name in the header.
        } else if r.uarch.is_empty() && r.sampled.is_some() {
            parts.push("samples, without counts for a tree".to_owned());
        } else if r.uarch.is_empty() && r.source == Source::Imported {
            parts.push("software counts, none of the core".to_owned());
        } else if r.uarch.is_empty() {
            parts.push("no table for this processor".to_owned());
        } else {
            parts.push(self.paint("1", &r.uarch));
            parts.push(r.title.clone());
        }
        // Without a tree, "imported counts" would have no subject; a missing core PMU is said by its nodes or the end
        // of this line.
        let said = match r.source {
            Source::Imported => r.uarch.is_empty() && r.sampled.is_some(),
            Source::NoPmu => is_of_samples || r.nodes.iter().any(|n| n.missing.is_some()),
            _ => false,
        };
        if !said {
            parts.push(r.source.label().to_owned());
        }
        // A script on the command line has lines of its own.
        let is_command =
            |subject: &String| r.command.as_ref().is_some_and(|of| of.join(" ") == *subject);
        let command = r.command.as_deref().map(format::command).unwrap_or_default();
        parts.extend(r.subject.iter().map(|subject| match is_command(subject) {
            true => elided(&command, self.style.width - 2),
            false => subject.clone(),
        }));
        if let Some(seconds) = r.duration {
            parts.push(format::seconds(seconds));
        }
        if r.level > 0 && r.nodes.iter().any(|n| n.value.is_some()) {
            parts.push(format!("level {}", r.level));
        }
        if let Some(sampled) = &r.sampled {
            let lost = match sampled.lost {
                0 => String::new(),
                lost => format!(", {} lost", format::several(lost, "record")),
            };
            let samples = format::several(sampled.samples, "sample");
            parts.push(format!("{samples} of {}{lost}", sampled.event));
        }
        if is_of_samples && r.source == Source::NoPmu {
            let why = r.nodes.iter().find_map(|node| node.missing.as_deref());
            let label = r.source.label();
            let why = why.map(Missing::reason);
            parts.push(why.unwrap_or(label).to_owned());
        }
        let mut column = 0;
        for (i, part) in parts.iter().enumerate() {
            // The bold table's name comes first: attributes do not count as columns.
            let length = part.chars().filter(|c| !c.is_control()).count();
            if i > 0 && column + 3 + length > self.style.width {
                write!(self.out, "\n  ")?;
                column = 2;
            } else if i > 0 {
                write!(self.out, "{dash}")?;
                column += 3;
            }
            write!(self.out, "{part}")?;
            column += length;
        }
        writeln!(self.out)
    }

    /// Whether samples are all there is: no node was counted.
    fn is_of_samples(&self) -> bool {
        self.report.sampled.is_some() && self.report.nodes.iter().all(|node| node.value.is_none())
    }

    fn part(&mut self, place: &Place, rows: &Rows) -> std::fmt::Result {
        let has_metrics = rows.info.iter().any(|info| info.value.is_some());
        if self.is_of_samples() && !self.style.verbose && !has_metrics {
            return Ok(());
        }
        writeln!(self.out)?;
        let heading = place.title();
        if !heading.is_empty() {
            let heading = self.paint("1", &heading);
            writeln!(self.out, "{heading}")?;
        }
        self.info_line(&rows.info)?;
        self.tree(&rows.nodes)?;
        let title = "Bottlenecks (share of the time each kind of cost takes, in %)";
        self.table(title, &rows.bottlenecks)?;
        // Without a tree the metrics are the report, where they were counted.
        let counted = rows.info.iter().filter(|i| i.value.is_some()).count();
        if self.style.verbose || (rows.nodes.is_empty() && 2 * counted > rows.info.len()) {
            self.table("Metrics", &rows.info)?;
        }
        let (wrong, others): (Vec<&Finding>, Vec<&Finding>) =
            rows.findings.iter().partition(|f| f.kind == FindingKind::Mismeasured);
        for finding in others {
            self.finding(finding)?;
        }
        match wrong.as_slice() {
            [] => Ok(()),
            [only] => self.finding(only),
            [first, ..] => self.mismeasured(first, &rows.nodes),
        }
    }

    /// Several mismeasured nodes in one paragraph: they share cause and cure.
    fn mismeasured(&mut self, first: &Finding, nodes: &[&NodeRow]) -> std::fmt::Result {
        let names: Vec<String> = nodes
            .iter()
            .filter(|n| n.mismeasured)
            .map(|n| format!("{} ({})", n.label, format::share(n.value, None)))
            .collect();
        let shown = if self.style.verbose { names.len() } else { names.len().min(NAMED) };
        let rest = names.len() - shown;
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        writeln!(self.out)?;
        let text = format!("Mismeasured, outside -5..105 %: {}{more}.", names[..shown].join(", "));
        self.paragraph("", &text)?;
        match &first.next {
            Some(next) => self.paragraph("advice: ", next),
            None => Ok(()),
        }
    }

    fn info_line(&mut self, infos: &[&InfoRow]) -> std::fmt::Result {
        let shown: Vec<String> = SHORT_INFOS
            .iter()
            .filter_map(|id| infos.iter().find(|i| i.id == *id))
            .filter_map(|i| Some(format!("{} {}", short_label(i), format::number(i.value?))))
            .collect();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "{}\n", shown.join("   "))
    }

    fn table(&mut self, title: &str, rows: &[&InfoRow]) -> std::fmt::Result {
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "\n{title}")?;
        let label = rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(0);
        for row in rows {
            let flag = if row.over == Some(true) { self.style.marks().flagged } else { " " };
            let value = match (row.value, &row.missing) {
                (Some(v), _) => {
                    let error = row.error.map(|e| format!(" ±{}", format::number(e)));
                    format!("{:>10}{} {}", format::number(v), error.unwrap_or_default(), row.unit)
                }
                (None, Some(why)) => why.clone(),
                (None, None) => "not measured".to_owned(),
            };
            writeln!(self.out, "{}", format!("{flag} {:<label$}  {value}", row.label).trim_end())?;
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> std::fmt::Result {
        // The tree shows it, and standard error has the remedy.
        if finding.kind == FindingKind::NotMeasured {
            return Ok(());
        }
        let said = self.report.conclusion.as_ref().is_some_and(|of| of.verdict == finding.text);
        let parts = [
            ("means:  ", &self.report.meaning(finding)),
            ("causes: ", &finding.causes),
            ("advice: ", &finding.next),
        ];
        if !said || parts.iter().any(|(_, text)| text.is_some()) {
            writeln!(self.out)?;
        }
        if !said {
            let text = match finding.kind {
                FindingKind::Bottleneck | FindingKind::Undecided => self.paint("1", &finding.text),
                _ => finding.text.clone(),
            };
            self.paragraph("", &text)?;
        }
        for (head, text) in parts {
            if let Some(text) = text {
                self.paragraph(head, text)?;
            }
        }
        Ok(())
    }

    fn unread(&mut self) -> std::fmt::Result {
        let report = self.report;
        if report.unread.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "\nLines that were not parsed: {}", report.unread.len())?;
        let shown = if self.style.verbose { usize::MAX } else { 10 };
        for line in report.unread.iter().take(shown) {
            writeln!(self.out, "  {}:{}: {}: {}", line.file, line.line, line.why, line.text)?;
        }
        let rest = report.unread.len().saturating_sub(shown);
        if rest > 0 {
            writeln!(self.out, "  and {rest} more (--verbose shows them)")?;
        }
        Ok(())
    }

    /// Wraps `text` at the width, indented under its head.
    fn paragraph(&mut self, head: &str, text: &str) -> std::fmt::Result {
        let indent = head.chars().count();
        let mut column = indent;
        let mut line = head.to_owned();
        let flat = text.replace(['\n', '\t'], " ");
        for word in format::words(&flat).into_iter().filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if column > indent && column + 1 + length > self.style.width {
                writeln!(self.out, "{line}")?;
                line = " ".repeat(indent);
                column = indent;
            }
            if column > indent {
                line.push(' ');
                column += 1;
            }
            line.push_str(word);
            column += length;
        }
        writeln!(self.out, "{line}")
    }
}

/// `IPC` from `Info Thread IPC`.
pub fn short_label(info: &InfoRow) -> &str {
    match info.id.as_str() {
        "Info_Thread_IPC" | "Info_Core_IPC" => "IPC",
        "Info_Thread_CPI" => "CPI",
        "Info_System_Core_Frequency" | "Info_System_Average_Frequency" => "GHz",
        "Info_System_CPUs_Utilized" => "CPUs",
        "Info_System_GFLOPs" => "GFLOP/s",
        id => id.rsplit("Info_").next().map_or(id, |t| t.rsplit('_').next().unwrap_or(t)),
    }
}
