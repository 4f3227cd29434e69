//! Functions at a place of a call chain: the one that the code is of, and those inlined there.

use super::callers::{INLINED, Named};
use super::functions::{UNKNOWN, names_at};
use super::profile::Profile;
use crate::module::ModuleAddress;
use std::collections::HashMap;

/// Functions by place, those that were looked up.
pub(super) type Known = HashMap<ModuleAddress, Vec<Named>>;

impl Profile {
    /// The functions of a call chain, the innermost first: of each place those inlined there, then the one that its
    /// code is of.
    pub(super) fn functions_of(
        &mut self,
        chain: &[Option<ModuleAddress>],
        known: &mut Known,
    ) -> Vec<Named> {
        let mut functions = Vec::with_capacity(chain.len());
        for place in chain {
            match place {
                None => functions.push(Named::only(UNKNOWN)),
                Some(place) => functions.extend_from_slice(
                    known.entry(*place).or_insert_with(|| self.functions_at(*place)),
                ),
            }
        }
        // Without frame pointers the kernel follows whatever is in the register: a hundred unknown frames.
        functions.dedup_by(|a, b| a.name == UNKNOWN && b.name == UNKNOWN);
        functions
    }

    fn functions_at(&mut self, place: ModuleAddress) -> Vec<Named> {
        self.places_at(place).into_iter().map(|(named, _)| named).collect()
    }

    /// The functions at a place, the innermost first, each with the file and line where it is there, if known.
    pub(super) fn places_at(
        &mut self,
        place: ModuleAddress,
    ) -> Vec<(Named, Option<(String, u32)>)> {
        let module = &self.spaces.modules.all[place.module];
        let of = |name, short| Named { name, short, module: module.name().to_owned() };
        let (mut functions, mut own) = (Vec::new(), None);
        // The last line is of the function itself.
        for line in self.symbols.lines(module, place) {
            let at = line.file.zip(line.line);
            match line.inlined {
                Some(_) if !self.shows_inlined => {}
                Some(name) => functions.push((of(format!("{name}{INLINED}"), name), at)),
                None => own = at,
            }
        }
        let (name, short) = names_at(place, &self.spaces, &mut self.symbols);
        functions.push((of(name, short), own));
        functions
    }
}
