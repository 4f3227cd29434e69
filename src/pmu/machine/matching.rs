//! Which table describes this processor.

use super::{Machine, Pmu};
use serde::Deserialize;
use tma::error::{Error, Result};
use tma::tables::schema::MatchRule;
use tma::tables::{CoreKind, Library};

/// A table that describes (one kind of core of) this processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMatch {
    /// The table's name.
    pub table: String,
    /// Kind of core on hybrids.
    pub core: Option<CoreKind>,
    /// The PMU that counts for it; `None`: the kernel has none for it.
    pub pmu: Option<String>,
}

/// The part of a table file that says what it is for.
#[derive(Deserialize)]
struct Head {
    vendor: String,
    #[serde(default)]
    core: Option<CoreKind>,
    pmu: String,
    #[serde(default, rename = "match")]
    matches: Vec<MatchRule>,
}

/// The tables for `machine`: one, or one per kind of core on a hybrid; none when the processor
/// is unknown. `forced` names one instead (the user's `--uarch`).
///
/// # Errors
/// The forced table does not exist, or a table's head cannot be read.
pub fn choose(
    machine: &Machine,
    library: &Library,
    forced: Option<&str>,
) -> Result<Vec<TableMatch>> {
    if let Some(name) = forced {
        let head = head(library, name)?;
        let pmu = pmu_for(machine, &head.pmu);
        return Ok(vec![TableMatch { table: name.to_lowercase(), core: head.core, pmu }]);
    }
    let mut found: Vec<(u8, String, Head)> = Vec::new();
    for name in library.names() {
        let head = head(library, name)?;
        if let Some(rank) = rank(machine, &head) {
            found.push((rank, name.to_owned(), head));
        }
    }
    let best = found.iter().map(|(rank, ..)| *rank).max();
    found.retain(|(rank, ..)| Some(*rank) == best);
    let all: Vec<TableMatch> = found
        .into_iter()
        .map(|(_, table, head)| {
            let pmu = machine.pmu(&head.pmu).map(|p| p.name.clone());
            TableMatch { table, core: head.core, pmu }
        })
        .collect();
    Ok(narrow(machine, all))
}

/// Drops the kinds of core this machine does not have. Without any PMU a hybrid shows its P core.
fn narrow(machine: &Machine, mut all: Vec<TableMatch>) -> Vec<TableMatch> {
    if all.len() > 1 {
        if all.iter().any(|t| t.pmu.is_some()) {
            all.retain(|t| t.pmu.is_some());
        } else if all.iter().any(|t| t.core != Some(CoreKind::E)) {
            all.retain(|t| t.core != Some(CoreKind::E));
        }
    }
    // A processor with one kind of core calls its PMU `cpu` whatever the kind.
    if let [only] = all.as_mut_slice()
        && only.pmu.is_none()
    {
        only.pmu = machine.pmu("cpu").map(|p| p.name.clone());
    }
    // P before E.
    all.sort_by_key(|t| (t.core == Some(CoreKind::E), t.table.clone()));
    all
}

fn pmu_for(machine: &Machine, name: &str) -> Option<String> {
    let named: Option<&Pmu> = machine.pmu(name).or_else(|| {
        let mut core = machine.core_pmus();
        core.next().filter(|_| core.next().is_none())
    });
    named.map(|p| p.name.clone())
}

/// How closely the table describes the processor: by stepping, by model, by family; or not.
fn rank(machine: &Machine, head: &Head) -> Option<u8> {
    let cpu = &machine.cpu;
    if head.vendor != cpu.vendor {
        return None;
    }
    let rules = head.matches.iter().filter(|r| {
        r.family == cpu.family
            && (r.models.is_empty() || r.models.contains(&cpu.model))
            && (r.steppings.is_empty() || r.steppings.contains(&cpu.stepping))
    });
    rules.map(|r| u8::from(!r.models.is_empty()) + u8::from(!r.steppings.is_empty())).max()
}

/// Parses what stands before nodes and events; the whole file only if that is not enough.
fn head(library: &Library, name: &str) -> Result<Head> {
    let (text, origin) = library.text(name)?;
    let end = text.match_indices("\n[").map(|(at, _)| at + 1);
    let mut sections = end.filter(|at| !text[*at..].starts_with("[[match]]"));
    let end = sections.next().unwrap_or(text.len());
    let short = toml::from_str::<Head>(&text[..end]);
    let parsed = match short {
        Ok(head) if !head.matches.is_empty() || head.vendor == "any" => Ok(head),
        _ => toml::from_str::<Head>(&text),
    };
    parsed.map_err(|e| {
        Error::failed(format!("{origin}: the table cannot be read"))
            .because(e.to_string().trim_end())
            .hint("docs/tables.md describes every key of a table")
    })
}
