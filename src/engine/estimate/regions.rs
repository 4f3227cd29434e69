//! Marked regions: the parts of the pieces that their samples are in, by samples.
//!
//! A piece with samples in other regions, too, need not have the same parts in all of them: its intervals are widened
//! to what is possible.

use super::divided::{Waits, divided};
use super::evidence::Context;
use super::known::Isolated;
use super::pieces::Function;
use estimate::{Parts, Reason, bottleneck};
use profile::address_space::ModuleAddress;
use profile::hot::{Profile, RegionSamples};
use report::documents::estimate::{Bottleneck, RegionParts};
use std::collections::{BTreeMap, HashMap};

/// Fewest samples of a region that is analysed.
const FEWEST: u64 = 30;
/// A piece with more than this share of its samples outside of a region is shared with others.
const STRAY: f64 = 0.02;

/// Pieces by address.
#[derive(Default)]
struct Pieces<'a> {
    /// Samples and parts.
    all: Vec<(u64, Parts)>,
    /// By file: the start of each block with its end and piece.
    blocks: HashMap<&'a str, BTreeMap<u64, (u64, usize)>>,
}

impl Pieces<'_> {
    fn at(&self, path: &str, address: u64) -> Option<usize> {
        let (_, (end, piece)) = self.blocks.get(path)?.range(..=address).next_back()?;
        (address < *end).then_some(*piece)
    }
}

/// The parts of every region with samples.
pub(super) fn regions(
    profile: &Profile,
    functions: &[Function],
    isolated: &Isolated,
    context: &Context,
) -> Vec<RegionParts> {
    let sums = &profile.by_region().sums;
    if sums.is_empty() {
        return Vec::new();
    }
    let mut pieces = Pieces::default();
    for (at, function) in functions.iter().enumerate() {
        for own in divided(context, at, function, isolated, Waits::Modelled) {
            let blocks = pieces.blocks.entry(&function.module).or_default();
            for block in own.pieces.iter().flat_map(|number| &function.pieces[*number].blocks) {
                let range = function.range(*block);
                blocks.insert(range.start, (range.end, pieces.all.len()));
            }
            pieces.all.push((own.samples as u64, own.parts));
        }
    }
    let row = |((region, thread), sum): (&(u32, Option<u32>), &RegionSamples)| {
        let (parts, shared) = parts(profile, &pieces, sum);
        RegionParts {
            region: *region,
            thread: *thread,
            samples: sum.samples,
            shared,
            bottleneck: Bottleneck(bottleneck(&parts)),
            parts,
        }
    };
    sums.iter().map(row).collect()
}

/// The parts of a region, and the share of its samples in code that others share.
fn parts(profile: &Profile, pieces: &Pieces, sum: &RegionSamples) -> (Parts, f64) {
    let all = sum.samples as f64;
    if sum.samples < FEWEST {
        let why = format!("{} samples; {FEWEST} are needed", sum.samples);
        return (Parts::unknown(Reason::given(why)), 0.0);
    }
    let mut own: BTreeMap<usize, u64> = BTreeMap::new();
    let mut outside = 0;
    let find = |place: &ModuleAddress| pieces.at(profile.module_path(place.module), place.address);
    for (place, samples) in &sum.places {
        match place.as_ref().and_then(find) {
            Some(piece) => *own.entry(piece).or_default() += samples,
            None => outside += samples,
        }
    }
    let (mut weighted, mut shared) = (Vec::new(), 0.0);
    for (piece, samples) in own {
        let (of_all, parts) = &pieces.all[piece];
        let share = (samples as f64 / (*of_all).max(1) as f64).min(1.0);
        if share < 1.0 - STRAY {
            shared += samples as f64 / all;
        }
        weighted.push((samples as f64, parts.within(share)));
    }
    if outside > 0 {
        let why = "its samples are in code that was not analysed, or in the kernel";
        weighted.push((outside as f64, Parts::unknown(Reason::given(why))));
    }
    let sum_of = Parts::sum(weighted.iter().map(|(samples, parts)| (*samples, parts)));
    (sum_of.sampled(sum.samples), shared)
}
