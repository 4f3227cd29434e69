//! Which processors a table is for.

use super::{Library, Source};
use crate::Cpu;
use crate::error::Result;
use crate::tables::schema::TableFile;
use crate::tables::{CoreKind, Signature, Table};
use std::sync::Arc;

/// Processors that a table is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// CPUID vendor string, or `any`.
    pub vendor: String,
    /// Kind of core on hybrids.
    pub core: Option<CoreKind>,
    /// Name of the core PMU.
    pub pmu: String,
    /// How closely it describes a processor of this family, model and stepping: by stepping 2 or
    /// 3, by model 1, by family 0; `None`: not at all.
    pub rank: Option<u8>,
    /// CPUID signature of such a core.
    pub signature: Option<Arc<Signature>>,
    /// Whether it is the user's own (`--tables`).
    pub is_own: bool,
}

impl Library {
    /// Processors that table `name` is for, and how well it describes one of this family, model and stepping.
    ///
    /// # Errors
    /// As [`Library::text`].
    pub fn head(&self, name: &str, cpu: &Cpu) -> Result<Head> {
        let rank = |rules: &mut dyn Iterator<Item = (u32, &[u32], &[u32])>| {
            rules
                .filter(|(own, models, steppings)| {
                    *own == cpu.family
                        && (models.is_empty() || models.contains(&cpu.model))
                        && (steppings.is_empty() || steppings.contains(&cpu.stepping))
                })
                .map(|(_, models, steppings)| {
                    u8::from(!models.is_empty()) + u8::from(!steppings.is_empty())
                })
                .max()
        };
        let known = self.known(name)?.0;
        if let Source::Embedded(table) = known.source {
            let signature = || table.signature().map(Arc::new);
            let mut rules = table.rules.iter().map(|r| (r.family, r.models, r.steppings));
            return Ok(Head {
                vendor: table.vendor.to_owned(),
                core: table.core,
                pmu: table.pmu.to_owned(),
                rank: rank(&mut rules),
                signature: known.signature.get_or_init(signature).clone(),
                is_own: false,
            });
        }
        let (text, origin) = self.text(name)?;
        let file = Table::read(&text, &origin)?;
        let mut rules = file.matches.iter().map(|r| (r.family, &r.models[..], &r.steppings[..]));
        let rank = rank(&mut rules);
        let TableFile { vendor, core, pmu, signature, .. } = file;
        let signature = known.signature.get_or_init(|| signature.map(Arc::new)).clone();
        Ok(Head { vendor, core, pmu, rank, signature, is_own: true })
    }

    /// The table of the same vendor for the model of the same family that is nearest by its number.
    ///
    /// # Errors
    /// As [`Library::text`].
    pub fn nearest(&self, vendor: &str, family: u32, model: u32) -> Result<Option<String>> {
        let mut best: Option<(u32, String)> = None;
        for name in self.names() {
            let rules: Vec<(u32, Vec<u32>)> = match self.known(name)?.0.source {
                Source::Embedded(t) if t.vendor == vendor => {
                    t.rules.iter().map(|r| (r.family, r.models.to_vec())).collect()
                }
                Source::Embedded(_) => continue,
                Source::File(_) => {
                    let (text, origin) = self.text(name)?;
                    let file = Table::read(&text, &origin)?;
                    let rules = file.matches.into_iter().map(|r| (r.family, r.models));
                    rules.filter(|_| file.vendor == vendor).collect()
                }
            };
            for (_, models) in rules.into_iter().filter(|(own, _)| *own == family) {
                let distance = models.iter().map(|m| m.abs_diff(model)).min().unwrap_or(0);
                if best.as_ref().is_none_or(|(least, _)| distance < *least) {
                    best = Some((distance, name.to_owned()));
                }
            }
        }
        Ok(best.map(|(_, name)| name))
    }
}
