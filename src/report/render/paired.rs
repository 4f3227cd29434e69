//! Runs in turns, compared, as text.

use crate::documents::diff::paired::Paired;

/// A change of time: `8.3 % (7.1 to 9.4) less`; of one that may be either, `1.2 % (-0.4 to 2.0) less`.
pub fn change(of: &Paired) -> String {
    let is_less = of.ratio <= 1.0;
    let percent = |ratio: f64| if is_less { 100.0 * (1.0 - ratio) } else { 100.0 * (ratio - 1.0) };
    let interval = of.interval.map_or(String::new(), |(low, high)| {
        let (low, high) = if is_less { (high, low) } else { (low, high) };
        format!(" ({:.1} to {:.1})", percent(low), percent(high))
    });
    format!("{:.1} %{interval} {}", percent(of.ratio), if is_less { "less" } else { "more" })
}
