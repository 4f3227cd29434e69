//! Counts of a session: their event ids refer to the table they were recorded with, whose text is in
//! the session; event names map them to the table at hand.

use super::imported::{Imported, Software};
use crate::session::Session;
use tma::counts::{Counts, GroupCounts};
use tma::error::{Error, Result};
use tma::quantity::Missing;
use tma::tables::{EventId, Table};

/// Adds the session's counts for `table`.
///
/// # Errors
/// The session was recorded with other tables only, or its own table cannot be read.
pub fn add(session: &Session, table: &Table, imported: &mut Imported) -> Result<()> {
    let recorded = session.counts.iter().any(|c| c.table == table.name);
    if !recorded && !session.counts.is_empty() {
        let names: Vec<&str> = session.tables.iter().map(|t| t.name.as_str()).collect();
        return Err(Error::failed(format!(
            "the session was not recorded with {} but with {}",
            table.name,
            names.join(", ")
        ))
        .hint(format!("--uarch {}", names.first().unwrap_or(&"NAME"))));
    }
    let stored = session.tables.iter().find(|t| t.name == table.name);
    let Some(stored) = stored else {
        return match session.counts.is_empty() {
            true => Ok(()),
            false => Err(Error::failed("the session lacks the table it was recorded with")),
        };
    };
    let own = Table::parse(&stored.text, &format!("{} (in the session)", stored.name))?;
    let ids: Vec<Option<EventId>> = own.events.iter().map(|e| table.event(&e.name)).collect();
    for record in session.counts.iter().filter(|c| c.table == table.name) {
        imported.counts.push(translated(&record.counts, &ids)?);
    }
    for software in &session.software {
        let value = |(name, value): (&String, &Option<f64>)| {
            let value = value.ok_or_else(|| Missing::NotMeasured(name.clone().into()));
            (name.clone(), value)
        };
        imported.software.push(Software {
            scope: software.scope.clone(),
            interval: software.interval,
            values: software.values.iter().map(value).collect(),
        });
    }
    Ok(())
}

/// Translates event ids to those of the table at hand; events it lacks are left out.
fn translated(counts: &Counts, ids: &[Option<EventId>]) -> Result<Counts> {
    let id = |e: &EventId| {
        let known = ids.get(usize::from(*e));
        known.copied().ok_or_else(|| Error::failed(format!("the session's table has no event {e}")))
    };
    if counts.interval.is_some_and(|(begin, end)| begin > end) {
        return Err(Error::failed("an interval of the session ends before it begins"));
    }
    let mut out = counts.clone();
    for group in &mut out.groups {
        match group {
            GroupCounts::Live { events, readings, .. } => {
                let new: Vec<Option<EventId>> = events.iter().map(id).collect::<Result<_>>()?;
                let has_all = |r: &tma::counts::Reading| r.values.len() == new.len();
                if !readings.iter().all(has_all) {
                    return Err(Error::failed("a reading of the session lacks values"));
                }
                for reading in readings {
                    let kept = reading.values.iter().zip(&new).filter(|(_, e)| e.is_some());
                    reading.values = kept.map(|(v, _)| *v).collect();
                }
                *events = new.into_iter().flatten().collect();
            }
            GroupCounts::Imported { events, .. } => {
                let mut new = Vec::with_capacity(events.len());
                for (e, value) in events.iter() {
                    if let Some(e) = id(e)? {
                        new.push((e, value.clone()));
                    }
                }
                *events = new;
            }
            GroupCounts::Missing { events, .. } => {
                let new: Vec<Option<EventId>> = events.iter().map(id).collect::<Result<_>>()?;
                *events = new.into_iter().flatten().collect();
            }
        }
    }
    Ok(out)
}
