//! The loops drawn to the left of the blocks.

use crate::tui::state::Blocks;

/// The loops beside a row, the outermost first: from the first row of the head `┌▶` down to the jump
/// back `└─`; if the head is the last block, from the jump down to the head.
pub fn gutter(blocks: &Blocks, row: usize, columns: usize) -> String {
    let deepest = blocks.loops.iter().map(|l| l.column + 1).max().unwrap_or(0);
    let width = deepest.min(columns / 12);
    let mut cells = vec![' '; width];
    let Some(block) = blocks.block_index(row) else { return cells.into_iter().collect() };
    let first = row == 0 || blocks.block_index(row - 1) != Some(block);
    let last = blocks.block_index(row + 1) != Some(block);
    let mut edge = ' ';
    for one in blocks.loops.iter().filter(|l| (l.from..=l.to).contains(&block)) {
        let (from, to) = (block == one.from, block == one.to);
        let (top, bottom) = match one.head_first {
            true => (first && from, last && to),
            false => (last && from, first && to),
        };
        if !one.head_first && ((from && !last) || (to && !first)) {
            continue;
        }
        let Some(cell) = cells.get_mut(one.column) else { continue };
        *cell = match (top, bottom) {
            (true, _) => '┌',
            (_, true) => '└',
            _ => '│',
        };
        if top || bottom {
            // From the corner to the row, across the loops inside.
            let arrow = if top == one.head_first { '▶' } else { '─' };
            cells.iter_mut().skip(one.column + 1).filter(|c| **c == ' ').for_each(|c| *c = '─');
            edge = if top && bottom { '▶' } else { arrow };
        }
    }
    if width == 0 {
        return String::new();
    }
    cells.push(edge);
    cells.into_iter().collect()
}
