//! The list of what is corrected, as data.

/// How sure a correction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Blocks of tests/figures/corrections.py show it on Golden Cove.
    Measured,
    /// By the instruction's definition; there is nothing to measure.
    Defined,
    /// Its source says so; no processor at hand shows it.
    Untested,
}

/// One correction of iced-x86.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction {
    /// What it concerns.
    pub name: &'static str,
    /// What iced-x86 says.
    pub given: &'static str,
    /// What is said here.
    pub said: &'static str,
    /// Where that holds.
    pub cores: &'static str,
    /// Who says so.
    pub source: &'static str,
    /// How sure it is.
    pub evidence: Evidence,
}

const SDM: &str = "Intel SDM vol. 2";
const MEASURED: &str = "measured on Emerald Rapids";
const UOPS: &str = "uops.info";
const ZEN: &str = "AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture";
const FOG: &str = "Agner Fog, microarchitecture";

const fn row(
    name: &'static str,
    given: &'static str,
    said: &'static str,
    cores: &'static str,
    source: &'static str,
    evidence: Evidence,
) -> Correction {
    Correction { name, given, said, cores, source, evidence }
}

use Evidence::{Defined, Measured, Untested};

/// All of them.
#[rustfmt::skip]
pub const CORRECTIONS: &[Correction] = &[
    row("cmov of 16 and 64 bits", "destination perhaps written", "destination read as an operand", "all", MEASURED, Measured),
    row("bsf, bsr", "destination perhaps written", "destination kept and waited for", "all", MEASURED, Measured),
    row("pcmpeq* of one register", "reads it", "does not", "all known", MEASURED, Measured),
    row("pcmpgt* of one register", "reads it", "does not", "all known", MEASURED, Measured),
    row("psubs*, psubus* of one register", "reads it", "does not", "Haswell and later, Zen", MEASURED, Measured),
    row("pcmpeq*, pcmpgt* of one register into a mask register", "reads it", "does not", "all known", MEASURED, Measured),
    row("idioms under a mask", "xor and sub do not read it", "reads it", "Golden Cove", MEASURED, Measured),
    row("pandn, andnps, andnpd of one register", "reads it", "does not", "Zen", ZEN, Untested),
    row("pandn, andnps, andnpd of one register", "reads it", "reads it", "Intel", MEASURED, Measured),
    row("vpternlog with 0xff", "reads all three", "reads all three", "Golden Cove", MEASURED, Measured),
    row("kxor, kxnor of one register", "reads it", "does not", "Golden Cove", MEASURED, Measured),
    row("kandn of one register", "reads it", "reads it", "Golden Cove", MEASURED, Measured),
    row("sbb of one register", "reads it and CF", "CF alone", "Zen", ZEN, Untested),
    row("sbb of one register", "reads it and CF", "both", "Intel", MEASURED, Measured),
    row("cmp of one register", "reads it", "does not", "Zen", ZEN, Untested),
    row("xor, sub of one register, 8 or 16 bits", "writes it only", "reads it", "all", MEASURED, Measured),
    row("writes of al, ax", "writes that part", "the rest of rax is kept and waited for", "all", MEASURED, Measured),
    row("writes of ah, bh, ch, dh", "writes that part", "the rest is kept and waited for; 3 cycles on Golden Cove", "all", MEASURED, Measured),
    row("shifts and rotates by cl", "write flags", "flags are kept for a count of 0 and waited for", "Intel", MEASURED, Measured),
    row("shifts and rotates by cl", "write flags", "flags are kept for a count of 0, not waited for", "Zen", "measured on a Zen 3", Untested),
    row("flags", "each by itself", "groups CF, OF, SF-ZF-AF-PF; inc and dec leave CF, adcx OF", "all", MEASURED, Measured),
    row("bt, bts, btr, btc", "SF, AF, PF, OF undefined", "ZF stays, so the group is not written", "all", SDM, Defined),
    row("cmpxchg8b and others that set ZF alone", "ZF written", "the rest of its group is kept", "all", SDM, Defined),
    row("x87 and MMX", "st and mm registers", "one place for all; counted as not modelled", "all", SDM, Defined),
    row("vzeroupper", "reads and writes all vectors", "none", "all known", MEASURED, Measured),
    row("bt, bts, btr, btc of memory by a register", "base and index", "the register is part of the address; size unknown", "all", SDM, Defined),
    row("repeated string instructions", "size unknown", "size unknown, conditional, counted as not modelled", "all", SDM, Defined),
    row("gathers and scatters", "one access", "one for each lane, conditional", "all", SDM, Defined),
    row("vmaskmov, maskmovdqu, masked loads and stores", "unconditional", "conditional", "all", SDM, Defined),
    row("merge-masking", "destination read", "kept and waited for", "AVX-512", MEASURED, Measured),
    row("cvtsi2sd, sqrtsd, cvtss2sd, movsd, pinsrd", "destination read", "kept and waited for: a true dependency", "all", MEASURED, Measured),
    row("popcnt", "destination not read", "waited for", "Haswell to Cascade Lake", UOPS, Untested),
    row("lzcnt, tzcnt", "destination not read", "waited for", "Haswell and Broadwell", UOPS, Untested),
    row("popcnt, lzcnt, tzcnt", "destination not read", "not waited for", "Golden Cove", MEASURED, Measured),
    row("vpermd, vpermq, vpmullq", "destination not read", "not waited for, though LLVM has it so", "Golden Cove", MEASURED, Measured),
    row("mov of registers, 32 or 64 bits", "", "may be done by renaming", "all known but Ice Lake", MEASURED, Measured),
    row("mov of registers, 32 or 64 bits", "", "is executed (switched off by microcode)", "Ice Lake", UOPS, Untested),
    row("movzx from a low byte", "", "may be done by renaming", "Intel but Ice Lake", MEASURED, Measured),
    row("vector moves of registers", "", "may be done by renaming", "all known", MEASURED, Measured),
    row("add, sub of 8 bits, inc, dec, lea of a base; 64 bits", "", "may be done by renaming", "Golden Cove", MEASURED, Measured),
    row("push, pop, call, ret", "rsp read and written", "rsp moves in no cycles", "all", MEASURED, Measured),
    row("legacy SSE writes", "128 bits written", "the rest is kept, not waited for while it is zero", "all known", FOG, Untested),
    row("xchg", "both read and written", "each one's value goes to the other alone", "all", SDM, Defined),
    row("xadd", "both read and written", "the second operand becomes the old first one", "all", SDM, Defined),
    row("pop rsp", "rsp read and written", "rsp is what is loaded", "all", SDM, Defined),
    row("lods, stos, movs, scas, cmps", "rsi, rdi and DF read", "pointers move by a constant and DF", "all", SDM, Defined),
    row("ldmxcsr, stmxcsr", "no register", "MXCSR", "all", SDM, Defined),
];
