//! A Rust program to be profiled: collections, traits, iterators, strings.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

trait Step {
    fn step(&self, value: u64) -> u64;
}

struct Collatz;
struct Mix(u64);

impl Step for Collatz {
    #[inline(never)]
    fn step(&self, mut value: u64) -> u64 {
        let mut steps = 0;
        while value > 1 {
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            steps += 1;
        }
        steps
    }
}

impl Step for Mix {
    #[inline(never)]
    fn step(&self, value: u64) -> u64 {
        (0..32).fold(value, |v, i| (v ^ self.0).rotate_left(i).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

#[inline(never)]
fn sieve(limit: usize) -> Vec<usize> {
    let mut composite = vec![false; limit + 1];
    let mut primes = Vec::new();
    for n in 2..=limit {
        if !composite[n] {
            primes.push(n);
            (n * n..=limit).step_by(n).for_each(|m| composite[m] = true);
        }
    }
    primes
}

#[inline(never)]
fn gaps(primes: &[usize]) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    primes.windows(2).for_each(|pair| *found.entry(pair[1] - pair[0]).or_insert(0) += 1);
    found
}

#[inline(never)]
fn digits(primes: &[usize]) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for prime in primes {
        let mut text: Vec<char> = prime.to_string().chars().collect();
        text.sort_unstable();
        *found.entry(text.into_iter().collect()).or_insert(0) += 1;
    }
    found
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(5);
    let steps: [Box<dyn Step>; 2] = [Box::new(Collatz), Box::new(Mix(0x5eed))];
    let mut sum = 0u64;
    for round in 0..rounds {
        let primes = sieve(black_box(1_000_000));
        let gaps = gaps(&primes);
        let digits = digits(&primes);
        for step in &steps {
            sum = (0..200_000).fold(sum, |s, v| s.wrapping_add(step.step(v + round)));
        }
        sum = sum.wrapping_add((gaps.len() + digits.len()) as u64);
    }
    println!("{sum}");
}
