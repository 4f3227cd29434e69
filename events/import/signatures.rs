//! What each core shows of itself in CPUID: the `[signature]` of a table.
//!
//! Features: the lists of GCC (`PTA_*` in config/i386/i386.h) and of QEMU's named models
//! (target/i386/cpu.c), and what InstLatx64's dumps show beyond; caches, leaves and native models:
//! InstLatx64's dumps, Intel's optimization manual and the kernel's asm/cpu.h (`intel_native_id`).
//! A core has `has`, may have `may` (by product, stepping or firmware), and never the rest.

use tma::Cache;
use tma::cpuid::Feature;
use tma::tables::Signature;

const SOURCE: [&str; 3] = [
    "GCC config/i386/i386.h, QEMU target/i386/cpu.c: features",
    "InstLatx64, CPUID dumps: caches, highest leaf, further features",
    "Intel SDM vol. 2 and AMD APM vol. 3, CPUID: bits",
];

type Names = &'static [&'static str];
type Shape = (usize, usize);

/// A core's features as a step from an earlier core's, and its caches.
#[derive(Clone, Copy)]
struct Core {
    from: Option<&'static Core>,
    has: Names,
    may: Names,
    /// Of what the earlier core had or might have.
    not: Names,
    l1_data: &'static [Shape],
    l1_code: &'static [Shape],
    l2: &'static [Shape],
    highest_leaf: Option<u32>,
    kind: Option<u32>,
    native: Option<u32>,
}

const CORE: Option<u32> = Some(0x40);
const ATOM: Option<u32> = Some(0x20);
/// What only servers tell.
const SERVER: Names = &["dca", "cqm"];
const AVX: Names = &["fma", "avx", "f16c", "bmi1", "avx2", "bmi2"];
const AVX512: Names = &["avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"];
/// Of all Alder Lakes before it was fused off.
const AVX512_EARLY: Names = &[
    "avx512f",
    "avx512dq",
    "avx512cd",
    "avx512bw",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "avx512_vbmi2",
    "avx512_vnni",
    "avx512_bitalg",
    "avx512_vpopcntdq",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vp2intersect",
];

const NOTHING: Core = Core {
    from: None,
    has: &[],
    may: &[],
    not: &[],
    l1_data: &[(8, 64)],
    l1_code: &[(8, 64)],
    l2: &[],
    highest_leaf: None,
    kind: None,
    native: None,
};

// Pentiums and Celerons of clients have no AVX, hence neither BMI nor ADX.
static HSW: Core = Core {
    has: &["movbe", "rdrand", "erms", "invpcid", "lzcnt"],
    may: &["fma", "avx", "f16c", "bmi1", "avx2", "bmi2", "hle", "rtm"],
    l2: &[(8, 512)],
    highest_leaf: Some(0xd),
    ..NOTHING
};
static HASWELL_SERVER: Core = Core { from: Some(&HSW), has: AVX, highest_leaf: Some(0xf), ..HSW };
static HSX: Core = Core { from: Some(&HASWELL_SERVER), has: SERVER, may: &[], ..HASWELL_SERVER };
static BDW: Core = Core {
    from: Some(&HSW),
    has: &["rdseed", "smap"],
    may: &["adx", "intel_pt"],
    highest_leaf: Some(0x14),
    ..HSW
};
static BDX: Core = Core {
    from: Some(&HSX),
    has: &["rdseed", "smap", "adx", "rdt_a"],
    may: &["intel_pt"],
    highest_leaf: Some(0x14),
    ..HSX
};
static SKL: Core = Core {
    from: Some(&BDW),
    has: &["clflushopt"],
    may: &["mpx", "pku"],
    l2: &[(4, 1024)],
    highest_leaf: Some(0x16),
    ..BDW
};
static AVX512_SKYLAKE: Core =
    Core { from: Some(&SKL), has: AVX512, may: &["dca", "cqm", "rdt_a"], l2: &[(16, 1024)], ..SKL };
static SKX: Core =
    Core { from: Some(&AVX512_SKYLAKE), has: &["clwb", "adx"], may: &[], ..AVX512_SKYLAKE };
static CLX: Core = Core { from: Some(&SKX), has: &["avx512_vnni"], may: &["avx512_bf16"], ..SKX };
static ICL: Core = Core {
    from: Some(&AVX512_SKYLAKE),
    has: &[
        "fma",
        "avx",
        "f16c",
        "bmi1",
        "avx2",
        "bmi2",
        "adx",
        "avx512ifma",
        "avx512vbmi",
        "avx512_vbmi2",
        "avx512_vnni",
        "avx512_bitalg",
        "avx512_vpopcntdq",
        "sha_ni",
        "gfni",
        "vaes",
        "vpclmulqdq",
        "rdpid",
        "fsrm",
        "pku",
    ],
    may: &[],
    not: &["mpx", "dca", "cqm", "rdt_a"],
    l1_data: &[(12, 64)],
    l2: &[(8, 1024)],
    highest_leaf: Some(0x1b),
    ..SKL
};
static RKL: Core = Core { from: Some(&ICL), has: &["mpx"], may: &[], not: &[], ..ICL };
static TGL: Core = Core {
    from: Some(&ICL),
    has: &["clwb", "movdiri", "movdir64b", "avx512_vp2intersect", "shstk", "ibt"],
    may: &["key_locker", "rdt_a"],
    not: &[],
    l2: &[(20, 1024)],
    ..ICL
};
static ICX: Core = Core {
    from: Some(&ICL),
    has: &["clwb", "la57", "cqm", "rdt_a"],
    may: &["dca", "pconfig"],
    not: &[],
    l2: &[(20, 1024)],
    ..ICL
};
static SPR: Core = Core {
    from: Some(&ICX),
    has: &[
        "avx512_bf16",
        "avx512_fp16",
        "avx_vnni",
        "amx_tile",
        "amx_bf16",
        "amx_int8",
        "waitpkg",
        "cldemote",
        "movdiri",
        "movdir64b",
        "serialize",
        "tsxldtrk",
        "shstk",
        "ibt",
        "enqcmd",
        "uintr",
        "arch_lbr",
    ],
    may: &["hreset"],
    l2: &[(16, 2048)],
    highest_leaf: Some(0x20),
    kind: CORE,
    ..ICX
};
static EMR: Core = Core { from: Some(&SPR), has: &["cet_sss"], may: &[], ..SPR };
static GNR: Core = Core {
    from: Some(&EMR),
    has: &["amx_fp16", "prefetchi", "avx10"],
    may: &["amx_complex"],
    l1_code: &[(16, 64)],
    highest_leaf: Some(0x24),
    ..EMR
};

/// What the P and E cores of Alder Lake have in common.
static ALDER_LAKE: Core = Core {
    has: &[
        "movbe",
        "rdrand",
        "erms",
        "invpcid",
        "lzcnt",
        "fma",
        "avx",
        "f16c",
        "bmi1",
        "avx2",
        "bmi2",
        "rdseed",
        "smap",
        "adx",
        "clflushopt",
        "clwb",
        "sha_ni",
        "gfni",
        "vaes",
        "vpclmulqdq",
        "rdpid",
        "fsrm",
        "pku",
        "waitpkg",
        "movdiri",
        "movdir64b",
        "serialize",
        "avx_vnni",
        "shstk",
        "ibt",
        "arch_lbr",
    ],
    may: &["intel_pt", "hreset", "key_locker", "pconfig", "rdt_a", "cqm", "la57"],
    highest_leaf: Some(0x20),
    ..NOTHING
};
static ADL: Core = Core {
    from: Some(&ALDER_LAKE),
    has: &[],
    may: AVX512_EARLY,
    l1_data: &[(12, 64)],
    l2: &[(10, 2048), (16, 2048)],
    kind: CORE,
    native: Some(1),
    ..ALDER_LAKE
};
static ADL_E: Core = Core {
    from: Some(&ALDER_LAKE),
    has: &[],
    may: &[],
    l1_code: &[(8, 128)],
    l2: &[(16, 2048), (16, 4096)],
    kind: ATOM,
    native: Some(1),
    ..ALDER_LAKE
};
/// Arrow Lake-U is a Meteor Lake with the instructions of Arrow Lake.
static METEOR_LAKE: Core = Core {
    from: Some(&ALDER_LAKE),
    has: &[],
    may: &["cet_sss", "uintr", "cmpccxadd", "avx_ifma", "avx_vnni_int8", "avx_ne_convert"],
    highest_leaf: Some(0x23),
    ..ALDER_LAKE
};
static MTL: Core = Core {
    from: Some(&METEOR_LAKE),
    may: &[],
    l1_data: &[(12, 64)],
    l1_code: &[(16, 64)],
    l2: &[(16, 2048)],
    kind: CORE,
    native: Some(2),
    ..METEOR_LAKE
};
static MTL_E: Core = Core {
    from: Some(&METEOR_LAKE),
    may: &[],
    l1_code: &[(8, 128)],
    l2: &[(16, 2048)],
    kind: ATOM,
    native: Some(2),
    ..METEOR_LAKE
};
/// Arrow Lake-H has no SHA-512 and no 16-bit VNNI, since its third kind of core has none.
static ARROW_LAKE: Core = Core {
    from: Some(&ALDER_LAKE),
    has: &["cet_sss", "uintr", "cmpccxadd", "avx_ifma", "avx_vnni_int8", "avx_ne_convert"],
    may: &["sha512", "sm3", "sm4", "avx_vnni_int16"],
    not: &["key_locker"],
    highest_leaf: Some(0x23),
    ..ALDER_LAKE
};
static ARL: Core = Core {
    from: Some(&ARROW_LAKE),
    has: &[],
    may: &[],
    not: &[],
    l1_data: &[(12, 64)],
    l1_code: &[(16, 64)],
    l2: &[(12, 4096)],
    kind: CORE,
    native: Some(3),
    ..ARROW_LAKE
};
static ARL_E: Core = Core {
    from: Some(&ARROW_LAKE),
    has: &[],
    may: &[],
    not: &[],
    l1_code: &[(8, 128)],
    l2: &[(16, 4096)],
    kind: ATOM,
    native: Some(3),
    ..ARROW_LAKE
};
const LUNAR: Names = &["sha512", "sm3", "sm4", "avx_vnni_int16", "pconfig"];
static LNL: Core = Core { from: Some(&ARL), has: LUNAR, l2: &[(10, 4096)], ..ARL };
static LNL_E: Core = Core { from: Some(&ARL_E), has: LUNAR, ..ARL_E };
const PANTHER: Names = &["sha512", "sm3", "sm4", "avx_vnni_int16", "fred", "lkgs"];
const PANTHER_MAY: Names = &["prefetchi", "user_msr"];
static PTL: Core = Core {
    from: Some(&ARL),
    has: PANTHER,
    may: PANTHER_MAY,
    highest_leaf: Some(0x28),
    native: Some(4),
    ..ARL
};
static PTL_E: Core = Core {
    from: Some(&ARL_E),
    has: PANTHER,
    may: PANTHER_MAY,
    highest_leaf: Some(0x28),
    native: Some(4),
    ..ARL_E
};
static SRF: Core = Core {
    from: Some(&ALDER_LAKE),
    has: &[
        "cldemote",
        "enqcmd",
        "uintr",
        "la57",
        "cmpccxadd",
        "avx_ifma",
        "avx_vnni_int8",
        "avx_ne_convert",
    ],
    may: &["cet_sss", "dca"],
    l1_code: &[(8, 128)],
    l2: &[(16, 4096)],
    highest_leaf: None,
    kind: ATOM,
    native: Some(2),
    ..ALDER_LAKE
};
static CWF: Core = Core {
    from: Some(&SRF),
    has: &["sha512", "sm3", "sm4", "avx_vnni_int16", "prefetchi"],
    may: &["user_msr", "fred", "lkgs"],
    native: Some(4),
    ..SRF
};

static ZEN1: Core = Core {
    has: &[
        "movbe",
        "rdrand",
        "lzcnt",
        "fma",
        "avx",
        "f16c",
        "bmi1",
        "avx2",
        "bmi2",
        "rdseed",
        "adx",
        "smap",
        "clflushopt",
        "sha_ni",
    ],
    l1_code: &[(4, 256)],
    l2: &[(8, 1024)],
    ..NOTHING
};
static ZEN2: Core = Core {
    from: Some(&ZEN1),
    has: &["clwb", "rdpid"],
    may: &["cqm", "rdt_a"],
    l1_code: &[(8, 64)],
    highest_leaf: Some(0x10),
    ..ZEN1
};
static ZEN3: Core = Core {
    from: Some(&ZEN2),
    has: &["invpcid", "vaes", "vpclmulqdq", "pku", "shstk"],
    may: &["erms", "fsrm"],
    ..ZEN2
};
static ZEN4: Core = Core {
    from: Some(&ZEN3),
    has: &[
        "avx512f",
        "avx512dq",
        "avx512cd",
        "avx512bw",
        "avx512vl",
        "avx512ifma",
        "avx512vbmi",
        "avx512_vbmi2",
        "avx512_vnni",
        "avx512_bitalg",
        "avx512_vpopcntdq",
        "avx512_bf16",
        "gfni",
    ],
    may: &["la57"],
    l2: &[(8, 2048)],
    ..ZEN3
};
static ZEN5: Core = Core {
    from: Some(&ZEN4),
    has: &["avx512_vp2intersect", "movdiri", "movdir64b", "avx_vnni"],
    may: &[],
    l1_data: &[(12, 64)],
    l2: &[(16, 1024)],
    ..ZEN4
};

/// The signature of a table.
pub fn of(table: &str) -> Option<Signature> {
    let core = match table {
        "hsw" => &HSW,
        "hsx" => &HSX,
        "bdw" => &BDW,
        "bdx" => &BDX,
        "skl" => &SKL,
        "skx" => &SKX,
        "clx" => &CLX,
        "icl" => &ICL,
        "icx" => &ICX,
        "rkl" => &RKL,
        "tgl" => &TGL,
        "spr" => &SPR,
        "emr" => &EMR,
        "gnr" => &GNR,
        "adl" => &ADL,
        "adl-e" => &ADL_E,
        "mtl" => &MTL,
        "mtl-e" => &MTL_E,
        "arl" => &ARL,
        "arl-e" => &ARL_E,
        "lnl" => &LNL,
        "lnl-e" => &LNL_E,
        "ptl" => &PTL,
        "ptl-e" => &PTL_E,
        "srf" | "grr" => &SRF,
        "cwf" => &CWF,
        "zen1" => &ZEN1,
        "zen2" => &ZEN2,
        "zen3" => &ZEN3,
        "zen4" => &ZEN4,
        "zen5" => &ZEN5,
        _ => return None,
    };
    Some(core.signature())
}

impl Core {
    /// Whether it has the feature (`Some(true)`), may have it (`Some(false)`), or never has it.
    fn shows(&self, name: &str) -> Option<bool> {
        if self.has.contains(&name) {
            Some(true)
        } else if self.may.contains(&name) {
            Some(false)
        } else if self.not.contains(&name) {
            None
        } else {
            self.from.and_then(|from| from.shows(name))
        }
    }

    fn signature(&self) -> Signature {
        let of = |wanted: Option<bool>| {
            Feature::all().filter(|feature| self.shows(feature.name()) == wanted).collect()
        };
        let shapes =
            |list: &[Shape]| list.iter().map(|&(ways, sets)| Cache { ways, sets }).collect();
        Signature {
            has: of(Some(true)),
            never: of(None),
            l1_data: shapes(self.l1_data),
            l1_code: shapes(self.l1_code),
            l2: shapes(self.l2),
            highest_leaf: self.highest_leaf,
            core_type: self.kind,
            native_model: self.native,
            source: SOURCE.iter().map(|line| (*line).to_owned()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_feature() {
        for core in [&GNR, &CLX, &TGL, &RKL, &ADL, &MTL, &LNL, &PTL, &PTL_E, &CWF, &ZEN5] {
            let mut next: Option<&Core> = Some(core);
            while let Some(core) = next {
                for name in core.has.iter().chain(core.may).chain(core.not) {
                    assert!(Feature::named(name).is_some(), "{name}");
                }
                next = core.from;
            }
        }
    }
}
