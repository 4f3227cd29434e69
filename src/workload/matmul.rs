//! Matrix multiplication as an experiment: one product, four loop orders.
//!
//! The elements are small whole numbers, so every order of summation gives exactly the same
//! product, and the same checksum.

use super::memory::{Pages, Region};
use super::{Program, Setup};
use tma::Result;

/// Edge of a block, in elements: 8 × 8 doubles are eight cache lines.
const BLOCK: usize = 8;
/// Minimum number of multiply-adds between two readings of the clock.
const SLICE: u64 = 1 << 17;
/// Rows of the control's matrices: all three fit a first-level data cache of 32 KiB.
const IN_L1: u64 = 32;

/// Textbook order i, j, k: the inner loop walks down a column of B.
pub(super) fn naive(setup: Setup) -> Result<Box<dyn Program>> {
    Multiply::program(setup, 1, naive_rows)
}

/// As [`naive`], in blocks of 8 × 8.
pub(super) fn blocked(setup: Setup) -> Result<Box<dyn Program>> {
    Multiply::program(setup, BLOCK, blocked_rows)
}

/// Order i, k, j: the inner loop walks along rows of B and C.
pub(super) fn interchanged(setup: Setup) -> Result<Box<dyn Program>> {
    Multiply::program(setup, 1, interchanged_rows)
}

/// Order i, k, j on copies of the rows of A and C.
pub(super) fn copied(setup: Setup) -> Result<Box<dyn Program>> {
    Multiply::program(setup, 1, copied_rows)
}

/// Bytes that size `n` needs: three matrices, and the copied rows.
pub(super) fn bytes(n: u64) -> Option<u64> {
    n.checked_mul(n)?.checked_mul(24)?.checked_add(n.checked_mul(16)?)
}

/// Computes rows `from..to` of C = A × B, all n × n; the last slice is room for two rows.
type Rows = fn(Matrices<'_>, from: usize, to: usize);

/// The three matrices, row by row, and room for two rows.
struct Matrices<'a> {
    n: usize,
    a: &'a [f64],
    b: &'a [f64],
    c: &'a mut [f64],
    spare: &'a mut [f64],
}

struct Multiply {
    region: Region,
    n: usize,
    /// Rows computed together.
    step: usize,
    rows: Rows,
    /// Next row.
    at: usize,
    per_repeat: u64,
}

impl Multiply {
    /// Size n × n; control: 32 × 32, repeated to do the same work.
    fn program(setup: Setup, step: usize, rows: Rows) -> Result<Box<dyn Program>> {
        let n = if setup.control { setup.size.min(IN_L1) } else { setup.size };
        let mut region = Region::new(bytes(n).unwrap_or(u64::MAX), Pages::Default)?;
        let per_repeat = setup.size.saturating_pow(3);
        let n = n as usize;
        let m = matrices(&mut region, n);
        m.c.fill(0.0);
        let (a, b, _) = split(region.numbers(), n);
        for i in 0..n {
            for j in 0..n {
                (a[i * n + j], b[i * n + j]) = (element_a(i, j), element_b(i, j));
            }
        }
        Ok(Box::new(Self { region, n, step, rows, at: 0, per_repeat }))
    }
}

/// A's element in row i, column k: a whole number from −3 to 3.
fn element_a(i: usize, k: usize) -> f64 {
    ((i + 2 * k) % 7) as f64 - 3.0
}

/// B's element in row k, column j: a whole number from −2 to 2.
fn element_b(k: usize, j: usize) -> f64 {
    ((3 * k + j) % 5) as f64 - 2.0
}

/// A, B and the rest.
fn split(numbers: &mut [f64], n: usize) -> (&mut [f64], &mut [f64], &mut [f64]) {
    let (a, rest) = numbers.split_at_mut(n * n);
    let (b, rest) = rest.split_at_mut(n * n);
    (a, b, rest)
}

fn matrices(region: &mut Region, n: usize) -> Matrices<'_> {
    let (a, b, rest) = split(region.numbers(), n);
    let (c, spare) = rest.split_at_mut(n * n);
    Matrices { n, a, b, c, spare }
}

impl Program for Multiply {
    /// Whole rows (blocks of rows), never past the last.
    fn slice(&mut self) -> u64 {
        let per_row = (self.n * self.n) as u64;
        let rows = (SLICE.div_ceil(per_row) as usize).next_multiple_of(self.step);
        let (from, to) = (self.at, self.n.min(self.at + rows));
        (self.rows)(matrices(&mut self.region, self.n), from, to);
        self.at = if to == self.n { 0 } else { to };
        (to - from) as u64 * per_row
    }

    fn per_repeat(&self) -> u64 {
        self.per_repeat
    }

    /// Σ element × (1 + its index), modulo 2^64; rows not computed yet are 0.
    fn checksum(&self) -> u64 {
        let n = self.n;
        let start = self.region.start().cast::<f64>();
        (0..n * n).fold(0, |sum: u64, i| {
            // SAFETY: C is the third of three n × n matrices in the region.
            let element = unsafe { start.add(2 * n * n + i).read() };
            sum.wrapping_add((element as i64 as u64).wrapping_mul(i as u64 + 1))
        })
    }
}

#[inline(never)]
fn naive_rows(m: Matrices<'_>, from: usize, to: usize) {
    let n = m.n;
    for i in from..to {
        let row = &m.a[i * n..(i + 1) * n];
        for j in 0..n {
            let mut sum = 0.0;
            for (k, a) in row.iter().enumerate() {
                sum += a * m.b[k * n + j];
            }
            m.c[i * n + j] = sum;
        }
    }
}

#[inline(never)]
fn blocked_rows(m: Matrices<'_>, from: usize, to: usize) {
    let n = m.n;
    m.c[from * n..to * n].fill(0.0);
    for i0 in (from..to).step_by(BLOCK) {
        for j0 in (0..n).step_by(BLOCK) {
            for k0 in (0..n).step_by(BLOCK) {
                let (i1, j1, k1) = (to.min(i0 + BLOCK), n.min(j0 + BLOCK), n.min(k0 + BLOCK));
                for i in i0..i1 {
                    for j in j0..j1 {
                        let mut sum = m.c[i * n + j];
                        for k in k0..k1 {
                            sum += m.a[i * n + k] * m.b[k * n + j];
                        }
                        m.c[i * n + j] = sum;
                    }
                }
            }
        }
    }
}

/// row += factor × other.
#[inline]
fn add_multiple(row: &mut [f64], factor: f64, other: &[f64]) {
    for (c, b) in row.iter_mut().zip(other) {
        *c += factor * b;
    }
}

#[inline(never)]
fn interchanged_rows(m: Matrices<'_>, from: usize, to: usize) {
    let n = m.n;
    for i in from..to {
        let row = &mut m.c[i * n..(i + 1) * n];
        row.fill(0.0);
        for k in 0..n {
            let a = m.a[i * n + k];
            add_multiple(row, a, &m.b[k * n..(k + 1) * n]);
        }
    }
}

#[inline(never)]
fn copied_rows(m: Matrices<'_>, from: usize, to: usize) {
    let n = m.n;
    let (row_a, row_c) = m.spare[..2 * n].split_at_mut(n);
    for i in from..to {
        row_a.copy_from_slice(&m.a[i * n..(i + 1) * n]);
        row_c.fill(0.0);
        for (k, a) in row_a.iter().enumerate() {
            add_multiple(row_c, *a, &m.b[k * n..(k + 1) * n]);
        }
        m.c[i * n..(i + 1) * n].copy_from_slice(row_c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(&str, usize, Rows); 4] = [
        ("naive", 1, naive_rows),
        ("blocked", BLOCK, blocked_rows),
        ("interchanged", 1, interchanged_rows),
        ("copied", 1, copied_rows),
    ];

    fn product(rows: Rows, step: usize, n: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
        // NaN shows an element that was never written.
        let (mut c, mut spare) = (vec![f64::NAN; n * n], vec![f64::NAN; 2 * n]);
        for from in (0..n).step_by(step) {
            let m = Matrices { n, a, b, c: &mut c, spare: &mut spare };
            rows(m, from, n.min(from + step));
        }
        c
    }

    #[test]
    fn every_order_gives_the_product_worked_out_by_hand() {
        let (a, b) = ([1., 2., 3., 4., 5., 6., 7., 8., 10.], [2., 0., 1., 1., 3., 0., 0., 1., 4.]);
        let expected = [4., 9., 13., 13., 21., 28., 22., 34., 47.];
        for (name, step, rows) in ALL {
            assert_eq!(product(rows, step, 3, &a, &b), expected, "{name}");
            assert_eq!(product(rows, step, 1, &[3.], &[-4.]), [-12.], "{name}");
        }
    }

    #[test]
    fn every_order_gives_the_same_product_also_beside_the_blocks() {
        for n in [7usize, 8, 9, 17, 40] {
            let fill = |f: fn(usize, usize) -> f64| -> Vec<f64> {
                (0..n * n).map(|x| f(x / n, x % n)).collect()
            };
            let (a, b) = (fill(element_a), fill(element_b));
            let naive = product(naive_rows, 1, n, &a, &b);
            for (name, step, rows) in ALL {
                assert_eq!(product(rows, step, n, &a, &b), naive, "{name} {n}");
            }
        }
    }
}
