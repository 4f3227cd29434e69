//! Names the kind of event that a recording sampled, by the event's name.

use profile::text::UNNAMED;

/// Kind of a sampled event, for samples of branch stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Taken branches: what a branch stack has.
    TakenBranches,
    /// Branches, those that are not taken included.
    Branches,
    /// Cycles of the core, as the entries of a branch stack.
    Cycles,
    /// Time, or cycles of another clock or of some kind.
    Time,
    /// The sampled event is not recorded.
    NotRecorded,
    /// Something else.
    Other,
}

/// Beginnings of names, the first that fits decides: Intel's and AMD's events, and perf's own.
const BEGINNINGS: [(&str, Counts); 9] = [
    ("br_inst_retired.near_taken", Counts::TakenBranches),
    ("br_inst_retired.all_taken", Counts::TakenBranches),
    ("br_inst_retired.all_branches", Counts::Branches),
    ("cpu_clk_unhalted.thread", Counts::Cycles),
    // Cycles of E-cores; `core_p` counts them in a general counter.
    ("cpu_clk_unhalted.core", Counts::Cycles),
    ("cpu_clk_unhalted.", Counts::Time),
    ("cycle_activity.", Counts::Time),
    ("stalled-cycles-", Counts::Time),
    ("stalled_cycles_", Counts::Time),
];

/// Whole names.
const NAMES: [(&str, Counts); 16] = [
    ("ex_ret_brn_tkn", Counts::TakenBranches),
    // Zen 3: the same, with its branch sampling.
    ("branch-brs", Counts::TakenBranches),
    ("ex_ret_brn", Counts::Branches),
    ("branches", Counts::Branches),
    ("branch-instructions", Counts::Branches),
    ("branch_instructions", Counts::Branches),
    ("br_inst_retired", Counts::Branches),
    ("br_retired", Counts::Branches),
    ("cycles", Counts::Cycles),
    ("cpu-cycles", Counts::Cycles),
    ("cpu_cycles", Counts::Cycles),
    ("ls_not_halted_cyc", Counts::Cycles),
    ("ref-cycles", Counts::Time),
    ("bus-cycles", Counts::Time),
    ("cpu-clock", Counts::Time),
    ("task-clock", Counts::Time),
];

impl Counts {
    /// Kind of the event of this name; modifiers (`:upp`) and PMU (`cpu_core/…/`) are left out.
    pub fn of(event: &str) -> Self {
        if event == UNNAMED {
            return Self::NotRecorded;
        }
        let name = event.to_ascii_lowercase();
        let name = name.split_once('/').map_or(&name[..], |(_, rest)| rest);
        let name = name.split([':', '/', ',']).next().unwrap_or_default().trim();
        let of_name = NAMES.iter().find(|(whole, _)| *whole == name);
        let of_start = || BEGINNINGS.iter().find(|(start, _)| name.starts_with(start));
        of_name.or_else(of_start).map_or(Self::Other, |(_, counts)| *counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the meanings in Intel's and AMD's event lists and in perf-list(1).
    #[test]
    fn names_tell_what_is_counted() {
        let is = |counts, names: &[&str]| {
            names.iter().for_each(|name| assert_eq!(Counts::of(name), counts, "{name}"));
        };
        let taken =
            ["br_inst_retired.near_taken:upp", "BR_INST_RETIRED.NEAR_TAKEN", "ex_ret_brn_tkn"];
        is(Counts::TakenBranches, &taken);
        is(Counts::TakenBranches, &["cpu_core/br_inst_retired.near_taken/upp"]);
        is(Counts::Branches, &["branches", "branches:upp", "branch-instructions", "ex_ret_brn"]);
        is(Counts::Branches, &["br_inst_retired.all_branches:u", "cpu/branches,period=7/u"]);
        is(Counts::Cycles, &["cycles", "cycles:P", "cpu-cycles", "cpu_core/cycles/P"]);
        is(Counts::Cycles, &["cpu_clk_unhalted.thread_p", "ls_not_halted_cyc", "cpu_atom/cycles/"]);
        is(
            Counts::Time,
            &["ref-cycles", "cycle_activity.stalls_l3_miss", "stalled-cycles-frontend"],
        );
        is(Counts::Time, &["cpu-clock:u", "task-clock", "cpu_clk_unhalted.ref_tsc"]);
        is(Counts::Other, &["branch-misses", "br_misp_retired.all_branches", "branch-loads"]);
        is(Counts::Other, &["branch-load-misses", "instructions", "ex_ret_brn_misp", ""]);
        is(Counts::NotRecorded, &[UNNAMED]);
        is(Counts::Other, &["br_inst_retired.near_call", "br_inst_retired.conditional"]);
    }
}
