//! Classifies how a value changes from one iteration to the next.

use crate::class::{Ahead, Class};
use std::collections::BTreeSet;

/// A term added to a value that stays the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Term {
    /// This many bytes more in each iteration.
    Step(i64),
    /// As many bytes more in each iteration, but not known how many.
    Steady,
    /// A multiple of what a load loads.
    Loaded {
        of: u64,
        scale: i64,
        inner: Class<u64>,
    },
    /// A multiple of what a load in a ring of loads has loaded.
    Ring {
        of: u64,
        scale: i64,
    },
    /// A sum of what a load loads.
    Sum {
        of: u64,
    },
    /// Something else.
    Computed {
        ahead: Ahead,
    },
    Unknown,
}

/// The terms of a value that change.
#[derive(Debug, Clone, Default)]
pub(super) struct Motion {
    pub terms: Vec<Term>,
    pub constant: i64,
    /// The bytes after which it begins anew.
    pub wraps: Option<u64>,
}

impl Motion {
    /// A single term.
    pub fn one(term: Term) -> Self {
        Self { terms: vec![term], ..Self::default() }
    }

    /// Adds another value.
    pub fn add(&mut self, other: Self) {
        self.terms.extend(other.terms);
        self.constant = self.constant.wrapping_add(other.constant);
        self.wraps = self.wraps.or(other.wraps);
    }

    /// How it can be computed for a later iteration without the loads in between.
    pub fn ahead(&self) -> Ahead {
        let of = |term: &Term| match term {
            Term::Step(_) | Term::Steady => Ahead::Directly,
            Term::Loaded { inner, .. } => inner.ahead(),
            Term::Computed { ahead } => *ahead,
            Term::Ring { .. } | Term::Sum { .. } | Term::Unknown => Ahead::No,
        };
        self.terms.iter().map(of).max().unwrap_or(Ahead::Directly)
    }

    /// Whether all its terms are.
    pub fn is_known(&self) -> bool {
        !self.terms.contains(&Term::Unknown)
    }

    /// How the addresses of `load` are made, if it is their motion from one iteration to the next.
    pub fn class(&self, load: u64, rings: &Rings) -> Class<u64> {
        let moves = |term: &&Term| !matches!(term, Term::Step(_) | Term::Steady);
        let others: Vec<&Term> = self.terms.iter().filter(moves).collect();
        let steps = self.terms.len() - others.len();
        let complex = || Class::Complex { ahead: self.ahead() };
        if !self.is_known() {
            return Class::Irregular;
        }
        match others[..] {
            [] if self.terms.contains(&Term::Steady) => Class::UnknownStride,
            [] => match self.step() {
                0 => Class::Constant,
                step => Class::Stride(step),
            },
            [Term::Sum { of }] => Class::IndirectDelta { of: *of },
            _ if steps > 0 => complex(),
            [Term::Ring { scale, .. }] if rings.has(load) => {
                Class::Chase { scale: *scale, offset: self.constant }
            }
            [Term::Ring { of, scale: 1 }] => {
                Class::OffsetOfChase { of: *of, offset: self.constant }
            }
            [Term::Ring { of, scale }] => {
                let inner = Box::new(Class::Chase { scale: 1, offset: 0 });
                Class::Indirect { of: *of, scale: *scale, inner }
            }
            [Term::Loaded { of, scale, inner }] => {
                Class::Indirect { of: *of, scale: *scale, inner: Box::new(inner.clone()) }
            }
            _ => complex(),
        }
    }

    /// A multiple of it.
    pub fn scaled(mut self, factor: i64) -> Self {
        self.constant = self.constant.wrapping_mul(factor);
        self.wraps = self.wraps.map(|bytes| bytes.wrapping_mul(factor.unsigned_abs()));
        for term in &mut self.terms {
            match term {
                Term::Step(by) => *by = by.wrapping_mul(factor),
                Term::Loaded { scale, .. } | Term::Ring { scale, .. } => {
                    *scale = scale.wrapping_mul(factor);
                }
                _ => {}
            }
        }
        self
    }

    /// Bytes that it advances in an iteration, apart from other terms.
    pub fn step(&self) -> i64 {
        let step = |term: &Term| if let Term::Step(step) = term { *step } else { 0 };
        self.terms.iter().map(step).fold(0, i64::wrapping_add)
    }
}

/// The loads whose addresses need their own earlier values.
#[derive(Debug, Default)]
pub(super) struct Rings(pub BTreeSet<u64>);

impl Rings {
    /// Whether the load at this address is one of them.
    pub fn has(&self, load: u64) -> bool {
        self.0.contains(&load)
    }
}
