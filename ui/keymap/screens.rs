//! Sets of screens: those on which a key does the same.

use super::screen::Screen;

pub const TREE: &[Screen] = &[Screen::Tree];
pub const FUNCTIONS: &[Screen] = &[Screen::Functions];
pub const BLOCKS: &[Screen] = &[Screen::Blocks];
pub const INTERVALS: &[Screen] = &[Screen::Intervals];
pub const BLOCK: &[Screen] = &[Screen::Block];
pub const CODE: &[Screen] = &[Screen::Functions, Screen::Blocks];
pub const SORTED: &[Screen] = &[Screen::Tree, Screen::Functions];
/// Screens whose numbers change during a measurement.
pub const LIVE: &[Screen] = SORTED;
pub const DETAILED: &[Screen] = &[Screen::Tree, Screen::Block];
pub const FOLDED: &[Screen] = &[Screen::Tree, Screen::Blocks, Screen::EstimatedSource];
pub const LINES: &[Screen] = &[Screen::Blocks, Screen::EstimatedCode, Screen::EstimatedSource];
pub const MEASURED: &[Screen] = &[Screen::Tree, Screen::Functions, Screen::Blocks];
pub const CALLED: &[Screen] = &joined::<4>(&[CODE, ESTIMATED_CODE]);
pub const FILTERED: &[Screen] = &joined::<7>(&[COMPARED, MEASURED, ESTIMATED_CODE]);
pub const HOT: &[Screen] = &joined::<8>(&[COMPARED, MEASURED, &[Screen::Estimate], ESTIMATED_CODE]);
/// A measurement and its estimate.
pub const ESTIMATED: &[Screen] = &joined::<8>(&[MEASURED, ESTIMATE]);
/// Screens with a level below the selected row.
pub const DOWNWARD: &[Screen] =
    &joined::<11>(&[ESTIMATED, INTERVALS, &[Screen::Comparison, Screen::Calls]]);
pub const ALL: &[Screen] =
    &joined::<13>(&[MEASURED, BLOCK, INTERVALS, ESTIMATE, COMPARED, &[Screen::Calls]]);

const COMPARED: &[Screen] = &[Screen::Comparison, Screen::ComparedCode];
const ESTIMATED_CODE: &[Screen] = &[Screen::EstimatedFunctions, Screen::EstimatedCode];
/// An estimate and its code.
pub const ESTIMATE: &[Screen] = &joined::<5>(&[
    &[Screen::Estimate],
    ESTIMATED_CODE,
    &[Screen::EstimatedSource, Screen::EstimatedBlock],
]);

/// All of these sets, one after the other: `N` screens, which the compiler checks.
const fn joined<const N: usize>(sets: &[&[Screen]]) -> [Screen; N] {
    let mut all = [Screen::Tree; N];
    let (mut set, mut filled) = (0, 0);
    while set < sets.len() {
        let mut at = 0;
        while at < sets[set].len() {
            all[filled] = sets[set][at];
            (at, filled) = (at + 1, filled + 1);
        }
        set += 1;
    }
    assert!(filled == N, "another number of screens");
    all
}
