//! A flame graph as a picture that zooms and searches: SVG, alone, in a page of HTML, or as part of a larger page.
//! Style and script (`flame.css`, `flame.js`) are in it; nothing is loaded. `colours` has the colour of a frame, and
//! the legend.

mod colours;

use crate::documents::flame::{Change, Compared, FlameGraph, Frame};
use crate::format::{seconds, several};
use crate::render::formats::xml;
use colours::Colours;
use std::fmt::Write as _;

pub(super) use colours::of_node;

/// Pixels of the frames in all.
const WIDTH: f64 = 1180.0;
/// Pixels left and right of them.
const LEFT: f64 = 10.0;
/// Pixels from one frame to the next.
const ROW: f64 = 17.0;
/// Pixels of a letter.
const LETTER: f64 = 7.2;
/// Pixels from one line of text to the next.
const LINE: f64 = 18.0;

/// The style of the frames.
pub(super) const STYLE: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

/// The graph as an SVG file.
pub fn svg(graph: &FlameGraph) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", picture(graph))
}

/// The graph as a page of HTML.
pub fn html(graph: &FlameGraph) -> String {
    // The policy forbids the page to load anything.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{}</title></head>\n<body>\n{}</body></html>\n",
        xml(&graph.title),
        picture(graph)
    )
}

fn picture(graph: &FlameGraph) -> String {
    let colours = Colours::new(graph);
    let deepest = graph.frames.iter().map(|f| f.depth).max().unwrap_or(0);
    let legend = colours.legend(graph);
    let lines = 3 + graph.notes.len();
    let top = lines as f64 * LINE + 12.0;
    // Five entries of a legend in a row.
    let rows = legend.len().div_ceil(5) as f64;
    let below = top + (deepest + 1) as f64 * ROW + 8.0;
    let (wide, high) = (WIDTH + 2.0 * LEFT, below + (rows + 1.0) * LINE + 8.0);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<svg class=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" \
         width=\"{wide}\" height=\"{high}\" data-width=\"{WIDTH}\" data-left=\"{LEFT}\" data-letter=\"{LETTER}\">\n\
         <style><![CDATA[\n{STYLE}]]></style>"
    );
    text(&mut out, LEFT, LINE, "title", &graph.title);
    text(&mut out, LEFT, 2.0 * LINE, "", &subtitle(graph));
    text(&mut out, WIDTH - 150.0, LINE, "button search", "search");
    text(&mut out, WIDTH - 80.0, LINE, "button reset", "reset zoom");
    text(&mut out, WIDTH - 150.0, 2.0 * LINE, "status", "");
    for (number, note) in graph.notes.iter().enumerate() {
        text(&mut out, LEFT, (3 + number) as f64 * LINE, "", &format!("note: {note}"));
    }
    for frame in &graph.frames {
        let y = top + (deepest - frame.depth) as f64 * ROW;
        drawn(&mut out, graph, frame, y, colours.of(frame));
    }
    text(&mut out, LEFT, below + LINE, "", &Colours::caption(graph));
    for (number, entry) in legend.iter().enumerate() {
        let (column, row) = ((number % 5) as f64, (number / 5) as f64);
        let (x, y) = (LEFT + column * WIDTH / 5.0, below + (row + 2.0) * LINE);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
            y - 10.0,
            entry.colour
        );
        text(&mut out, x + 18.0, y, "", &entry.text);
    }
    let _ = writeln!(out, "<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>");
    out
}

fn subtitle(graph: &FlameGraph) -> String {
    let (samples, event) = (graph.samples, &graph.event);
    let mut text = match &graph.compared {
        None => format!("{samples} samples of {event}; width: share of them"),
        Some(compared) => compared_subtitle(compared, samples, event),
    };
    if graph.omitted > 0 {
        let least = 100.0 * FlameGraph::NARROWEST;
        let _ = write!(text, "; {} frames under {least} % left out", graph.omitted);
    }
    text
}

fn drawn(out: &mut String, graph: &FlameGraph, frame: &Frame, y: f64, colour: &str) {
    let (x, wide) = (LEFT + frame.from * WIDTH, frame.share * WIDTH);
    let name = xml(&frame.name);
    let _ = writeln!(
        out,
        "<g class=\"f\" data-name=\"{name}\" data-from=\"{:.9}\" data-share=\"{:.9}\" data-depth=\"{}\">\
         <title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{wide:.2}\" height=\"{}\" fill=\"{colour}\"/>\
         <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        frame.from,
        frame.share,
        frame.depth,
        xml(&details(graph, frame)),
        ROW - 1.0,
        x + 3.0,
        y + 12.0,
        xml(&label(&frame.name, wide))
    );
}

/// All that is known of a frame.
fn details(graph: &FlameGraph, frame: &Frame) -> String {
    let module =
        if frame.module.is_empty() { String::new() } else { format!(" ({})", frame.module) };
    let share = 100.0 * frame.share;
    let mut text =
        format!("{}{module}: {share:.2} %, {}", frame.name, several(frame.samples, "sample"));
    if let Some((compared, change)) = graph.compared.as_ref().zip(frame.change.as_ref()) {
        return text + &change_details(compared, change);
    }
    if frame.own > 0.0 {
        let _ = write!(text, "; the function itself {:.2} %", 100.0 * frame.own);
    }
    if graph.source.is_some() {
        for (node, share) in &frame.parts {
            let label = graph.nodes.get(*node).map_or("", |n| &n.label);
            let _ = write!(text, "\n{label} {:.1} %", 100.0 * share);
        }
    }
    text
}

/// As much of a name as fits.
fn label(name: &str, wide: f64) -> String {
    // A cast of a float saturates.
    let fits = ((wide - 6.0) / LETTER).floor() as usize;
    match name.chars().count() {
        _ if fits < 3 => String::new(),
        length if length <= fits => name.to_owned(),
        _ => name.chars().take(fits - 2).chain("..".chars()).collect(),
    }
}

fn text(out: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\"{class}>{}</text>", xml(text));
}

/// Subject of the graph.
fn compared_subtitle(compared: &Compared, samples: u64, event: &str) -> String {
    let [a, b] = compared.totals.map(|total| shown(total, &compared.unit));
    let times = if compared.unit == "ratio" { String::new() } else { format!(" (A {a}, B {b})") };
    format!("{samples} samples of {event} in B{times}; width: share of B")
}

/// Both sides of a frame, and their difference.
fn change_details(compared: &Compared, change: &Change) -> String {
    let line = |what: &str, [a, b]: [f64; 2], margin: f64| {
        let (sign, size) = if b < a { ("-", a - b) } else { ("+", b - a) };
        let of = |value: f64| shown(value, &compared.unit);
        let (from, to, size, margin) = (of(a), of(b), of(size), of(margin));
        format!("\n{what}: {from} to {to}, {sign}{size} ± {margin}")
    };
    let all = || line("with callees", change.all, change.all_margin);
    let own = || line("the function itself", change.own, change.own_margin);
    match change.own {
        [0.0, 0.0] => all(),
        own_only if own_only == change.all => own(),
        _ => own() + &all(),
    }
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "s" if value == 0.0 => "0 s".to_owned(),
        "s" => seconds(value),
        "ratio" => format!("{:.2} %", 100.0 * value),
        unit => format!("{value:.0} {unit}"),
    }
}

/// The graph as a figure of HTML, with its script.
pub(super) fn figure(graph: &FlameGraph) -> String {
    let colours = Colours::new(graph);
    let deepest = graph.frames.iter().map(|f| f.depth).max().unwrap_or(0);
    let (wide, high) = (WIDTH + 2.0 * LEFT, (deepest + 1) as f64 * ROW + 2.0);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<figure class=\"flame\">\n<p>{} <button class=\"search\">search</button> \
         <button class=\"reset\">reset zoom</button> <span class=\"status\" role=\"status\"></span></p>\n\
         <svg class=\"flame\" tabindex=\"0\" role=\"application\" aria-label=\"Flame graph: arrow keys select a frame, Enter \
         zooms, Escape resets\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" height=\"{high}\" \
         data-width=\"{WIDTH}\" data-left=\"{LEFT}\" data-letter=\"{LETTER}\">",
        xml(&subtitle(graph))
    );
    for frame in &graph.frames {
        drawn(&mut out, graph, frame, (deepest - frame.depth) as f64 * ROW, colours.of(frame));
    }
    let _ = writeln!(
        out,
        "</svg>\n<p class=\"selected\" aria-live=\"polite\"></p>\n<figcaption>{}:",
        xml(&Colours::caption(graph))
    );
    for entry in colours.legend(graph) {
        let _ = writeln!(
            out,
            "<span class=\"entry\"><i style=\"background:{}\"></i>{}</span>",
            entry.colour,
            xml(&entry.text)
        );
    }
    out.push_str("</figcaption>\n");
    for note in &graph.notes {
        let _ = writeln!(out, "<p>note: {}</p>", xml(note));
    }
    let _ = writeln!(out, "</figure>\n<script>\n{SCRIPT}</script>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let name = "operator<<(\"a\" & 'b')\u{1}</title><script>alert(1)</script>]]>".to_owned();
        let frame = Frame { name, share: 1.0, samples: 1, own: 1.0, ..Frame::default() };
        let graph = FlameGraph { frames: vec![frame], samples: 1, ..FlameGraph::default() };
        for text in [svg(&graph), html(&graph)] {
            // Our own script, and nothing from the name.
            assert_eq!(text.matches("<script>").count(), 1, "{text}");
            assert!(text.contains("operator&lt;&lt;(&quot;a&quot; &amp; &#39;b&#39;)\u{fffd}&lt;"));
        }
    }
}
