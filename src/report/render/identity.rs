//! Which processor this is, as text.

use crate::documents::doctor::{Identities, KindOfCore};
use std::fmt::Write as _;
use tma::identity::{Fact, Identity};

/// Facts that are printed of each sort; JSON has all.
const SHOWN: usize = 8;

/// The document as text.
pub fn text(document: &Identities) -> String {
    let is_one_of_several = document.cores.len() > 1;
    let parts: Vec<String> =
        document.cores.iter().map(|one| core(one, is_one_of_several)).collect();
    let mut out = parts.join("\n");
    if document.kinds_move {
        out.push_str(
            "\nnote: the host may move a CPU to another kind of core at any time; this is what \
             each was when it was asked\n",
        );
    }
    out
}

fn core(core: &KindOfCore, is_one_of_several: bool) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<13} {value}");
    };
    let identity = &core.identity;
    if is_one_of_several && !core.cpus.is_empty() {
        let cpus: Vec<String> = core.cpus.iter().map(u32::to_string).collect();
        row("CPUs", &cpus.join(" "));
    }
    row("table", &answer(identity));
    row("claimed", &claim(identity));
    if let Some(others) = identity.others_note() {
        row("not excluded", &others);
    }
    rows(&mut row, "evidence", identity.evidence.iter().map(Fact::to_string).collect());
    let against = identity.contradicted.iter().map(|c| format!("{}: {}", c.table, c.fact));
    rows(&mut row, "contradicted", against.collect());
    rows(&mut row, "hidden", identity.hidden.iter().map(Fact::to_string).collect());
    if let Some(fingerprint) = &core.fingerprint {
        row("fingerprint", &fingerprint.hash);
    }
    out
}

/// The table, and by what; or what remains.
pub fn answer(identity: &Identity) -> String {
    match &identity.table {
        Some(table) => format!("{table}, by {}", identity.by.name()),
        None if identity.candidates.is_empty() => "none fits".into(),
        None => format!(
            "none: {} fit alike; what they have in common is used, the rest is not known",
            identity.candidates.join(", ")
        ),
    }
}

/// Claim of family and model.
pub fn claim(identity: &Identity) -> String {
    let claimed = &identity.claimed;
    let tables = match &claimed.tables[..] {
        [] => "no table".into(),
        tables => tables.join(" or "),
    };
    let guest = if identity.is_virtual { "; a hypervisor may show any model" } else { "" };
    format!(
        "{} family {} model {} ({:#x}) stepping {}: {tables}{guest}",
        claimed.vendor, claimed.family, claimed.model, claimed.model, claimed.stepping
    )
}

fn rows(row: &mut impl FnMut(&str, &str), name: &str, facts: Vec<String>) {
    let count = facts.len();
    for (index, fact) in facts.into_iter().take(SHOWN).enumerate() {
        row(if index == 0 { name } else { "" }, &fact);
    }
    if count > SHOWN {
        row("", &format!("and {} more (--format json)", count - SHOWN));
    }
}
