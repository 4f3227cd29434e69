//! The levels that serve a load, by its timed executions and its addresses.

use loads::class::Kind;
use loads::latency::Level;
use loads::prefetch::Served;
use report::documents::count::{LevelShare, LoadClass, LoadRow};

/// Bytes of a cache line.
const LINE: f64 = 64.0;

/// The levels that serve a load, whose hit takes so many ns, the fastest first. Where its addresses advance by less than a
/// line, only as many executions as come to another line can miss L1: fenced latencies that say more were taken while all
/// loads took longer, as at a lower clock.
pub(super) fn served(row: &LoadRow, hit: f64, cycles_per_ns: f64) -> Vec<Served> {
    let of = |one: &LevelShare| Served {
        level: one.level,
        share: one.share,
        cycles: one.latency.unwrap_or(0.0) * cycles_per_ns,
    };
    let mut levels: Vec<Served> = row.levels.iter().map(of).collect();
    let Some(most) = row.class.as_ref().and_then(new_lines) else { return levels };
    let far: f64 = levels.iter().filter(|one| one.level != Level::L1).map(|one| one.share).sum();
    if levels.is_empty() || far <= most {
        return levels;
    }
    levels.retain(|one| one.level != Level::L1);
    levels.iter_mut().for_each(|one| one.share *= most / far);
    levels.insert(0, Served { level: Level::L1, share: 1.0 - most, cycles: hit * cycles_per_ns });
    levels
}

/// The most executions that come to a new line, of all, for a stride below a line.
fn new_lines(class: &LoadClass) -> Option<f64> {
    let stride = class.stride.filter(|_| class.kind == Kind::Stride)?.unsigned_abs() as f64;
    let (steps, breaks) = (class.steps? as f64, class.breaks? as f64);
    let most = (stride / LINE * steps + breaks) / (steps + breaks);
    (stride < LINE && steps > 0.0).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stride: i64, breaks: u64, shares: &[(Level, f64)]) -> LoadRow {
        let class = LoadClass {
            kind: Kind::Stride,
            stride: Some(stride),
            steps: Some(1000 - breaks),
            breaks: Some(breaks),
            ..LoadClass::default()
        };
        let level = |(level, share): &(Level, f64)| LevelShare {
            level: *level,
            share: *share,
            latency: Some(20.0),
            ..LevelShare::default()
        };
        let levels = shares.iter().map(level).collect();
        LoadRow { class: Some(class), levels, ..LoadRow::default() }
    }

    /// Words one after the other come to a new line in 1 of 16 executions, and where a row of them begins.
    #[test]
    fn a_stride_below_a_line_misses_once_a_line() {
        let shares = |row: &LoadRow| -> Vec<(Level, f64)> {
            served(row, 1.5, 2.0).iter().map(|one| (one.level, one.share)).collect()
        };
        let l3 = [(Level::L3, 1.0)];
        assert_eq!(shares(&row(4, 0, &l3)), [(Level::L1, 0.9375), (Level::L3, 0.0625)]);
        assert_eq!(served(&row(-4, 0, &l3), 1.5, 2.0)[0].cycles, 3.0);
        let most = 0.0625 * 0.9 + 0.1;
        assert_eq!(shares(&row(4, 100, &l3)), [(Level::L1, 1.0 - most), (Level::L3, most)]);
        for kept in [row(64, 0, &l3), row(4, 0, &[(Level::L1, 0.95), (Level::L3, 0.05)])] {
            let measured: Vec<_> = kept.levels.iter().map(|one| (one.level, one.share)).collect();
            assert_eq!(shares(&kept), measured);
        }
    }
}
