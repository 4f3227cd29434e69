//! A multiset of instruction forms, given as `FORM*COUNT, …` or taken from a block.

use super::catalog::{Catalog, unavailable};
use super::form::{Form, immediates};
use isa::code::Block;
use isa::effects::tied_operands;
use tma::{Error, Result};

/// Most instructions in a multiset: more do not fit the unrolled code.
pub const MAX_INSTRUCTIONS: usize = 480;

/// Forms and their counts, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Multiset {
    /// Each form once.
    pub forms: Vec<(Form, usize)>,
    /// Immediates of a block's instructions, for each form and each of its instances. Empty where forms
    /// were given by name.
    pub immediates: Vec<Vec<Vec<i64>>>,
    /// For each form and instance, the two operands that stay one register, if any: zeroing idioms, moves of a
    /// register to itself.
    pub tied: Vec<Vec<Option<(usize, usize)>>>,
}

impl Multiset {
    /// One form, once.
    pub fn one(form: Form) -> Self {
        Self { forms: vec![(form, 1)], ..Self::default() }
    }

    /// Reads `ADD_GPR64i64_IMMi8*2, IMUL_GPR64i64_GPR64i64`.
    ///
    /// # Errors
    /// An unknown form, one that cannot be measured here, no count, or too many instructions.
    pub fn parse(text: &str) -> Result<Self> {
        let mut built = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, count) = match part.split_once('*') {
                Some((name, count)) => (name.trim(), self::count(name.trim(), count.trim())?),
                None => (part, 1),
            };
            if name.contains(char::is_whitespace) {
                return Err(no_names(text, name));
            }
            let form = Catalog::all().find(name)?;
            if let Some(reason) = unavailable(form) {
                return Err(Error::not_possible(format!("`{name}` cannot be measured here"))
                    .because(reason)
                    .hint("`tdtool microbench list --refused PATTERN` lists the reasons"));
            }
            built.add(form, count);
        }
        built.checked()
    }

    /// The forms of a block with their immediates, without its final jump.
    ///
    /// # Errors
    /// Nothing is left, or one of its instructions has no form.
    pub fn of(block: &Block) -> Result<Self> {
        let mut built = Self::default();
        let jump = block.final_branch().map(|inst| inst.offset);
        for inst in block.instructions.iter().filter(|inst| Some(inst.offset) != jump) {
            let failed = |error: Error| {
                let place = format!("`{}` at {:#x} has no form", inst.text, inst.offset);
                Error::failed(place).because(error).hint("leave it out, or name the forms")
            };
            let form = Catalog::form_of(&inst.decoded).map_err(failed)?;
            if let Some(reason) = unavailable(form) {
                return Err(failed(Error::failed(reason)));
            }
            built.add(form, 1);
            built.add_operands(form, immediates(&inst.decoded), tied_operands(&inst.decoded));
        }
        built.checked()
    }

    /// Adds the operands of another instance of `form`, which is already in the multiset.
    fn add_operands(&mut self, form: Form, own: Vec<i64>, tied: Option<(usize, usize)>) {
        self.immediates.resize(self.forms.len(), Vec::new());
        self.tied.resize(self.forms.len(), Vec::new());
        if let Some(at) = self.forms.iter().position(|(known, _)| *known == form) {
            self.immediates[at].push(own);
            self.tied[at].push(tied);
        }
    }

    /// The operands of instance number `instance` of `form` that are one register.
    pub fn tied(&self, form: Form, instance: usize) -> Option<(usize, usize)> {
        let at = self.forms.iter().position(|(known, _)| *known == form)?;
        let all = self.tied.get(at).filter(|all| !all.is_empty())?;
        all.get(instance % all.len()).copied().flatten()
    }

    /// Immediates for instance number `instance` of `form`, cycling through the block's; none where
    /// forms were given by name.
    pub fn immediates(&self, form: Form, instance: usize) -> &[i64] {
        let at = self.forms.iter().position(|(known, _)| *known == form);
        let all = at.and_then(|at| self.immediates.get(at)).filter(|all| !all.is_empty());
        all.and_then(|all| all.get(instance % all.len())).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, form: Form, count: usize) {
        match self.forms.iter_mut().find(|(known, _)| *known == form) {
            Some((_, there)) => *there = there.saturating_add(count),
            None => self.forms.push((form, count)),
        }
    }

    fn checked(self) -> Result<Self> {
        let example =
            "for example `tdtool microbench 'ADD_GPR64i64_IMMi8*2, IMUL_GPR64i64_GPR64i64'`";
        match self.len() {
            0 => Err(Error::usage("no instruction form given").hint(example)),
            n if n > MAX_INSTRUCTIONS => {
                Err(Error::usage(format!("{n} instructions are too many"))
                    .because(format!("a microbenchmark holds at most {MAX_INSTRUCTIONS}")))
            }
            _ => Ok(self),
        }
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.forms.iter().fold(0, |sum: usize, (_, count)| sum.saturating_add(*count))
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Its instructions with each form spread evenly: the next one is the form that lags its share most.
    pub fn interleaved(&self) -> Vec<Form> {
        let total = self.len();
        let mut placed = vec![0; self.forms.len()];
        let mut all = Vec::with_capacity(total);
        for step in 1..=total {
            let lag = |i: &usize| {
                let owed = (self.forms[*i].1 * step) as i64 - (placed[*i] * total) as i64;
                (owed, std::cmp::Reverse(*i))
            };
            let Some(next) = (0..placed.len()).max_by_key(lag) else { break };
            placed[next] += 1;
            all.push(self.forms[next].0);
        }
        all
    }
}

/// Names have no spaces: this is assembly, say, whose commas divided it.
fn no_names(text: &str, part: &str) -> Error {
    let like = Catalog::all().nearest_to(part).unwrap_or("IMUL_GPR64i64_GPR64i64");
    let mnemonic = like.split('_').next().unwrap_or_default();
    Error::usage(format!("`{text}` is not a list of form names"))
        .because("names have no spaces, and commas divide the list")
        .hint(format!(
            "for example `tdtool microbench '{like}'`; `tdtool microbench list {mnemonic}` lists more; for assembly: `tdtool block --asm 'imul rax, rbx'`"
        ))
}

fn count(name: &str, text: &str) -> Result<usize> {
    match text.parse::<usize>() {
        Ok(count) if count > 0 => Ok(count),
        _ => {
            Err(Error::usage(format!("`{text}` in `{name}*{text}` is not a count")).hint(format!(
                "FORM*COUNT with a whole number from 1, for example `tdtool microbench '{name}*2'`"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_spread_evenly_and_all_are_there() {
        let set = Multiset::parse("ADD_GPR64i64_GPR64i64*3, IMUL_GPR64i64_GPR64i64").unwrap();
        let all = set.interleaved();
        assert_eq!(all.len(), 4);
        let imul = |f: &&Form| **f == set.forms[1].0;
        assert_eq!(all.iter().filter(imul).count(), 1);
        // Six of one and three of the other: never two of the rarer one side by side.
        let forms = vec![(set.forms[0].0, 6), (set.forms[1].0, 3)];
        let set = Multiset { forms, ..Multiset::default() };
        let all = set.interleaved();
        assert!(all.windows(2).all(|w| !(imul(&&w[0]) && imul(&&w[1]))), "{all:?}");
    }

    #[test]
    fn a_block_keeps_its_immediates_in_order() {
        // rol rax,13; add rbx,5; rol rcx,7
        let bytes = isa::code::parse_hex("48c1c00d 4883c305 48c1c107").unwrap();
        let set = Multiset::of(&Block::decode(&bytes).unwrap()).unwrap();
        let rol = set.forms[0].0;
        assert_eq!(set.immediates(rol, 0), [13]);
        assert_eq!(set.immediates(rol, 3), [7]);
        assert_eq!(set.immediates(set.forms[1].0, 1), [5]);
        assert!(Multiset::one(rol).immediates(rol, 0).is_empty());
        // mov rax,0x123456789abcdef0: its length is the front end's
        let bytes = isa::code::parse_hex("48b8f0debc9a78563412").unwrap();
        let set = Multiset::of(&Block::decode(&bytes).unwrap()).unwrap();
        assert_eq!(set.immediates(set.forms[0].0, 0), [1]);
    }

    #[test]
    fn an_invalid_multiset_is_an_error() {
        let assembly = Multiset::parse("imul r64, r64").unwrap_err();
        assert!(assembly.to_string().contains("imul r64, r64"), "{assembly}");
        let remedy = assembly.remedy().expect("an example");
        let example = remedy.split('\'').nth(1).expect("a quoted form");
        assert_eq!(Multiset::parse(example).unwrap().len(), 1, "{remedy}");
        for text in [
            "",
            ",",
            "ADD_GPR64i64_GPR64i64*0",
            "ADD_GPR64i64_GPR64i64*x",
            "BOGUS",
            "ADD_GPR64i64_GPR64i64*481",
            "ADD_GPR64i64_GPR64i64*18446744073709551615, MULX",
        ] {
            assert!(Multiset::parse(text).is_err(), "{text}");
        }
    }
}
