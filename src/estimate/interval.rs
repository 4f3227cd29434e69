//! Values with intervals. Errors of independent values are combined in quadrature (first order); an interval
//! need not be symmetric.

/// A value and the interval that it lies in.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end, at most `value`.
    pub low: f64,
    /// The upper end, at least `value`.
    pub high: f64,
}

impl Interval {
    /// A value between two ends, which are moved out to it if it is not between them.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value) }
    }

    /// A value without error.
    pub fn exact(value: f64) -> Self {
        Self::new(value, value, value)
    }

    /// A value with a relative error.
    pub fn relative(value: f64, error: f64) -> Self {
        let half = (value * error).abs();
        Self::new(value, value - half, value + half)
    }

    /// How far the value may be too high.
    pub fn below(self) -> f64 {
        self.value - self.low
    }

    /// How far the value may be too low.
    pub fn above(self) -> f64 {
        self.high - self.value
    }

    /// The larger of both errors.
    pub fn error(self) -> f64 {
        self.below().max(self.above())
    }

    /// With another relative error, independent of its own.
    #[must_use]
    pub fn widened(self, error: f64) -> Self {
        let more = (self.value * error).abs();
        let (below, above) = (self.below().hypot(more), self.above().hypot(more));
        Self::new(self.value, self.value - below, self.value + above)
    }

    /// The sum of two independent values.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let value = self.value + other.value;
        let (below, above) = (self.below().hypot(other.below()), self.above().hypot(other.above()));
        Self::new(value, value - below, value + above)
    }

    /// The difference of two independent values.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    /// The sum of two values whose errors may have the same cause: they add up.
    #[must_use]
    pub fn plus_alike(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.low + other.low, self.high + other.high)
    }

    /// A multiple.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let (low, high) = (self.low * factor, self.high * factor);
        Self::new(self.value * factor, low.min(high), low.max(high))
    }

    /// The quotient of two independent values; 0 if the divisor is not above 0.
    #[must_use]
    pub fn over(self, divisor: Self) -> Self {
        if divisor.value <= 0.0 {
            return Self::default();
        }
        let error = divisor.error() / divisor.value;
        self.times(1.0 / divisor.value).widened(error)
    }

    /// Both ends and the value within limits.
    #[must_use]
    pub fn clamped(self, low: f64, high: f64) -> Self {
        let within = |x: f64| x.clamp(low, high.max(low));
        Self { value: within(self.value), low: within(self.low), high: within(self.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 10 ± 3 and 20 ± 4 are 30 ± 5, and -10 ± 5.
    #[test]
    fn independent_errors_add_in_quadrature() {
        let (a, b) = (Interval::new(10.0, 7.0, 13.0), Interval::new(20.0, 16.0, 24.0));
        assert_eq!(a.plus(b), Interval::new(30.0, 25.0, 35.0));
        assert_eq!(a.minus(b), Interval::new(-10.0, -15.0, -5.0));
        assert_eq!(a.plus_alike(b), Interval::new(30.0, 23.0, 37.0));
    }

    /// By hand: 30 % and 40 % make 50 % of 10 / 20.
    #[test]
    fn relative_errors_of_a_quotient_add_in_quadrature() {
        let found = Interval::relative(10.0, 0.3).over(Interval::relative(20.0, 0.4));
        assert!((found.low - 0.25).abs() < 1e-12 && (found.high - 0.75).abs() < 1e-12, "{found:?}");
        assert_eq!(Interval::exact(1.0).over(Interval::exact(0.0)), Interval::default());
    }

    #[test]
    fn unsymmetric_errors_keep_their_sides() {
        let found = Interval::exact(5.0).minus(Interval::new(2.0, 1.0, 2.0));
        assert_eq!(found, Interval::new(3.0, 3.0, 4.0));
        assert_eq!(Interval::new(1.0, 2.0, 0.5), Interval::exact(1.0));
        assert_eq!(Interval::new(0.5, -1.0, 2.0).clamped(0.0, 1.0), Interval::new(0.5, 0.0, 1.0));
    }
}
