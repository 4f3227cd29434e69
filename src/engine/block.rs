//! Measures and explains a block from its instructions, and measures two blocks in turn, with the difference of
//! their times.

use crate::core_model::CoreModel;
use bench::explain::{Explainer, Measured};
use bench::{BlockMeasurer, Explanation, Measurement, Options, Progress, Snapshot, Status};
use isa::code::{Block, Inst};
use report::documents::block::{Difference, Faster};
use std::fmt;
use std::sync::Arc;
use tma::Result;

/// Measures and explains blocks one after the other and reuses its sandboxes. Belongs to its thread.
///
/// ```
/// use bench::{Options, Status};
/// use engine::{block::Measurer, core_model::CoreModel};
/// use isa::code::{Block, parse_hex};
/// use report::render;
/// use std::sync::Arc;
/// use tma::Core;
///
/// # if cfg!(not(target_arch = "x86_64")) {
/// #     return Ok(());
/// # }
/// let core = Core::modelled(&engine::library(), "zen4")?;
/// let model = CoreModel::new(Arc::new(core), None)?;
/// let mut measurer = Measurer::new(Options::quick(), &model);
/// // imul rax, rax: a chain of multiplications, each 3 cycles or more (uops.info).
/// let measurement = measurer.measure(&Block::decode(&parse_hex("48 0f af c0")?)?, false)?;
/// if let (Status::Ok, Some(throughput)) = (measurement.status, &measurement.throughput) {
///     assert!(throughput.cycles > 2.0);
/// }
///
/// let text = render::block::render(&measurement, &render::block::Style::default());
/// assert!(text.contains("imul rax,rax"));
/// let json = render::json::pretty(&measurement)?;
/// assert!(json.contains(r#""schema": "tdtool.block/2""#));
/// # Ok::<(), tma::Error>(())
/// ```
pub struct Measurer {
    measurer: BlockMeasurer,
    explainer: Option<Explainer>,
    notes: Vec<String>,
    whole_loop: Option<Arc<Snapshot>>,
}

/// Notes of a block for its report.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// Effects that its time leaves out.
    pub of_time: Vec<String>,
    /// Where it and its values come from.
    pub origin: Vec<String>,
}

impl Notes {
    /// Adds them to a report; those of its time if it has one.
    pub fn enter(&self, report: &mut Measurement) {
        let of_time = self.of_time.iter().filter(|_| report.throughput.is_some());
        let all: Vec<String> = of_time.chain(&self.origin).cloned().collect();
        report.notes.splice(0..0, all);
    }
}

/// Assumptions of a measurement with made-up values; `in_program`: what the block takes there, in words, if known.
pub fn assumed(bytes: &[u8], in_program: Option<&str>) -> Vec<String> {
    let Ok(block) = Block::decode(bytes) else { return Vec::new() };
    let any = |of: fn(&Inst) -> bool| block.instructions.iter().any(of);
    let branches = block.final_branch().is_some_and(|last| last.decoded.is_jcc_short_or_near());
    let parts = [
        (any(Inst::touches_memory), "its data is in L1", "misses"),
        (branches, "its branch is predicted", "mispredictions"),
    ];
    let parts = || parts.iter().filter(|(is, ..)| *is);
    let here: Vec<&str> = parts().map(|(_, what, _)| *what).collect();
    let costs: Vec<&str> = parts().map(|(.., cost)| *cost).collect();
    let (here, costs) = (here.join(" and "), costs.join(" and "));
    let time = match (in_program, here.is_empty()) {
        (Some(time), true) => Some(time.to_owned()),
        (Some(time), false) => Some(format!("{time}; in isolation {here}")),
        (None, true) => None,
        (None, false) => {
            let more = format!("{costs} of the program: `tdtool report --estimate`");
            Some(format!("in isolation {here}; {more}"))
        }
    };
    let division = any(Inst::divides).then(|| {
        "a division takes as long as its operands ask for, which are made up here: -- ARGS takes the program's".to_owned()
    });
    time.into_iter().chain(division).collect()
}

impl Measurer {
    /// A measurer on the core of `model`; it explains if `options` ask for that.
    pub fn new(options: Options, model: &CoreModel) -> Self {
        let options = Options { core: model.core.clone(), ..options };
        let explain = || Explainer::new(&options, model.latencies.clone());
        let explainer = options.explain.then(explain);
        let whole_loop = options.snapshot.clone().filter(|snapshot| snapshot.whole);
        let notes = model.notes.clone();
        Self { measurer: BlockMeasurer::new(options), explainer, notes, whole_loop }
    }

    /// Measures `block` and explains the result; with `what_if`, measures it again with dependencies
    /// broken and instructions left out.
    ///
    /// # Errors
    /// The sandbox cannot be started. Whatever is wrong with the block is in its measurement.
    pub fn measure(&mut self, block: &Block, what_if: bool) -> Result<Measurement> {
        let mut measurement = self.measurer.measure(block)?;
        let path = self.whole_loop.as_ref().filter(|one| one.is_whole_at(block)).map(|one| {
            let path = one.main_path()?;
            Ok::<_, bench::NoPath>(Block::decode(&path.body)?)
        });
        measurement.hierarchy.explanation = match (path.transpose(), &mut self.explainer) {
            (Err(why), _) => Some(Explanation::NoPath(why)),
            (Ok(path), Some(explainer)) => explainer.explain(Measured {
                measurer: &mut self.measurer,
                block,
                path: path.as_ref(),
                measurement: &mut measurement,
                what_if,
            })?,
            (Ok(_), None) => measurement.throughput.as_ref().map(|_| Explanation::NotRequested),
        };
        measurement.notes.extend(self.notes.iter().cloned());
        Ok(measurement)
    }

    /// The measurement of an input that is not a block.
    pub fn rejected(&self, input: &str, reason: String) -> Measurement {
        bench::rejected(input, reason, self.measurer.core())
    }

    /// Reports progress to `progress`, through which the next measurement can also be cancelled.
    pub fn set_progress(&mut self, progress: Progress) {
        self.measurer.set_progress(progress.clone());
        if let Some(explainer) = &mut self.explainer {
            explainer.set_progress(progress);
        }
    }
}

/// Pairs of measurements. The range of six covers the median of their distribution with a probability
/// of 1 - 2/2⁶, whatever that distribution is (sign test).
const PAIRS: usize = 6;

/// Measurements of each block until one is stable.
const TRIES: usize = 2;

/// Why two blocks have no difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDifference {
    /// The measurement of this one ended otherwise, for the reason if one is known.
    Block(&'static str, Status, Option<String>),
    /// Only this many pairs were not disturbed.
    Pairs(usize),
}

impl fmt::Display for NoDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(name, status, reason) => {
                let is = if *status == Status::Failed { "" } else { "is " };
                let reason = reason.as_deref().unwrap_or("no reason");
                write!(f, "{name} {is}{}: {reason}", status.word())
            }
            Self::Pairs(number) => {
                write!(f, "only {number} of {} pairs were uncontended", 2 * PAIRS)
            }
        }
    }
}

/// Both measurements with their explanations, and the difference or why there is none.
pub type Compared = (Measurement, Measurement, std::result::Result<Difference, NoDifference>);

/// Measures both blocks, each with its `options`, and explains them, then measures them in pairs, of which
/// every second one is in reverse order so that drift cancels.
///
/// # Errors
/// The sandbox cannot be started.
pub fn compare(
    options: [&Options; 2],
    model: &CoreModel,
    a: &Block,
    b: &Block,
) -> Result<Compared> {
    let first = settled(&mut Measurer::new(options[0].clone(), model), a)?;
    let second = settled(&mut Measurer::new(options[1].clone(), model), b)?;
    let why = not_ok("A", &first).or_else(|| not_ok("B", &second));
    if let Some(why) = why {
        return Ok((first, second, Err(why)));
    }
    let mut measurers = options.map(|options| {
        let budget = options.budget / PAIRS as u32;
        let plain = Options { explain: false, counts: false, budget, ..options.clone() };
        Measurer::new(plain, model)
    });
    let mut time = |number: usize| -> Result<Option<f64>> {
        let measurement = measurers[number].measure([a, b][number], false)?;
        let ok = measurement.status == Status::Ok;
        Ok(measurement.throughput.filter(|_| ok).map(|t| t.cycles))
    };
    let mut pairs = Vec::new();
    for pair in 0..2 * PAIRS {
        let (one, other) = match pair % 2 {
            0 => (time(0)?, time(1)?),
            _ => {
                let other = time(1)?;
                (time(0)?, other)
            }
        };
        pairs.extend(one.zip(other));
        if pairs.len() == PAIRS {
            break;
        }
    }
    let difference = match pairs.len() {
        PAIRS => Ok(difference(&pairs)),
        number => Err(NoDifference::Pairs(number)),
    };
    Ok((first, second, difference))
}

/// A measurement that is not unstable, if one of a few is.
fn settled(measurer: &mut Measurer, block: &Block) -> Result<Measurement> {
    let mut measurement = measurer.measure(block, false)?;
    for _ in 1..TRIES {
        if measurement.status != Status::Unstable {
            break;
        }
        measurement = measurer.measure(block, false)?;
    }
    Ok(measurement)
}

/// Why the measurement of `name` is not to be trusted, if it is not.
fn not_ok(name: &'static str, measurement: &Measurement) -> Option<NoDifference> {
    let Measurement { status, reason, .. } = measurement;
    (*status != Status::Ok).then(|| NoDifference::Block(name, *status, reason.clone()))
}

/// The difference of the pairs of times of A and B.
fn difference(pairs: &[(f64, f64)]) -> Difference {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let (low, high) = differences
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), d| (low.min(*d), high.max(*d)));
    let of = |times: Vec<f64>| median(times);
    let (a, b) = pairs.iter().copied().unzip();
    Difference {
        cycles: of(differences),
        low,
        high,
        ratio: of(b) / of(a),
        pairs: pairs.len(),
        confidence: 1.0 - 2.0 * 0.5_f64.powi(i32::try_from(pairs.len()).unwrap_or(i32::MAX)),
        faster: match () {
            () if low > 0.0 => Faster::A,
            () if high < 0.0 => Faster::B,
            () => Faster::Neither,
        },
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 if middle > 0 => f64::midpoint(values[middle - 1], values[middle]),
        0 => f64::NAN,
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::{assumed, *};
    use isa::code::parse_hex;

    #[test]
    fn what_isolation_leaves_out_is_said_once() {
        let of = |hex: &str, time| assumed(&parse_hex(hex).unwrap(), time);
        // mov rax,[rax]; dec ecx; jne
        let chase = "48 8b 00, ff c9, 75 f9";
        assert_eq!(
            of(chase, None),
            [
                "in isolation its data is in L1 and its branch is predicted; misses and mispredictions of the \
              program: `tdtool report --estimate`"
            ]
        );
        let time = "212.50 cycles of an iteration in the program";
        assert_eq!(
            of(chase, Some(time)),
            [
                "212.50 cycles of an iteration in the program; in isolation its data is in L1 and its branch is predicted"
            ]
        );
        // add rax,rbx
        assert!(of("48 01 d8", None).is_empty());
        assert_eq!(of("48 01 d8", Some(time)), [time]);
        // xor edx,edx; div rcx
        assert!(of("31 d2, 48 f7 f1", None)[0].starts_with("a division"));
    }

    /// Worked by hand: differences 1.0, 1.1, 0.9, 1.0, 1.2, 0.8; 6 pairs: 1 - 2/64.
    #[test]
    fn the_interval_is_the_range_of_the_pairs() {
        let pairs = [(2.0, 3.0), (2.0, 3.1), (2.1, 3.0), (2.0, 3.0), (1.9, 3.1), (2.2, 3.0)];
        let found = difference(&pairs);
        assert!((found.cycles - 1.0).abs() < 1e-9 && (found.ratio - 1.5).abs() < 1e-9);
        assert!((found.low - 0.8).abs() < 1e-9 && (found.high - 1.2).abs() < 1e-9);
        assert_eq!((found.faster, found.confidence), (Faster::A, 0.96875));
        let even = difference(&[(2.0, 2.1), (2.0, 1.9), (2.0, 2.0)]);
        assert_eq!(even.faster, Faster::Neither);
    }
}
