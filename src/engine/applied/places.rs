//! Advised loads by their places in the source.

use super::insertion::Wanted;
use loads::prefetch::Site;
use report::documents::applied::AppliedRow;
use report::documents::prefetch::{AdviceRow, Prefetch};
use std::path::PathBuf;

/// Iterations ahead where the advice has no distance.
const UNKNOWN: u64 = 16;

/// A place in the source with an advised load.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub row: AppliedRow,
    pub module: PathBuf,
    pub wanted: Wanted,
    /// Iterations of the source ahead.
    pub distance: u64,
    /// Loads of its loop that are of this place: the compiler unrolled it so often.
    copies: u64,
    advice: AdviceRow,
}

/// The places of advised loads, in the order of the advice; and those that the source does not show.
pub(super) fn places(document: &Prefetch) -> (Vec<Place>, Vec<AppliedRow>) {
    let (mut places, mut unknown): (Vec<Place>, Vec<AppliedRow>) = (Vec::new(), Vec::new());
    for advice in document.advice.iter().filter(|row| row.refused.is_none()) {
        let key = |row: &AdviceRow| (row.file.clone(), row.line, row.column);
        if let Some(known) = places.iter_mut().find(|known| key(&known.advice) == key(advice)) {
            let same = known.advice.site_loop == advice.site_loop;
            known.copies += u64::from(same && known.advice.load != advice.load);
            continue;
        }
        let mut row = AppliedRow {
            load: advice.load,
            function: advice.function.clone(),
            file: advice.file.clone(),
            line: advice.line,
            site: advice.site,
            ..AppliedRow::default()
        };
        match advice.line {
            Some(line) => places.push(Place {
                row,
                module: advice.module.clone().into(),
                wanted: Wanted {
                    line,
                    column: advice.column,
                    class: advice.class,
                    stride: advice.stride,
                    site: advice.site.unwrap_or_default(),
                },
                distance: 0,
                copies: 1,
                advice: advice.clone(),
            }),
            None => {
                row.reason = Some("its line is not known: build with -g".to_owned());
                unknown.push(row);
            }
        }
    }
    for place in &mut places {
        let is_inner = place.wanted.site == Site::Inner;
        let copies = if is_inner { place.copies } else { 1 };
        place.row.unrolled = Some(copies).filter(|copies| *copies > 1);
        place.distance = place.advice.distance.unwrap_or(UNKNOWN).saturating_mul(copies);
    }
    (places, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unrolled_loop_is_one_place_whose_distance_is_of_the_source() {
        let advice = |load: u64, column, distance| AdviceRow {
            load: load.into(),
            line: Some(7),
            column: Some(column),
            distance: Some(distance),
            ..AdviceRow::default()
        };
        let rows = vec![advice(1, 3, 8), advice(2, 3, 8), advice(3, 3, 8), advice(4, 9, 5)];
        let (found, unknown) = places(&Prefetch { advice: rows, ..Prefetch::default() });
        let distances: Vec<u64> = found.iter().map(|place| place.distance).collect();
        assert_eq!((distances, unknown), (vec![24, 5], vec![]));
        let unrolled: Vec<Option<u64>> = found.iter().map(|place| place.row.unrolled).collect();
        assert_eq!(unrolled, [Some(3), None]);
    }
}
