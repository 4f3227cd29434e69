//! Data of a load or store, in words.

use super::allocated_by::memory;
use super::count::{self, Count};
use super::loads::LoadRow;

impl LoadRow {
    /// Its operand in the source, by DWARF, with the structure that has it; or why that is not known, where its code
    /// has debug information.
    pub fn operand(&self) -> Option<String> {
        match (&self.field, &self.field_unknown) {
            (Some(field), _) => {
                let of = self.of.as_ref().map_or(String::new(), |of| format!(" ({of})"));
                Some(format!("operand {field}{of}"))
            }
            (None, Some(why)) if self.instruction.is_some() && !self.without_dwarf => {
                Some(format!("operand not known: {why}"))
            }
            _ => None,
        }
    }

    /// The variables that its addresses are of, or the heap or stack, with their samples if not all are of one; what
    /// its operand names is left out.
    pub fn data(&self) -> Option<String> {
        let shown = |name: &String| name != "unknown" && self.field.as_ref() != Some(name);
        let all = self.variables.iter().filter(|one| shown(&one.name));
        let text: Vec<String> = all
            .map(|one| match one.samples == self.samples {
                true => one.name.clone(),
                false => format!("{} ({})", one.name, one.samples),
            })
            .collect();
        (!text.is_empty()).then(|| text.join(", "))
    }
}

impl Count {
    /// Who allocated the memory that a load of it reads; `None` if nothing of that was allocated or is known.
    pub fn memory_of(&self, load: &count::LoadRow) -> Option<String> {
        memory(&self.allocation_sites, load.memory.as_ref()?)
    }
}
