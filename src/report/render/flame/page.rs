//! The graph as part of a larger page: head and legend are text of the page, and the frames are as wide as it has
//! room for.

use super::colours::Colours;
use super::picture::{self, LEFT, LETTER, ROW, WIDTH, drawn, subtitle};
use crate::documents::flame::FlameGraph;
use crate::render::markup::xml;
use std::fmt::Write as _;

/// The style of the frames.
pub(in crate::render) const STYLE: &str = picture::STYLE;

/// The graph as a figure of HTML, with its script.
pub(in crate::render) fn figure(graph: &FlameGraph) -> String {
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
    let _ = writeln!(out, "</figure>\n<script>\n{}</script>", picture::SCRIPT);
    out
}
