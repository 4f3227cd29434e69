//! Notes on a core: where measurement contradicts its table, and where its identity is not what it claims.

use super::{Core, WIDTH_ERROR};
use crate::identity::Fact;
use crate::self_test::Answers;
use crate::tables::facts::FusedWith;

/// Facts of an identity that a note names.
const NAMED: usize = 4;

/// `[2048, 4096]`.
fn list(numbers: &[u32]) -> String {
    let all: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("[{}]", all.join(", "))
}

impl Core {
    /// Where the self-test contradicts the table, in words.
    pub fn contradictions(&self) -> Vec<String> {
        self.answers().map(|answers| self.contradicted_by(answers)).unwrap_or_default()
    }

    /// Where these answers contradict the table, in words.
    pub fn contradicted_by(&self, answers: &Answers) -> Vec<String> {
        let (facts, mut found) = (self.facts(), Vec::new());
        let stated = facts.sustained_width.as_ref().map(|s| s.with_two_loads);
        let stated = stated.or(self.stated_width());
        if let (Some(stated), Some(measured)) = (stated, answers.width)
            && (measured / f64::from(stated) - 1.0).abs() > WIDTH_ERROR
        {
            found.push(format!("{measured:.1} instructions a cycle, the table states {stated}"));
        }
        let words = |fused| if fused { "fused" } else { "not fused" };
        if let (Some(stated), Some(measured)) = (&facts.nop_fusion, answers.nops_fused)
            && (stated.with != FusedWith::Nothing) != measured
        {
            let stated = stated.with != FusedWith::Nothing;
            found.push(format!("nops are {}, the table states {}", words(measured), words(stated)));
        }
        if let (Some(stated), Some(measured)) = (&facts.store_aliasing, &answers.false_distances)
            && stated.distances.iter().any(|d| !measured.contains(d))
        {
            let (measured, stated) = (list(measured), list(&stated.distances));
            found.push(format!("loads wait falsely at {measured}, the table states {stated}"));
        }
        found
    }

    /// A warning where the table is of another processor than the one that is measured.
    pub fn warning(&self) -> Option<String> {
        let table = self.table.as_ref().filter(|_| self.foreign)?;
        let is = match self.identity.as_ref().and_then(|identity| identity.table.as_ref()) {
            Some(own) if !self.cpu.vendor.is_empty() => {
                format!("{own}; {}", self.cpu.signature())
            }
            _ => self.cpu.signature(),
        };
        Some(format!(
            "table {} ({}) does not describe this processor ({is})",
            table.name, table.title
        ))
    }

    /// Note on its identity: that it is not what family and model claim, that something contradicts the table, or that
    /// several tables fit.
    pub fn identity_note(&self) -> Option<String> {
        let identity = self.identity.as_ref()?;
        let list = |facts: &mut dyn Iterator<Item = &Fact>| {
            let texts: Vec<String> = facts.take(NAMED).map(Fact::to_string).collect();
            texts.join(", ")
        };
        if self.table.is_none() && identity.candidates.len() > 1 {
            let tables = identity.candidates.join(", ");
            return Some(format!(
                "nothing decides between the tables {tables}: what they state alike is used, the \
                 rest is not known; --uarch NAME chooses"
            ));
        }
        let table = self.table.as_ref().filter(|_| !self.foreign)?;
        let against = list(&mut identity.against(&table.name));
        if !against.is_empty() {
            return Some(format!("table {} is contradicted by {against}", table.name));
        }
        let is_chosen = identity.table.as_ref() == Some(&table.name);
        (is_chosen && identity.is_masked()).then(|| {
            let evidence = list(&mut identity.evidence.iter());
            format!(
                "the processor claims to be {} and is {} by {}: {evidence}",
                self.cpu.signature(),
                table.name,
                identity.by.name()
            )
        })
    }
}
