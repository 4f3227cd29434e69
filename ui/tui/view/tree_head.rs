//! The lines above the tree: the processor, the source of the values, and metrics such as IPC.

use super::layout::Layout;
use super::{head, headline};
use crate::tui::look::{Tone, fit};
use crate::tui::state::State;
use ratatui::buffer::Buffer;
use ratatui::text::Line;
use report::documents::{Report, Source, series};
use report::format;
use report::render::report::{SHORT_INFOS, short_label};

/// Draws them; on a small screen only the metrics.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let Some(report) = &state.tree.report else { return };
    let (look, area) = (state.look, layout.head);
    let (sentence, about) = (headline::headline(state), subject(state, report));
    let texts = [(&*sentence, Tone::Bold), ("", Tone::Plain), (&*about, Tone::Dim)];
    head::put(look, buffer, layout, texts);
    if area.height >= 1 {
        let text = fit(&look.prose(&metrics(report)), usize::from(area.width));
        buffer.set_line(area.x, area.bottom() - 1, &Line::from(text), area.width);
    }
}

fn subject(state: &State, report: &Report) -> String {
    let mut parts = vec![match report.uarch.as_str() {
        "" => "no table for this processor".to_owned(),
        name => format!("{name}: {}", report.title),
    }];
    parts.push(report.source.label().to_owned());
    parts.extend(report.duration.map(format::seconds));
    parts.extend(report.interval.map(|(a, b)| format!("{a:.1} s to {b:.1} s")));
    parts.extend(state.tree.part_name());
    parts.join(" · ")
}

/// IPC and similar metrics; without a PMU, software counts.
fn metrics(report: &Report) -> String {
    let known = SHORT_INFOS.iter().filter_map(|id| report.info.iter().find(|i| i.id == *id));
    let known: Vec<String> = known
        .filter_map(|i| Some(format!("{} {}", short_label(i), format::number(i.value?))))
        .collect();
    if !known.is_empty() {
        return known.join("   ");
    }
    let software = software(report);
    match (report.source, software.is_empty()) {
        (_, false) => software.join("   "),
        (Source::NoPmu, true) => "no core PMU: nothing can be counted".into(),
        _ => String::new(),
    }
}

/// Software counts, the most useful first.
fn software(report: &Report) -> Vec<String> {
    const FIRST: [&str; 4] = ["cpus_used", "task_clock_ms", "page_faults", "context_switches"];
    let known = |name: &&str| report.software.contains_key(*name);
    let first = FIRST.iter().copied().filter(known);
    let others = report.software.keys().map(String::as_str).filter(|n| !FIRST.contains(n));
    let text = |name: &str| {
        let value = report.software.get(name).copied().flatten()?;
        let value = match series::is_software_time(name) {
            true => format::seconds(value / 1e3),
            false => format::number(value),
        };
        Some(format!("{} {value}", series::software_label(name)))
    };
    first.chain(others).filter_map(text).collect()
}
