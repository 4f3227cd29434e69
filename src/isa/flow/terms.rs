//! Sums of multiples of values.

/// The terms of a sum, each value once and in order, without those of factor 0; `add` adds factors.
pub fn merged<V: Ord, N: Copy + Default + PartialEq>(
    mut terms: Vec<(V, N)>,
    add: impl Fn(N, N) -> N,
) -> Vec<(V, N)> {
    terms.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut merged: Vec<(V, N)> = Vec::with_capacity(terms.len());
    for (value, factor) in terms {
        match merged.last_mut() {
            Some(last) if last.0 == value => last.1 = add(last.1, factor),
            _ => merged.push((value, factor)),
        }
    }
    merged.retain(|term| term.1 != N::default());
    merged
}
