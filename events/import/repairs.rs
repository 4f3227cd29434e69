//! Known errors in the vendors' files, and what we put instead. Every change to a vendor's
//! formula, parent or threshold is in this list; the tables' notes repeat it.

/// Kind of repair.
#[derive(Debug, Clone, Copy)]
pub enum Fix {
    /// Replace a piece of the base formula, everywhere in it.
    Formula(&'static str, &'static str),
    /// The parent that the file leaves out or has wrong.
    Parent(&'static str),
    /// The unit mask of an event that the file has wrong.
    Umask(u32),
}

/// One error.
#[derive(Debug, Clone, Copy)]
pub struct Repair {
    /// Tables it is in.
    pub tables: &'static [&'static str],
    /// Node, metric or event.
    pub node: &'static str,
    /// The change.
    pub what: Fix,
    /// Why it is right.
    pub why: &'static str,
}

macro_rules! latency {
    ($tables:expr, $node:literal, $cycles:literal) => {
        Repair {
            tables: $tables,
            node: $node,
            what: Fix::Formula(
                concat!(
                    "* ( ", $cycles, " * tma_info_system_core_frequency ) - ",
                    "( 3 * tma_info_system_core_frequency )"
                ),
                concat!(
                    "* ( ( ", $cycles, " * tma_info_system_core_frequency ) - ",
                    "( 3 * tma_info_system_core_frequency ) )"
                ),
            ),
            why: "the cost of an L2 hit is to be taken off each access's latency, as GNR writes it; without parentheses it is taken off the product once",
        }
    };
}

/// All of them.
pub const REPAIRS: &[Repair] = &[
    latency!(&["mtl", "lnl", "arl"], "L3_Hit_Latency", "12"),
    latency!(&["mtl", "lnl", "arl"], "Contested_Accesses", "27"),
    latency!(&["mtl", "lnl", "arl"], "Contested_Accesses", "28"),
    latency!(&["mtl", "lnl", "arl"], "Data_Sharing", "27"),
    latency!(&["lnl", "arl"], "Data_Sharing", "28"),
    Repair {
        tables: &["skx", "clx", "rkl"],
        node: "Serializing_Operation",
        what: Fix::Parent("Core_Bound"),
        why: "the parent given is a level too deep; its own level and threshold put it below Core_Bound",
    },
    Repair {
        tables: &["skx", "clx", "rkl"],
        node: "Nop_Instructions",
        what: Fix::Parent("Other_Light_Ops"),
        why: "the parent given is a level too high; its own level and threshold put it below Other_Light_Ops",
    },
    Repair {
        tables: &["icx"],
        node: "MEM_Bandwidth",
        what: Fix::Parent("L3_Miss_Bound"),
        why: "the file names no parent; its own threshold and the other servers have it below L3_Miss_Bound",
    },
    Repair {
        tables: &["icx"],
        node: "MEM_Latency",
        what: Fix::Parent("L3_Miss_Bound"),
        why: "the file names no parent; its own threshold and the other servers have it below L3_Miss_Bound",
    },
    Repair {
        tables: &["emr"],
        node: "Bottleneck_Data_Cache_Memory_Bandwidth",
        what: Fix::Formula(
            "( tma_memory_bound * hbm_bound / ( tma_l1_bound + tma_l2_bound + tma_l3_bound + tma_l3_miss_bound + tma_store_bound ) ) * tma_mem_bandwidth / ( tma_mem_bandwidth + tma_mem_latency ) + ",
            "",
        ),
        why: "the share of high-bandwidth memory, which this processor lacks, was left in; SPR has the formula without it",
    },
    Repair {
        tables: &["emr"],
        node: "Bottleneck_Data_Cache_Memory_Latency",
        what: Fix::Formula(
            "( tma_memory_bound * hbm_bound / ( tma_l1_bound + tma_l2_bound + tma_l3_bound + tma_l3_miss_bound + tma_store_bound ) ) * tma_mem_latency / ( tma_mem_bandwidth + tma_mem_latency ) + ",
            "",
        ),
        why: "the share of high-bandwidth memory, which this processor lacks, was left in; SPR has the formula without it",
    },
    Repair {
        tables: &["emr"],
        node: "Info_Botlnk_L0_Core_Bound_Likely",
        what: Fix::Formula(
            "tma_info_system  _smt_2t_utilization",
            "tma_info_system_smt_2t_utilization",
        ),
        why: "a blank fell into the name of a metric",
    },
    Repair {
        tables: &["skx", "clx"],
        node: "FP_ARITH_INST_RETIRED.8_FLOPS",
        what: Fix::Umask(0x60),
        why: "the file repeats the mask of 4_FLOPS; 256-bit single (0x20) and 512-bit double (0x40) make 0x60, as from Ice Lake on",
    },
];

/// The repairs of `node` in `table`.
pub fn of<'a>(table: &'a str, node: &'a str) -> impl Iterator<Item = &'static Repair> + 'a {
    REPAIRS.iter().filter(move |r| r.node == node && r.tables.contains(&table))
}
