//! Level 1 of each function.

use super::renderer::Renderer;
use crate::documents::report_parts::{FunctionNode, PerFunction};
use crate::render::fit::elided;
use std::fmt::Write as _;

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
    match (node.value, node.error) {
        (Some(value), Some(error)) => {
            let error = error + node.bias.unwrap_or(0.0);
            format!("{:.1} % ±{:.1}", 100.0 * value, 100.0 * error)
        }
        (Some(value), None) => format!("{:.1} %", 100.0 * value),
        (None, _) => "not counted".to_owned(),
    }
}
