//! Objects of sampled accesses: static variables and their members, mappings, the stack.

use super::event::{Found, Site};
use super::fields::{Field, Operand};
use iced_x86::{Decoder, DecoderOptions};
use profile::address_space::{AddressSpaces, DataPlace, ModuleAddress};
use profile::module::ModuleKind;
use profile::symbols::Symbols;
use std::collections::HashMap;

/// Addresses of static data whose objects are cached; then the cache is cleared.
const MOST_KNOWN: usize = 1 << 20;
/// Bytes of the longest instruction.
const LONGEST_INSTRUCTION: u64 = 15;

/// The object of an access.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Object {
    /// A static variable, or a section.
    Data { module: usize, name: String, start: u64, size: u64, named: bool },
    /// Another mapping.
    Mapping(usize),
    /// A frame of the stack, by the instruction.
    Stack,
    /// Nothing that is known.
    Unknown,
}

/// Numbers of values.
#[derive(Debug)]
pub(super) struct Numbers<T> {
    pub all: Vec<T>,
    of: HashMap<T, usize>,
}

impl<T: Clone + Eq + std::hash::Hash> Numbers<T> {
    /// None.
    pub fn new() -> Self {
        Self { all: Vec::new(), of: HashMap::new() }
    }

    /// The number of a value, from 0 in order of appearance.
    pub fn number(&mut self, value: &T) -> usize {
        if let Some(number) = self.of.get(value) {
            return *number;
        }
        self.all.push(value.clone());
        self.of.insert(value.clone(), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// The objects of a recording.
#[derive(Debug)]
pub(super) struct Objects {
    /// By number.
    pub objects: Numbers<Object>,
    /// Members of static variables, by number; `None`: not known.
    pub members: Numbers<Option<Field>>,
    statics: HashMap<ModuleAddress, (usize, usize)>,
    stack: HashMap<Site, bool>,
}

impl Objects {
    /// No objects yet.
    pub fn new() -> Self {
        let (statics, stack) = (HashMap::new(), HashMap::new());
        Self { objects: Numbers::new(), members: Numbers::new(), statics, stack }
    }

    /// The numbers of the object and the member that a sample accesses.
    pub fn of(
        &mut self,
        found: &Found,
        spaces: &mut AddressSpaces,
        symbols: &mut Symbols,
    ) -> (usize, usize) {
        let pid = found.sample.pid.unwrap_or(u32::MAX);
        let object = match found.address.and_then(|address| spaces.data(pid, address)) {
            Some(DataPlace::Static(place)) => return self.of_static(place, spaces, symbols),
            Some(DataPlace::Mapping(module)) if !is_anonymous(module, spaces) => {
                Object::Mapping(module)
            }
            _ if self.is_stack(found.site, spaces, symbols) => Object::Stack,
            Some(DataPlace::Mapping(module)) => Object::Mapping(module),
            None => Object::Unknown,
        };
        (self.objects.number(&object), self.members.number(&None))
    }

    fn of_static(
        &mut self,
        place: ModuleAddress,
        spaces: &AddressSpaces,
        symbols: &mut Symbols,
    ) -> (usize, usize) {
        if let Some(known) = self.statics.get(&place) {
            return *known;
        }
        let (object, member) = static_data(place, spaces, symbols);
        let numbers = (self.objects.number(&object), self.members.number(&member));
        if self.statics.len() >= MOST_KNOWN {
            self.statics.clear();
        }
        self.statics.insert(place, numbers);
        numbers
    }

    /// Whether the instruction accesses the frame of its function.
    fn is_stack(&mut self, site: Site, spaces: &AddressSpaces, symbols: &mut Symbols) -> bool {
        if let Some(known) = self.stack.get(&site) {
            return *known;
        }
        let found = site.place().is_some_and(|place| {
            let Some(module) = spaces.modules.all.get(place.module) else { return false };
            let code = (1..=LONGEST_INSTRUCTION).rev().find_map(|length| {
                symbols.code(module, place.address, place.address.checked_add(length)?).ok()
            });
            let bytes = code.unwrap_or_default();
            let mut decoder = Decoder::with_ip(64, &bytes, place.address, DecoderOptions::NONE);
            Operand::of(&decoder.decode()).is_some_and(|operand| operand.is_stack())
        });
        self.stack.insert(site, found);
        found
    }
}

fn is_anonymous(module: usize, spaces: &AddressSpaces) -> bool {
    let module = spaces.modules.all.get(module);
    module.is_some_and(|module| module.kind == ModuleKind::Anonymous)
}

fn static_data(
    place: ModuleAddress,
    spaces: &AddressSpaces,
    symbols: &mut Symbols,
) -> (Object, Option<Field>) {
    let module = spaces.modules.all.get(place.module);
    let known = module.and_then(|module| Some((module, symbols.object(module, place)?.clone())));
    let Some((module, known)) = known else { return (Object::Mapping(place.module), None) };
    let member = symbols
        .static_type(module, known.start)
        .and_then(|ty| symbols.member(module, ty, place.address.wrapping_sub(known.start), false));
    let member = member.ok().filter(|_| known.named).map(|member| Field {
        text: format!("{}{}", known.name, member.path),
        of: member.of,
        name: member.name,
        offset: member.offset,
    });
    let object = Object::Data {
        module: place.module,
        name: known.name,
        start: known.start,
        size: known.size,
        named: known.named,
    };
    (object, member)
}
