//! The rows of hot functions and blocks, as wide as the terminal lets them be; level 1 of each function.

use super::Renderer;
use super::code::{share, short};
use super::style::Style;
use crate::documents::report_code::{CodeRow, FunctionRow, Sampled};
use crate::documents::report_parts::{FunctionNode, PerFunction};
use crate::format;
use crate::render::width::elided;
use std::fmt::Write as _;

/// Columns of a bar.
const BAR: usize = 8;
/// Columns of a name that a wider one does not widen.
const NAME: usize = 48;
/// Columns of a name that modules and places are shortened for, and bars are left out for.
const COMFORTABLE: usize = 32;
const LEAST: usize = 18;
/// As many ways to use a terminal's columns are for wide ones.
const WIDE: usize = 2;
/// Columns of the share, of its error, and of the samples, with the gaps before them.
const SHARE: usize = 8;
const ERROR: usize = 6;
const SAMPLES: usize = 9;

/// Fewest columns of the name of an inlined function, where it has more.
const LEAST_INLINED: usize = 6;

/// Columns of a table.
struct Widths {
    error: bool,
    bar: usize,
    samples: bool,
    name: usize,
    module: usize,
    place: usize,
}

impl Widths {
    /// As all need, or as a terminal of the style's width has room for: bars, errors, modules and places make room
    /// for names.
    fn new(style: &Style, name: usize, module: usize, place: usize) -> Self {
        let most = if style.verbose { NAME } else { usize::MAX };
        if !style.fits {
            let name = name.min(most);
            return Self { error: true, bar: BAR, samples: true, name, module, place };
        }
        let of = |error, bar, samples, module, place| Self {
            error,
            bar,
            samples,
            name: 0,
            module,
            place,
        };
        let choices = [
            of(true, BAR, true, module, place),
            of(true, BAR, true, module.min(16), place.min(24)),
            of(true, BAR, true, module.min(12), place.min(20)),
            of(true, BAR, true, module.min(12), place.min(16)),
            of(true, 0, true, module.min(12), place.min(16)),
            of(false, 0, true, module.min(12), place.min(16)),
            of(false, 0, true, 0, place.min(16)),
        ];
        let room = |(number, one): &(usize, Self)| {
            let least = if *number < WIDE { COMFORTABLE } else { LEAST };
            one.fixed() + name.min(least) <= style.width
        };
        let chosen = choices.into_iter().enumerate().find(room).map(|(_, one)| one);
        let chosen = chosen.unwrap_or(of(false, 0, false, 0, 0));
        let name = name.min(style.width.saturating_sub(chosen.fixed()).max(8));
        Self { name, ..chosen }
    }

    /// Columns of all but the name.
    fn fixed(&self) -> usize {
        let gap = |columns: usize| if columns == 0 { 0 } else { columns + 2 };
        let (error, samples) =
            (usize::from(self.error) * ERROR, usize::from(self.samples) * SAMPLES);
        // One more for a share of 100.0 %.
        SHARE + 1 + error + gap(self.bar) + samples + gap(self.module) + gap(self.place) + 2
    }

    /// A line of the table; what has no column is left out.
    fn line(&self, cells: [&str; 7]) -> String {
        let [share, error, bar, samples, name, module, place] = cells;
        let mut line = format!("  {share:>0$}", SHARE - 2);
        if self.error {
            let _ = write!(line, " {error:<0$}", ERROR - 1);
        }
        if self.bar > 0 {
            let _ = write!(line, "  {bar:<0$}", self.bar);
        }
        if self.samples {
            let _ = write!(line, "  {samples:>0$}", SAMPLES - 2);
        }
        let _ = write!(line, "  {name:<0$}", self.name);
        for (text, width) in [(module, self.module), (place, self.place)] {
            if width > 0 {
                let _ = write!(line, "  {:<width$}", elided(text, width));
            }
        }
        line.trim_end().to_owned()
    }
}

/// Where the time goes, whole, without folders, and as short as it can be.
struct Shown {
    whole: String,
    inlined: Option<String>,
    line: Option<u32>,
    brief: String,
}

impl Shown {
    fn at(file: Option<&str>, line: Option<u32>, function: &Option<String>) -> Self {
        let name = file.map(|file| file.rsplit('/').next().unwrap_or(file));
        let inlined_in = function.as_deref().map(short);
        let whole = inlined(place(file, line), function);
        Self { whole, inlined: inlined_in, line, brief: place(name, line) }
    }

    /// Text of a column of this width; the inlined function is named, if need be without its middle.
    fn within(&self, width: usize) -> String {
        let columns = |text: &str| text.chars().count();
        if columns(&self.whole) <= width {
            return self.whole.clone();
        }
        let Some(function) = &self.inlined else { return self.brief.clone() };
        // Where both have no room, the function says more than the file.
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let ways = [(&*self.brief, " in ", ""), ("", "in ", &*line)];
        let fitting = ways.into_iter().find_map(|(before, between, after)| {
            let used = columns(before) + columns(between) + columns(after);
            let room = width.saturating_sub(used);
            let fits = room >= columns(function).min(LEAST_INLINED);
            fits.then(|| format!("{before}{between}{}{after}", elided(function, room)))
        });
        fitting.unwrap_or_else(|| self.brief.clone())
    }
}

impl Renderer<'_> {
    /// The functions that have samples worth a row, and how many others there are.
    pub(super) fn functions(&mut self, all: &[FunctionRow], sampled: &Sampled) -> std::fmt::Result {
        // A few samples are a share of some size, too.
        let rows: Vec<&FunctionRow> = all.iter().filter(|row| self.is_worth(row.share)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = rows.iter().map(|r| self.named(&r.name, &r.short)).collect();
        let modules: Vec<String> = rows.iter().map(|r| short(&r.module)).collect();
        let place = |r: &&FunctionRow| match (&r.gap, &r.hottest) {
            (Some(gap), _) => {
                let brief = "(unavailable)".to_owned();
                Shown { whole: format!("({gap})"), inlined: None, line: None, brief }
            }
            (None, Some(hot)) => Shown::at(Some(&hot.file), Some(hot.line), &hot.inlined),
            (None, None) => Shown::at(r.file.as_deref(), r.line, &None),
        };
        let places: Vec<Shown> = rows.iter().map(place).collect();
        let widths = Widths::new(
            self.style,
            widest(&names, "function"),
            widest(&modules, "module"),
            widest(places.iter().map(|p| &p.whole), "hottest line"),
        );
        let head = widths.line(["share", "", "", "samples", "function", "module", "hottest line"]);
        writeln!(self.out, "{head}")?;
        for (((row, name), module), place) in rows.iter().zip(&names).zip(&modules).zip(&places) {
            let bar = self.style.bar(row.share, BAR);
            let (share, samples) = (share(row.share), row.samples.to_string());
            let (error, name) = (self.error(row.share), self.cut(name, widths.name));
            let place = place.within(widths.place);
            let line = widths.line([&share, &error, &bar, &samples, &name, module, &place]);
            writeln!(self.out, "{line}")?;
        }
        let left = 1.0 - rows.iter().map(|row| row.share).sum::<f64>();
        let (shown, known) = (rows.len(), sampled.functions.max(all.len()));
        if shown < known {
            let more = known - shown;
            let text =
                format!("  … {more} more, {} together: --functions {known}", share(left.max(0.0)));
            let text = self.paint("2", &text);
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    /// The head of the table of blocks or loops, and the line of each.
    pub(super) fn block_lines(&self, rows: &[&CodeRow], what: &str) -> (String, Vec<String>) {
        let range = |r: &CodeRow| format!("{}..{} ", r.start, r.end);
        let name = |r: &CodeRow| self.named(&r.function, &r.function_short);
        let names: Vec<String> = rows.iter().map(|r| range(r) + &name(r)).collect();
        let place = |r: &&CodeRow| Shown::at(r.file.as_deref(), r.line, &r.inlined);
        let places: Vec<Shown> = rows.iter().map(place).collect();
        let (of_names, of_places) =
            (widest(&names, what), widest(places.iter().map(|p| &p.whole), "hottest line"));
        let widths = Widths::new(self.style, of_names, "depth".len(), of_places);
        let head = widths.line(["share", "", "", "samples", what, "depth", "hottest line"]);
        let line = |((row, whole), place): ((&&CodeRow, &String), &Shown)| {
            let bar = self.style.bar(row.share, BAR);
            let (share, samples) = (share(row.share), row.samples.to_string());
            let start = range(row);
            let left = widths.name.saturating_sub(start.chars().count());
            let block = match whole.chars().count() > widths.name && left > 3 {
                true => start + &self.cut(&name(row), left),
                false => self.cut(whole, widths.name),
            };
            let depth = format!("{:>5}", row.loop_depth);
            let (error, place) = (self.error(row.share), place.within(widths.place));
            widths.line([&share, &error, &bar, &samples, &block, &depth, &place])
        };
        (head, rows.iter().zip(&names).zip(&places).map(line).collect())
    }

    /// The sampling error of a share, if samples are known.
    pub(super) fn error(&self, share: f64) -> String {
        let error = self.report.sampling_error(share);
        error.map_or(String::new(), |error| format!("±{:.1}", 100.0 * error))
    }

    /// A name in its column: whole where everything is shown.
    fn cut(&self, name: &str, width: usize) -> String {
        if self.style.verbose { name.to_owned() } else { elided(name, width) }
    }
}

fn widest<'a>(texts: impl IntoIterator<Item = &'a String>, head: &str) -> usize {
    texts.into_iter().map(|text| text.chars().count()).max().unwrap_or(0).max(head.len())
}

/// A place, with the inlined function that it belongs to.
fn inlined(place: String, function: &Option<String>) -> String {
    match function {
        Some(function) => format!("{place} (inlined {})", short(function)),
        None => place,
    }
}

/// `file:line`, the file without its folders but the last.
fn place(file: Option<&str>, line: Option<u32>) -> String {
    let Some(file) = file else { return String::new() };
    let mut parts = file.rsplitn(3, '/');
    let (name, folder) = (parts.next().unwrap_or(file), parts.next());
    let file = match folder.filter(|f| !f.is_empty()) {
        Some(folder) => format!("{folder}/{name}"),
        None => name.to_owned(),
    };
    line.map_or(file.clone(), |line| format!("{file}:{line}"))
}

impl Renderer<'_> {
    /// A row for each function; what is not trusted has its reason in place of values.
    pub(super) fn per_function(&mut self, of: &PerFunction) -> std::fmt::Result {
        let title = self.paint("1", "Tree per function");
        writeln!(self.out, "\n{title}: {} readings at samples of {}", of.readings, of.event)?;
        let names: Vec<String> =
            of.functions.iter().map(|f| self.named(&f.name, &f.short)).collect();
        let name = names.iter().map(|n| n.chars().count()).max().unwrap_or(0).max("function".len());
        let labels: Vec<&str> = of
            .functions
            .first()
            .map(|f| f.nodes.iter().map(|n| n.label.as_str()).collect())
            .unwrap_or_default();
        let labels_take: usize = labels.iter().map(|l| 2 + l.chars().count().max(12)).sum();
        let name = match self.style.fits {
            true => name.min(self.style.width.saturating_sub(10 + labels_take)).max(12),
            false => name,
        };
        let names: Vec<String> = names.iter().map(|n| elided(n, name)).collect();
        let width = |label: &str| label.chars().count().max("100.0 % ±10.0".chars().count());
        write!(self.out, "    time  {:<name$}", "function")?;
        for label in &labels {
            write!(self.out, "  {:>1$}", label, width(label))?;
        }
        writeln!(self.out)?;
        for (tree, shown) in of.functions.iter().zip(&names) {
            write!(self.out, "  {:>4.1} %  {shown:<name$}", 100.0 * tree.share)?;
            if let Some(reason) = &tree.reason {
                writeln!(self.out, "  not trusted: {reason}")?;
                continue;
            }
            for (node, label) in tree.nodes.iter().zip(&labels) {
                write!(self.out, "  {:>1$}", value(node), width(label))?;
            }
            writeln!(self.out)?;
        }
        for note in &of.notes {
            self.paragraph("note: ", note)?;
        }
        Ok(())
    }
}

fn value(node: &FunctionNode) -> String {
    let error = node.error.map(|error| error + node.bias.unwrap_or(0.0));
    node.value.map_or("not counted".to_owned(), |value| format::share(Some(value), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short() {
        assert_eq!(place(Some("/a/b/src/main.rs"), Some(7)), "src/main.rs:7");
        assert_eq!(place(Some("main.c"), None), "main.c");
    }

    #[test]
    fn what_was_inlined_is_named_on_narrow_terminals_too() {
        let shown = Shown::at(Some("/src/lib/hot.c"), Some(5), &Some("mix".to_owned()));
        for (width, text) in [
            (40, "lib/hot.c:5 (inlined mix)"),
            (16, "hot.c:5 in mix"),
            (13, "in mix:5"),
            (7, "hot.c:5"),
        ] {
            assert_eq!(shown.within(width), text);
        }
        let long =
            Shown::at(Some("hot.c"), Some(5), &Some("a_function_with_a_long_name".to_owned()));
        assert_eq!(long.within(24), "hot.c:5 in a_fun..._name");
    }

    #[test]
    fn a_terminal_is_filled_but_not_overrun() {
        for width in 40..=120 {
            let style = Style { fits: true, width, ..Style::default() };
            for (name, module, place) in [(8, 6, 4), (48, 17, 30), (48, 48, 48), (20, 6, 12)] {
                let widths = Widths::new(&style, name, module, place);
                let name = "n".repeat(widths.name);
                let [share, error, bar, samples] = ["100.0 %", "±10.0", "████████", "1000000"];
                let (module, place) = ("m".repeat(module), "p".repeat(place));
                let line = widths.line([share, error, bar, samples, &name, &module, &place]);
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        let plain = Widths::new(&Style::default(), 90, 6, 4);
        assert_eq!(plain.name, 90, "nothing is cut where nothing has to fit");
        let all = Style { verbose: true, ..Style::default() };
        assert_eq!(Widths::new(&all, 900, 6, 4).name, NAME, "one long name widens no other row");
    }
}
