//! Runs of a count as they begin, with the time that is left.

use super::ask::CountAsk;
use crate::steps::{Left, Step};

/// The runs of the command, or windows of the process, so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    number: usize,
    /// Seconds of a run without probes, if known.
    pub plain: Option<f64>,
}

impl Steps {
    /// After the run that was sampled for hot functions, if there is one.
    pub fn new(ask: &CountAsk) -> Self {
        let sampled = ask.hot.as_ref().filter(|_| ask.process.is_none());
        Self { number: usize::from(ask.hot.is_some()), plain: sampled.map(|hot| hot.seconds) }
    }

    /// A step begins, which is the first of those that are left.
    pub fn begin(&mut self, ask: &CountAsk, what: &str, left: Left) {
        let Some(watch) = &ask.watch else { return };
        let of = self.number + left.runs();
        self.number += 1;
        let seconds_left = match ask.process {
            Some((_, window)) => Some(window.as_secs_f64() * left.runs() as f64),
            None => self.plain.map(|plain| left.seconds(plain)),
        };
        let (number, runs) = (self.number, ask.process.is_none());
        watch.call(Step { what: what.to_owned(), number, of, seconds_left, runs });
    }

    /// All is done.
    pub fn end(self, ask: &CountAsk) {
        if let Some(watch) = &ask.watch {
            watch.call(Step { number: self.number, of: self.number, ..Step::default() });
        }
    }
}

impl CountAsk {
    /// The runs or windows that count.
    pub(super) fn runs(&self) -> Left {
        Left {
            plain: self.plain && self.process.is_none(),
            counts: 1,
            branches: self.branches.is_some(),
            values: self.values.is_some(),
            loads: self.loads,
            isolated: 0,
        }
    }

    /// Shows that the run, or window, begins that is sampled for hot functions.
    pub fn begin_sampling(&self) {
        let window = self.process.map(|(_, window)| window.as_secs_f64());
        let of = 1 + self.runs().runs();
        if let Some(watch) = &self.watch {
            let seconds_left = window.map(|window| window * of as f64);
            let runs = self.process.is_none();
            watch.call(Step { what: "samples".to_owned(), number: 1, of, seconds_left, runs });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::Callback;
    use crate::hot::hottest::Hottest;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    fn shown(ask: CountAsk) -> Vec<Step> {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&steps);
        let watch = Callback::new(move |step| all.lock().unwrap().push(step));
        let ask = CountAsk { watch: Some(watch), loads: true, ..ask };
        let mut steps_of = Steps::new(&ask);
        steps_of.begin(&ask, "counts", ask.runs());
        steps_of.begin(&ask, "loads", Left { counts: 0, ..ask.runs() });
        steps_of.end(&ask);
        steps.lock().unwrap().clone()
    }

    /// By hand: 1.5, 2 and 1.6 runs of two seconds; windows take what they are asked to.
    #[test]
    fn what_is_left_follows_from_a_run_or_window() {
        let hot = Hottest { seconds: 2.0, ..Hottest::default() };
        let steps = shown(CountAsk { hot: Some(hot.clone()), ..CountAsk::default() });
        let numbers: Vec<_> = steps.iter().map(|step| (step.number, step.of)).collect();
        assert_eq!(numbers, [(2, 4), (3, 4), (3, 3)]);
        let left: Vec<_> = steps.iter().filter_map(|step| step.seconds_left).collect();
        assert!((left[0] - 10.2).abs() < 1e-9 && (left[1] - 7.2).abs() < 1e-9, "{left:?}");

        let process = Some((1, Duration::from_secs(5)));
        let steps = shown(CountAsk { process, hot: Some(hot), ..CountAsk::default() });
        assert_eq!((steps[0].seconds_left, steps[1].seconds_left), (Some(15.0), Some(10.0)));
        assert_eq!(shown(CountAsk::default())[0].seconds_left, None, "no run has ended yet");
    }
}
