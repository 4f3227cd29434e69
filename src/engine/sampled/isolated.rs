//! Hot blocks in isolation.

use crate::block::Measurer;
use bench::Status;
use isa::code::Block;
use profile::hot::{HotBlock, Profile};
use report::documents::report_code::Clean;
use tma::Result;

/// The block in isolation, without a call, return or indirect jump at its end.
pub(super) fn measured(
    measurer: &mut Measurer,
    profile: &mut Profile,
    block: &HotBlock,
) -> Result<Clean> {
    let not =
        |reason: String| Clean { status: Status::Failed, reason: Some(reason), ..Clean::default() };
    let bytes = match profile.code(block) {
        Ok(bytes) => bytes,
        Err(why) => return Ok(not(why.to_string())),
    };
    let decoded = match Block::decode(&bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Ok(not(error.to_string())),
    };
    let (decoded, without) = match decoded.without_exit() {
        Ok((rest, left)) => (rest, left.map(|last| last.text.clone())),
        Err(why) => return Ok(not(why.to_string())),
    };
    let result = measurer.measure(&decoded, false)?;
    let throughput = result.throughput.as_ref();
    Ok(Clean {
        status: result.status,
        reason: result.reason.clone().filter(|_| result.status != Status::Ok),
        cycles: throughput.map(|t| t.cycles),
        range: throughput.map(|t| (t.low, t.high)),
        looped: result.forms.as_ref().and_then(|f| f.looped.trusted()),
        clock: throughput.map(|t| t.clock.to_owned()),
        violated: result.violated().iter().map(|one| one.word().to_owned()).collect(),
        without,
        bound: result.hierarchy.bound,
    })
}
