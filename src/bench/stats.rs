//! The few statistics that timing needs.

/// Mean of the ticks that lie within 40 ticks or 4 % of their median. Not a number if there are
/// none.
///
/// Trimmed by distance, not by rank: a counter that steps by about 25 ticks gives two values in a
/// proportion that carries the fraction, and cutting ranks off would shift it.
pub fn trimmed_mean(ticks: &[f64]) -> f64 {
    let mut near = ticks.to_vec();
    retain_near(&mut near);
    mean(&near)
}

/// Leaves only the ticks that the trimmed mean uses.
pub fn retain_near(ticks: &mut Vec<f64>) {
    let middle = median(ticks);
    let near = (0.04 * middle).max(40.0);
    ticks.retain(|t| (*t - middle).abs() <= near);
}

/// The arithmetic mean. Not a number if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The middle value; the mean of the middle two of an even number. Not a number if there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        _ if n.is_multiple_of(2) => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        _ => sorted[n / 2],
    }
}

/// Groups of values that lie apart by more than `gap` (relative) or `least` (absolute): the centre
/// and the share of each, in ascending order.
pub fn modes(values: &[f64], gap: f64, least: f64) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut groups: Vec<Vec<f64>> = Vec::new();
    for value in sorted {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|l| value - l <= (l * gap).max(least)) => {
                group.push(value);
            }
            _ => groups.push(vec![value]),
        }
    }
    let all = values.len() as f64;
    groups.iter().map(|g| (median(g), g.len() as f64 / all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_does_not_move_the_trimmed_mean() {
        assert_eq!(trimmed_mean(&[500.0, 525.0, 500.0, 500.0, 9000.0]), 2025.0 / 4.0);
    }

    #[test]
    fn modes_are_told_apart_with_their_shares() {
        let found = modes(&[0.67, 0.80, 0.67, 0.675], 0.03, 0.01);
        assert_eq!(found, [(0.67, 0.75), (0.80, 0.25)]);
    }
}
