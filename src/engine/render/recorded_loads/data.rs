//! Variables and members of structures as text.

use super::cells::{columns, cycles, level_cells, level_heads, more};
use crate::documents::loads::{EventRow, FieldRow, VariableRow};
use std::fmt::Write as _;

pub(super) fn variables(event: &EventRow, all: &[VariableRow], most: usize, out: &mut String) {
    let all: Vec<&VariableRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.iter().all(|row| row.kind == "unknown") {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let heads = level_heads(&columns);
    let _ = writeln!(out, "\n   share    loads   stores{heads}  cycles: mean  data");
    for one in all.iter().take(most) {
        let size = one.size.map_or(String::new(), |size| format!(" ({size} bytes)"));
        let of = match one.module.rsplit('/').next() {
            Some(name) if !name.is_empty() => format!(" of {name}"),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "{:6.1} %  {:>7}  {:>7}{}  {:>12}  {}{size}{of}",
            100.0 * one.share,
            one.loads,
            one.stores,
            level_cells(&columns, &one.levels),
            cycles(one.latency_mean),
            one.name,
        );
        if one.kind == "heap" {
            let _ = writeln!(out, "{:28}- which allocation is not known: a recording has none", "");
        }
        members(one, out);
    }
    more(all.len(), most, out);
}

/// The members of a variable, if it has any.
fn members(of: &VariableRow, out: &mut String) {
    let all = of.members.iter().filter(|member| member.name != of.name);
    for one in all.clone().take(MOST_MEMBERS) {
        let _ = writeln!(
            out,
            "{:6.1} %  {:>7}  {:>7}  - {}, mean {} cycles",
            100.0 * one.share,
            one.loads,
            one.stores,
            one.name,
            cycles(one.latency_mean)
        );
    }
    if all.clone().count() > MOST_MEMBERS {
        let _ = writeln!(out, "{:28}- {} more", "", all.count() - MOST_MEMBERS);
    }
}

/// Members shown of a variable.
const MOST_MEMBERS: usize = 6;

/// Members of structures, with the structure that they are in.
pub(super) fn fields(event: &EventRow, all: &[FieldRow], most: usize, out: &mut String) {
    let all: Vec<&FieldRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let heads = level_heads(&columns);
    let _ = writeln!(
        out,
        "\n   share    loads   stores{heads}  cycles: mean  offset  member of a structure, by the operands"
    );
    for one in all.iter().take(most) {
        let _ = writeln!(
            out,
            "{:6.1} %  {:>7}  {:>7}{}  {:>12}  {:>6}  {}: {}",
            100.0 * one.share,
            one.loads,
            one.stores,
            level_cells(&columns, &one.levels),
            cycles(one.latency_mean),
            one.offset,
            one.of,
            one.member,
        );
    }
    more(all.len(), most, out);
}
