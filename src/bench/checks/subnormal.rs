//! Checks whether a block computes with subnormal numbers, and measures what they would cost.
//!
//! Blocks are measured with FTZ and DAZ set, so that no subnormal slows them. Here they run again
//! with gradual underflow. MXCSR then shows whether an operand was subnormal (DE) or a result too small
//! (UE). UE stays clear if such a result is exact, so a second run unmasks both exceptions, which also
//! locates the first one. x87 has its own status word and ignores FTZ and DAZ.

use crate::initial::Failure;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption};
use crate::runner::{MXCSR_FAST, MXCSR_GRADUAL};
use crate::timer::Timer;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::Form;
use iced_x86::{Mnemonic, Register, RoundingControl};
use isa::code::{Block, Inst};
use tma::Result;

/// MXCSR with gradual underflow, the denormal-operand and underflow exceptions unmasked.
const TRAPPING: u32 = MXCSR_GRADUAL & !(1 << 8 | 1 << 11);
/// Flag of a subnormal operand, in MXCSR and in the x87 status word.
const DE: u32 = 1 << 1;
/// Flag of a result too small for a normal number.
const UE: u32 = 1 << 4;
/// Pairs of passes that measure the slowdown.
const PAIRS: usize = 3;

/// Result of the runs with gradual underflow.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seen {
    /// MXCSR at the end.
    mxcsr: u32,
    /// The x87 status word at the end.
    x87: u32,
    /// Copy and instruction that trapped first.
    first: Option<(usize, usize)>,
}

impl Seen {
    fn is_clean(&self) -> bool {
        (self.mxcsr | self.x87) & (DE | UE) == 0 && self.first.is_none()
    }
}

/// The floating-point units that a block uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Units {
    vector: bool,
    x87: bool,
}

/// Vector instructions on integers count too, to be safe.
fn units(block: &Block) -> Units {
    Units {
        vector: block.uses(Register::is_vector_register),
        x87: block.instructions.iter().any(is_x87),
    }
}

fn is_x87(inst: &Inst) -> bool {
    inst.text.starts_with('f') && !matches!(inst.decoded.mnemonic(), Mnemonic::Femms)
}

/// Why the flags are unreliable for this block.
fn hides_flags(block: &Block) -> Option<String> {
    let hides = |inst: &&Inst| {
        let decoded = &inst.decoded;
        let writes_state = matches!(
            decoded.mnemonic(),
            Mnemonic::Ldmxcsr
                | Mnemonic::Vldmxcsr
                | Mnemonic::Fninit
                | Mnemonic::Finit
                | Mnemonic::Fnclex
                | Mnemonic::Fclex
                | Mnemonic::Fldenv
                | Mnemonic::Frstor
                | Mnemonic::Fnsave
                | Mnemonic::Fsave
                | Mnemonic::Fnstenv
                | Mnemonic::Fstenv
        );
        writes_state
            || decoded.suppress_all_exceptions()
            || decoded.rounding_control() != RoundingControl::None
    };
    let inst = block.instructions.iter().find(hides)?;
    Some(format!("`{}` changes or suppresses the exception flags", inst.text))
}

impl Timer {
    /// Checks the assumption by runs of the unrolled `form`; measures the slowdown if `measured`.
    pub(crate) fn subnormals(
        &mut self,
        block: &Block,
        setup: &RunSetup,
        form: &Form,
        measured: bool,
    ) -> Result<Assumption> {
        if !self.options.assumptions {
            return Ok(Assumed::Subnormals.unchecked("not requested"));
        }
        let units = units(block);
        if !units.vector && !units.x87 {
            return Ok(Assumed::Subnormals.held("no floating-point instruction"));
        }
        if let Some(reason) = hides_flags(block) {
            return Ok(Assumed::Subnormals.unchecked(reason));
        }
        let (physical, pages) = (self.options.physical_pages, self.options.page_limit);
        self.runner.again(&setup.values, &setup.lines, &setup.pages, physical, pages)?;
        form.install(&mut self.runner)?;
        let seen = self.gradual(form);
        let slowdown = match &seen {
            Ok(Ok(seen)) if measured && units.vector && !seen.is_clean() => self.slowdown(form),
            _ => Ok(None),
        };
        self.runner.float_mode(self.runner.mxcsr)?;
        Ok(match seen? {
            Ok(seen) => judge(block, units, &seen, slowdown?, measured),
            Err(failure) => {
                let how = format!("a run without FTZ and DAZ fails: {}", failure.reason);
                Assumed::Subnormals.unchecked(how)
            }
        })
    }

    /// The two runs with gradual underflow.
    fn gradual(&mut self, form: &Form) -> Result<std::result::Result<Seen, Failure>> {
        self.runner.float_mode(MXCSR_GRADUAL)?;
        if let Some(failure) = form.rehearse(&mut self.runner, &self.options)? {
            return Ok(Err(failure));
        }
        let (mxcsr, x87) = self.runner.float_flags();
        self.runner.float_mode(TRAPPING)?;
        let trapped = form.rehearse(&mut self.runner, &self.options)?;
        let first = trapped.as_ref().and_then(|failure| failure.copy.zip(failure.instruction));
        Ok(match trapped {
            Some(failure) if first.is_none() => Err(failure),
            _ => Ok(Seen { mxcsr, x87, first }),
        })
    }

    /// Cycles with gradual underflow over cycles without, pass by pass: median, lowest, highest.
    fn slowdown(&mut self, form: &Form) -> Result<Option<(f64, f64, f64)>> {
        let mut ratios = Vec::new();
        for _ in 0..PAIRS {
            let mut cycles = [None; 2];
            for (mode, cycles) in [MXCSR_FAST, MXCSR_GRADUAL].into_iter().zip(&mut cycles) {
                self.runner.float_mode(mode)?;
                let mut timed = FormTiming::default();
                self.timed(form, 1, self.options.rounds, &mut timed)?;
                *cycles = timed.cycles();
            }
            if let [Some(fast), Some(slow)] = cycles
                && fast > 0.0
            {
                ratios.push(slow / fast);
            }
        }
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios.first().copied(), ratios.last().copied());
        Ok(low.zip(high).map(|(low, high)| (crate::stats::median(&ratios), low, high)))
    }
}

fn judge(
    block: &Block,
    units: Units,
    seen: &Seen,
    slowdown: Option<(f64, f64, f64)>,
    measured: bool,
) -> Assumption {
    if seen.is_clean() {
        let flags = match (units.vector, units.x87) {
            (true, true) => {
                "MXCSR and the x87 status word show none, and no SSE or AVX instruction traps"
            }
            (false, true) => "the x87 status word shows none",
            _ => "MXCSR shows none, and none traps",
        };
        return Assumed::Subnormals.held(format!("run without FTZ and DAZ: {flags}"));
    }
    let names = |flags: u32| {
        let both = [(DE, "subnormal operands (DE)"), (UE, "underflow (UE)")];
        let set: Vec<_> =
            both.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, n)| *n).collect();
        if set.is_empty() { "exact subnormal results".to_owned() } else { set.join(" and ") }
    };
    let mut how = String::new();
    if seen.mxcsr & (DE | UE) != 0 || seen.first.is_some() {
        how += &format!("run without FTZ and DAZ: {}", names(seen.mxcsr));
        if let Some((copy, instruction)) = seen.first {
            let text = &block.instructions[instruction].text;
            how += &format!(", first at instruction {instruction} `{text}` of copy {copy}");
        }
        how += match (slowdown, measured) {
            (Some((ratio, low, high)), _) => {
                format!("; without FTZ and DAZ it takes {ratio:.2} times as long ({low:.2} to {high:.2})")
            }
            (None, true) => "; the slowdown could not be measured because of contention".to_owned(),
            (None, false) => "; the slowdown was not measured".to_owned(),
        }
        .as_str();
    }
    if seen.x87 & (DE | UE) != 0 {
        let separator = if how.is_empty() { "" } else { "; " };
        how += &format!(
            "{separator}x87: {}, which FTZ and DAZ do not affect: their cost is included in the \
             cycles",
            names(seen.x87)
        );
    }
    Assumed::Subnormals.violated(how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Outcome;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn integer_blocks_have_no_floating_point() {
        let none = Units { vector: false, x87: false };
        assert_eq!(units(&block("4801d8 480fafc3 0f77")), none); // add, imul, emms
        assert!(units(&block("0f59c1")).vector); // mulps xmm0,xmm1
        assert!(units(&block("d8c9")).x87); // fmul st(0),st(1)
    }

    #[test]
    fn a_block_that_writes_or_suppresses_the_flags_is_unchecked() {
        // ldmxcsr [rax]; fninit; vaddps zmm0,zmm0,zmm1,{rn-sae}
        for hex in ["0fae10", "dbe3", "62f17c1858c1"] {
            assert!(hides_flags(&block(hex)).is_some(), "{hex}");
        }
        assert_eq!(hides_flags(&block("0f59c1")), None);
    }

    #[test]
    fn the_flags_the_location_and_the_slowdown_are_reported() {
        let multiply = block("4801d8 0f59c1");
        let seen = Seen { mxcsr: MXCSR_GRADUAL | UE | DE, x87: 0, first: Some((41, 1)) };
        let both = Units { vector: true, x87: false };
        let found = judge(&multiply, both, &seen, Some((3.1, 2.9, 3.3)), true);
        assert_eq!(found.outcome, Outcome::Violated);
        for word in ["(DE)", "(UE)", "instruction 1 `mulps xmm0,xmm1`", "copy 41", "3.10", "2.90"] {
            assert!(found.how.contains(word), "{word}: {}", found.how);
        }
        // Precision alone is no sign of a subnormal.
        let inexact = Seen { mxcsr: MXCSR_GRADUAL | 1 << 5, ..Seen::default() };
        assert_eq!(judge(&multiply, both, &inexact, None, true).outcome, Outcome::Held);
        // x87 is slow whatever FTZ and DAZ say.
        let x87 = Seen { x87: UE, ..Seen::default() };
        let found = judge(&multiply, Units { vector: false, x87: true }, &x87, None, true);
        assert!(found.how.contains("FTZ and DAZ do not affect"), "{}", found.how);
    }
}
