//! Loads and stores by the member of a structure that their operand is.

use report::documents::loads::{FieldRow, LevelsRow, LoadRow};
use std::collections::BTreeMap;

/// The members of an event's loads and stores, those with the largest share first.
pub(super) fn field_rows(event: usize, loads: &[LoadRow], stores: &[LoadRow]) -> Vec<FieldRow> {
    let mut all: BTreeMap<(&str, u64, &str), Member> = BTreeMap::new();
    for (row, is_load) in
        loads.iter().map(|row| (row, true)).chain(stores.iter().map(|row| (row, false)))
    {
        let (Some(of), Some(member), Some(offset)) = (&row.of, &row.member, row.offset) else {
            continue;
        };
        let is_main = is_load || loads.is_empty();
        all.entry((of, offset, member)).or_default().add(row, is_load, is_main);
    }
    let mut rows: Vec<FieldRow> = all
        .into_iter()
        .map(|((of, offset, member), found)| FieldRow {
            event,
            of: of.to_owned(),
            member: member.to_owned(),
            offset,
            latency_mean: (found.timed > 0.0).then(|| found.cycles / found.timed),
            ..found.row
        })
        .collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.offset.cmp(&b.offset)));
    rows
}

#[derive(Default)]
struct Member {
    row: FieldRow,
    /// Samples with a latency, and its sum.
    timed: f64,
    cycles: f64,
}

impl Member {
    fn add(&mut self, row: &LoadRow, is_load: bool, is_main: bool) {
        if is_load {
            self.row.loads += row.samples;
        } else {
            self.row.stores += row.samples;
        }
        if !is_main {
            return;
        }
        self.row.share += row.share;
        add(&mut self.row.levels, &row.levels);
        if let Some(mean) = row.latency_mean {
            self.timed += row.samples as f64;
            self.cycles += mean * row.samples as f64;
        }
    }
}

fn add(to: &mut LevelsRow, own: &LevelsRow) {
    to.lfb += own.lfb;
    to.l1 += own.l1;
    to.l2 += own.l2;
    to.l3 += own.l3;
    to.ram += own.ram;
    to.remote_ram += own.remote_ram;
    to.remote_cache += own.remote_cache;
    to.other += own.other;
}
