//! The catalog of instruction forms, by name.

use super::form::Form;
use super::unsupported::{self, Listed};
use iced_x86::{Code, EncodingKind};
use isa::names;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock};
use tma::error::nearest;
use tma::{Error, Result};

/// Every form, with its name.
///
/// ```
/// use bench::microbench::Catalog;
/// use iced_x86::Code;
///
/// // Names are those of Pipedream; iced-x86's are known, too.
/// let catalog = Catalog::all();
/// let imul = catalog.find("IMUL_GPR64i64_GPR64i64")?;
/// assert_eq!(imul.code, Code::Imul_r64_rm64);
/// assert_eq!(catalog.find("Imul_r64_rm64:reg")?, imul);
/// assert!(catalog.matching("imul_gpr64i64_*").iter().any(|(_, form)| *form == imul));
///
/// let error = catalog.find("ADD_GPR64i64_IMM8").err().expect("no such form");
/// assert!(error.remedy().is_some_and(|hint| hint.contains("ADD_GPR64i64_IMMi8")));
/// # Ok::<(), tma::Error>(())
/// ```
pub struct Catalog {
    /// Forms with names, sorted by name.
    forms: Vec<(String, Form)>,
    /// By lower-case name, including iced-x86's.
    by_name: HashMap<String, Form>,
    names: HashMap<Form, String>,
}

impl Catalog {
    /// The forms of this build of the decoder; built once.
    pub fn all() -> &'static Self {
        static ALL: OnceLock<Catalog> = OnceLock::new();
        ALL.get_or_init(Self::build)
    }

    /// If several encodings share a name, the one that an assembler would choose gets it; the others have
    /// iced-x86's name.
    fn build() -> Self {
        let mut all: Vec<Form> = Code::values().flat_map(Form::all_of).collect();
        all.sort_by_key(|form| (rank(form.code), form.code as usize));
        let (mut by_name, mut names) = (HashMap::new(), HashMap::new());
        for form in all {
            let (name, encoding_name) = (form.name(), form.encoding_name());
            by_name.entry(encoding_name.to_lowercase()).or_insert(form);
            let lower = name.to_lowercase();
            let name = match by_name.get(&lower).is_some_and(|known| *known != form) {
                true => encoding_name,
                false => {
                    by_name.insert(lower, form);
                    name
                }
            };
            names.insert(form, name);
        }
        let mut forms: Vec<(String, Form)> = names.iter().map(|(f, n)| (n.clone(), *f)).collect();
        forms.sort();
        Self { forms, by_name, names }
    }

    /// Every form with its name, in the order of names.
    pub fn forms(&self) -> impl Iterator<Item = (&str, Form)> {
        self.forms.iter().map(|(name, form)| (name.as_str(), *form))
    }

    /// The name of a form; iced-x86's where it has no other.
    pub fn name(&self, form: Form) -> String {
        self.names.get(&form).cloned().unwrap_or_else(|| form.encoding_name())
    }

    /// The form of this name, in any case; either kind of name.
    ///
    /// # Errors
    /// There is none; the error suggests the nearest.
    pub fn find(&self, name: &str) -> Result<Form> {
        if let Some(form) = self.by_name.get(&name.to_lowercase()) {
            return Ok(*form);
        }
        let error = Error::usage(format!("`{name}` is not an instruction form"));
        Err(match self.nearest_to(name) {
            Some(near) => {
                let mnemonic = mnemonic(near);
                error.hint(format!(
                    "did you mean {near}? `tdtool microbench list {mnemonic}` lists all of them"
                ))
            }
            None => error
                .hint("`tdtool microbench list PATTERN` lists forms, for example `list 'IMUL*'`"),
        })
    }

    /// The form that a name, a mnemonic or assembly most likely means.
    pub fn nearest_to(&self, name: &str) -> Option<&str> {
        let known = self.forms.iter().map(|(name, _)| name.as_str());
        let wanted = mnemonic(name);
        let same: Vec<&str> = known.clone().filter(|n| mnemonic(n) == wanted).collect();
        let best = || same.iter().copied().min_by_key(|name| suggestion_rank(name));
        let alike = match name.contains('_') {
            true => nearest(name, same.iter().copied()).or_else(best),
            false => best(),
        };
        alike.or_else(|| nearest(name, known.filter(|n| n.len() < 2 * name.len() + 8)))
    }

    /// The name as by [`Catalog::name`], without building the catalog: the first of the forms with a name, which
    /// share a mnemonic, gets it.
    pub fn name_of(form: Form) -> String {
        type Codes = HashMap<iced_x86::Mnemonic, Vec<Code>>;
        static CODES: OnceLock<Codes> = OnceLock::new();
        static NAMES: Mutex<BTreeMap<Form, String>> = Mutex::new(BTreeMap::new());
        let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = names.get(&form) {
            return known.clone();
        }
        let codes = CODES.get_or_init(|| {
            let mut codes = Codes::new();
            for code in Code::values() {
                codes.entry(code.mnemonic()).or_default().push(code);
            }
            codes
        });
        let name = form.name();
        let alike = codes.get(&form.code.mnemonic()).into_iter().flatten().copied();
        let first = alike
            .flat_map(Form::all_of)
            .filter(|other| other.name() == name)
            .min_by_key(|other| (rank(other.code), other.code as usize));
        let name = if first == Some(form) { name } else { form.encoding_name() };
        names.insert(form, name.clone());
        name
    }

    /// The form of an instruction.
    ///
    /// # Errors
    /// Its operands are unsupported.
    pub fn form_of(instruction: &iced_x86::Instruction) -> Result<Form> {
        use super::form::{INDEXED, Memory, is_address};
        use isa::latency::Form as LatencyForm;
        let code = instruction.code();
        let is_memory = |i| instruction.op_kind(i) == iced_x86::OpKind::Memory;
        let memory = (0..instruction.op_count()).any(is_memory);
        let scale = if instruction.memory_index_scale() > 1 { 4 } else { 1 };
        let indexed = instruction.memory_index() != iced_x86::Register::None;
        let shape = match (is_address(code) && indexed, instruction.memory_displacement64() != 0) {
            (false, _) => Memory::Based,
            (true, false) => Memory::Indexed(scale),
            (true, true) => Memory::Full(scale),
        };
        let lock = instruction.has_lock_prefix();
        let memory = match memory {
            true if !is_address(code) && indexed && !lock => INDEXED,
            true => shape,
            false => Memory::None,
        };
        let mask = LatencyForm::of(instruction).mask;
        let form = Form { code, memory, lock, mask };
        match Form::all_of(code).contains(&form) {
            true => Ok(form),
            false => Err(Error::failed(format!("{} cannot be measured", names::name(code)))
                .because("its operands cannot be chosen freely")),
        }
    }

    /// Forms by mnemonic and operands (not those that go by iced-x86's name) that `pattern` matches.
    pub fn matching(&self, pattern: &str) -> Vec<(String, Form)> {
        let pattern = pattern.to_lowercase();
        self.forms()
            .filter(|(name, form)| {
                **name == form.name() && matches(pattern.as_bytes(), name.to_lowercase().as_bytes())
            })
            .map(|(name, form)| (name.to_owned(), form))
            .collect()
    }

    /// Forms that `pattern` (`*` and `?`, any case, either kind of name) matches; those that cannot
    /// be measured here too if `refused`, with the reason.
    pub fn list(&self, pattern: &str, refused: bool) -> Vec<Listed> {
        let pattern = pattern.to_lowercase();
        // A word without wildcards may be a mnemonic.
        let word = !pattern.is_empty() && !pattern.contains(['*', '?', '_']);
        let hit = |name: &str| {
            let name = name.to_lowercase();
            matches(pattern.as_bytes(), name.as_bytes())
                || (word && name.split('_').next() == Some(pattern.as_str()))
        };
        self.forms()
            .filter(|(name, form)| hit(name) || hit(&form.encoding_name()))
            .map(|(name, form)| Listed {
                form: name.to_owned(),
                code: form.encoding_name(),
                extensions: form.code.cpuid_features().iter().map(|f| names::name(*f)).collect(),
                reason: unavailable(form),
            })
            .filter(|listed| refused || listed.reason.is_none())
            .chain(if refused { super::unsupported::unsupported(hit) } else { Vec::new() })
            .collect()
    }
}

/// How a name, a mnemonic or assembly begins.
fn mnemonic(text: &str) -> String {
    let end = |c: char| c == '_' || c.is_whitespace();
    text.split(end).next().unwrap_or_default().to_uppercase()
}

/// Ranks forms of a mnemonic for suggestions: 64-bit registers, then other registers, then memory; two
/// operands before one or three.
fn suggestion_rank(name: &str) -> (usize, usize, usize) {
    let operands = name.split('_').skip(1);
    let others =
        operands.clone().filter(|o| !o.starts_with("GPR64") && !o.starts_with("VR")).count();
    (name.matches("MEM").count(), others, operands.count().abs_diff(2))
}

/// Why a form cannot be measured here, if it cannot.
pub fn unavailable(form: Form) -> Option<String> {
    form.refusal().or_else(|| unsupported::lacks(form.code))
}

/// Assemblers prefer the shorter encoding, and `nop` without a prefix.
fn rank(code: Code) -> u8 {
    match code {
        Code::Nopw | Code::Nopq => 3,
        _ => match code.op_code().encoding() {
            EncodingKind::Legacy => 0,
            EncodingKind::VEX | EncodingKind::XOP => 1,
            _ => 2,
        },
    }
}

/// Whether `name` matches `pattern`; backtracks only to the last star.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pipedreams_and_each_is_one_encoding() {
        // Names as in Pipedream's papers and its instruction lists.
        for (name, code) in [
            ("ADD_GPR64i64_IMMi8", Code::Add_rm64_imm8),
            ("ADD_GPR64i64_GPR64i64", Code::Add_rm64_r64),
            ("IMUL_GPR64i64_GPR64i64", Code::Imul_r64_rm64),
            ("MOV_GPR64i64_MEM64i64", Code::Mov_r64_rm64),
            ("MOV_MEM64i64_GPR64i64", Code::Mov_rm64_r64),
            ("VADDPD_VR256f64x4_VR256f64x4_VR256f64x4", Code::VEX_Vaddpd_ymm_ymm_ymmm256),
            ("SHL_GPR64i64_CL", Code::Shl_rm64_CL),
            ("VADDSD_VR128f64x1_VR128f64x1_MEM64f64", Code::VEX_Vaddsd_xmm_xmm_xmmm64),
        ] {
            assert_eq!(Catalog::all().find(name).unwrap().code, code, "{name}");
        }
    }

    #[test]
    fn every_form_is_found_by_both_of_its_names() {
        let all = Catalog::all();
        assert!(all.forms().count() > 4000);
        for (name, form) in all.forms() {
            assert_eq!(all.find(name).unwrap(), form, "{name}");
            assert_eq!(all.find(&form.encoding_name()).unwrap(), form, "{name}");
            assert_eq!(all.name(form), name);
        }
    }

    #[test]
    fn a_single_name_is_the_one_in_the_catalog() {
        for (name, form) in Catalog::all().forms().step_by(97) {
            assert_eq!(Catalog::name_of(form), name);
        }
    }

    #[test]
    fn measurable_forms_decode_to_themselves() {
        let all = Catalog::all();
        let listed = all.list("*", false);
        assert!(listed.len() > 500 || cfg!(not(target_arch = "x86_64")));
        for listed in listed {
            let form = all.find(&listed.form).unwrap();
            let bytes = form.encode(&form.sample().unwrap()).unwrap();
            let block = isa::code::Block::decode(&bytes).unwrap();
            assert_eq!(
                Catalog::form_of(&block.instructions[0].decoded).unwrap(),
                form,
                "{listed:?}"
            );
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let error = Catalog::all().find("ADD_GPR64i64_IMM8").err().unwrap();
        assert!(error.remedy().unwrap().contains("ADD_GPR64i64_IMMi8"), "{error:?}");
        let error = Catalog::all().find("VADDDP_VR256f64x4_VR256f64x4_VR256f64x4").err().unwrap();
        assert!(error.remedy().unwrap().contains("VADDPD_VR256"), "{error:?}");
        assert!(Catalog::all().find("").is_err());
        for text in ["imul", "imul r64, r64"] {
            let error = Catalog::all().find(text).err().unwrap();
            assert!(error.remedy().unwrap().contains("IMUL_GPR64i64_GPR64i64?"), "{error:?}");
        }
        let listed = Catalog::all().list("imul", true);
        assert!(
            listed.len() > 5 && listed.iter().all(|l| l.form.to_lowercase().starts_with("imul"))
        );
    }

    #[test]
    fn patterns_have_stars_and_question_marks() {
        assert!(matches(b"add_*_immi8", b"add_gpr64i64_immi8"));
        assert!(matches(b"*", b""));
        assert!(!matches(b"add", b"addx"));
        assert!(matches(b"a?d*", b"add_x"));
        assert!(matches(b"*a*b*c", b"aabbbcxc"));
    }
}
