//! The names of families and products in the titles of tables, by which users know them.

/// `text` as names are compared: letters and digits, in lower case.
pub(super) fn bare(text: &str) -> String {
    let kept = text.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

/// The names that a title lists, as [`bare`] has them: `AMD Zen 4 (Ryzen 7000 and 8000, EPYC 9004)` has `amdzen4`,
/// `zen4`, `ryzen7000`, `ryzen8000`, `epyc9004`.
pub(super) fn names(title: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    for listed in title.split([',', '(', ')', ':', ';']) {
        let mut family = "";
        for part in listed.trim().split(" and ") {
            // `8000` after `Ryzen 7000 and`.
            let is_number = part.chars().all(|c| c.is_ascii_digit());
            all.push(if is_number { bare(family) + part } else { bare(part) });
            all.extend(["AMD ", "Intel "].iter().filter_map(|v| part.strip_prefix(v)).map(bare));
            family = part.trim_end_matches(|c: char| c.is_ascii_digit());
        }
    }
    all.into_iter().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_lists_families_and_products() {
        let of = |title: &str| names(title).collect::<Vec<_>>();
        assert_eq!(
            of("AMD Zen 4 (Ryzen 7000 and 8000, EPYC 9004)"),
            ["amdzen4", "zen4", "ryzen7000", "ryzen8000", "epyc9004"]
        );
        assert_eq!(of("Skylake server (1st Xeon)"), ["skylakeserver", "1stxeon"]);
        assert_eq!(of("Alder Lake: E core (Gracemont)"), ["alderlake", "ecore", "gracemont"]);
    }
}
