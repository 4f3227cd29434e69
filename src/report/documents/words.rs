//! The words of fixed sets in documents, which readers of JSON rely on.

use super::Purpose;
use super::block::{Faster, PredictedBound};
use super::count::{
    BranchKind, How, Kind, Level, ModelledSource, ProbeKind, TripsSource, ValueKind, ValuesAt,
};
use super::loads::{ParallelOf, ShareOf, Shares, VariableKind};
use super::prefetch::Grounds;
use super::regions::TreeSource;
use super::report_code::WithValues;
use bench::Status;
use estimate::BoundBy;
use isa::latency::Forward;
use loads::class::Ahead;
use loads::prefetch::Site;
use loads::recorded::Sharing;
use pmu::machine::SeccompMode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use tma::self_test::{Below, Rule};

fn written<T: Serialize, const N: usize>(all: [(T, &str); N]) {
    for (one, word) in all {
        assert_eq!(serde_json::to_value(one).unwrap(), word);
    }
}

fn both<T: Serialize + DeserializeOwned + PartialEq + Debug, const N: usize>(all: [(T, &str); N]) {
    for (one, word) in &all {
        assert_eq!(serde_json::from_value::<T>((*word).into()).unwrap(), *one);
    }
    written(all);
    assert!(serde_json::from_value::<T>("another".into()).is_err());
}

#[test]
fn sets_have_fixed_words_in_counts() {
    both([(How::Placed, "placed"), (How::Derived, "derived")]);
    both([(ProbeKind::Retarget, "retarget"), (ProbeKind::Single, "single")]);
    both([(ProbeKind::Multi, "multi"), (ProbeKind::Pun, "pun")]);
    both([
        (Purpose::Samples, "samples"),
        (Purpose::Counts, "counts"),
        (Purpose::Branches, "branches"),
        (Purpose::Values, "values"),
        (Purpose::Addresses, "addresses of loads"),
        (Purpose::Latencies, "latencies of loads"),
        (Purpose::Windows, "branches and loads in windows"),
        (Purpose::Pinned, "samples on one CPU"),
        (Purpose::EndedForValues(3), "3 for values"),
    ]);
    both([
        (BranchKind::Conditional, "conditional"),
        (BranchKind::Indirect, "indirect"),
        (BranchKind::Return, "return"),
    ]);
    both([(TripsSource::Exact, "exact"), (TripsSource::Sampled, "sampled")]);
    both([(ModelledSource::Modelled, "modelled")]);
    both([(Rule::Last, "last"), (Rule::MostFrequent, "most_frequent")]);
    both([(Below::Oldest, "oldest"), (Below::Around, "around"), (Below::History, "history")]);
    both([(ValuesAt::Function, "function"), (ValuesAt::Loop, "loop"), (ValuesAt::Block, "block")]);
    both([
        (ValueKind::Constant, "constant"),
        (ValueKind::Few, "few"),
        (ValueKind::Pointer, "pointer"),
        (ValueKind::Range, "range"),
        (ValueKind::Spread, "spread"),
        (ValueKind::Unknown, "unknown"),
    ]);
    both([(Level::L1, "L1"), (Level::L2, "L2"), (Level::L3, "L3"), (Level::Memory, "DRAM")]);
}

#[test]
fn sets_have_fixed_words_of_loads() {
    both([
        (Kind::Constant, "constant"),
        (Kind::Stride, "stride"),
        (Kind::PointerChase, "pointer_chase"),
        (Kind::ChaseOffset, "chase_offset"),
        (Kind::IndirectDelta, "indirect_delta"),
        (Kind::Indirect, "indirect"),
        (Kind::Complex, "complex"),
        (Kind::Irregular, "irregular"),
    ]);
    both([
        (VariableKind::Variable, "variable"),
        (VariableKind::Section, "section"),
        (VariableKind::Heap, "heap"),
        (VariableKind::Stack, "stack"),
        (VariableKind::Mapping, "mapping"),
        (VariableKind::Unknown, "unknown"),
    ]);
    both([(Sharing::Same, "true"), (Sharing::Different, "false"), (Sharing::Unknown, "unknown")]);
    both([(Shares::Latency, "latency"), (Shares::Samples, "samples")]);
    both([(ShareOf::Executions, "executions"), (ShareOf::Samples, "samples")]);
    both([(ParallelOf::Recorded, "recorded"), (ParallelOf::Cycles, "cycles")]);
    both([(Grounds::Probes, "probes")]);
    both([(Site::Inner, "inner"), (Site::Outer, "outer")]);
    both([(Ahead::Directly, "directly"), (Ahead::ByCopy, "by_copy")]);
}

#[test]
fn sets_have_fixed_words_in_other_documents() {
    both([
        (Status::Ok, "ok"),
        (Status::Unstable, "unstable"),
        (Status::Failed, "failed"),
        (Status::Rejected, "rejected"),
    ]);
    both([
        (BoundBy::IssueWidth, "issue-width"),
        (BoundBy::FrontEnd, "front-end"),
        (BoundBy::Core, "core"),
        (BoundBy::Unknown, "unknown"),
    ]);
    both([
        (TreeSource::Counted, "counted"),
        (TreeSource::Estimated, "estimated"),
        (TreeSource::None, "none"),
    ]);
    written([(Faster::A, "a"), (Faster::B, "b"), (Faster::Neither, "none")]);
    written([
        (PredictedBound::IssueWidth, "issue-width"),
        (PredictedBound::Ports, "ports"),
        (PredictedBound::Recurrence, "recurrence"),
    ]);
    written([
        (SeccompMode::Off, "off"),
        (SeccompMode::Strict, "strict"),
        (SeccompMode::Filter, "filter"),
    ]);
    written(Forward::ALL.map(|one| (one, one.name())));
}

#[test]
fn no_status_is_an_empty_text() {
    let mut one = WithValues::default();
    let mut json = serde_json::to_value(&one).unwrap();
    assert_eq!(
        (&json["status"], serde_json::from_value(json.clone()).ok()),
        (&"".into(), Some(one.clone()))
    );
    (one.status, json["status"]) = (Some(Status::Unstable), "unstable".into());
    assert_eq!(serde_json::from_value::<WithValues>(json).unwrap(), one);
}
