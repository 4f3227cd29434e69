//! The report document of what an interactive screen shows: the tree's report, with the functions
//! and blocks on the screen.

use super::report::{Report, Source};
use super::report_code::{BlockRow, FunctionRow, Sampled};
use profile::hot::{Annotated, Summary};

/// Functions with samples, and the indices of those on the screen, in order.
#[derive(Debug, Clone, Copy)]
pub struct Functions<'a> {
    /// All of them.
    pub all: &'a Summary,
    /// Indices on the screen.
    pub shown: &'a [usize],
}

/// `report`, or an empty one, with the functions and the blocks of one of them.
pub fn document(
    report: Option<&Report>,
    functions: Option<Functions>,
    blocks: Option<&Annotated>,
) -> Report {
    let mut document = report.cloned().unwrap_or_else(|| Report::new(Source::Imported));
    if let Some(Functions { all, shown }) = functions {
        document.sampled = Some(Sampled {
            event: all.event.clone(),
            skid: all.skid.explain().to_owned(),
            samples: all.samples,
            lost: all.lost,
            notes: all.notes.clone(),
            functions: all.functions.len(),
            ..Sampled::default()
        });
        let rows = shown.iter().filter_map(|i| all.functions.get(*i));
        document.functions = rows.map(FunctionRow::from).collect();
    }
    if let Some(annotated) = blocks {
        let rows = annotated.blocks.iter();
        document.blocks = rows.map(|b| BlockRow::new(&b.block, &annotated.function)).collect();
    }
    document
}
