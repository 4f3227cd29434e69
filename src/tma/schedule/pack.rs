//! Sets of events → as few groups as possible, each set inside one group.
//!
//! This is bin packing whose items overlap ("pagination"), NP-hard. A greedy start is followed by
//! a local search for one group less: a group is dissolved, its sets are put into other groups,
//! the sets they evict are queued, and sets that are evicted often become costlier to evict
//! (weights as in dynamic local search for constraint satisfaction). The search is deterministic
//! and bounded by the number of trials.

use super::allowed::Bits;
use super::counters::Universe;

#[derive(Debug, Clone, Default)]
struct Bin {
    items: Vec<usize>,
    union: Bits,
}

/// Groups (as unions of their sets) that hold every one of `items`. Each item must fit by
/// itself; `effort` bounds the search in group-against-set trials.
pub(super) fn pack(universe: &Universe, items: &[Bits], effort: usize) -> Vec<Bits> {
    let mut search = Search { universe, items, left: effort };
    let least = search.lower_bound();
    let mut best = search.start();
    while best.len() > least.max(1) && search.left > 0 {
        match search.one_less(&best) {
            Some(better) => best = better,
            None => break,
        }
    }
    search.thin(&mut best);
    best.iter().map(|b| b.union).collect()
}

struct Search<'a> {
    universe: &'a Universe,
    items: &'a [Bits],
    left: usize,
}

impl Search<'_> {
    fn lower_bound(&self) -> usize {
        let all = self.items.iter().fold(Bits::default(), |all, i| all.or(i));
        self.universe.lower_bound(&all)
    }

    /// The best of several greedy packings.
    fn start(&self) -> Vec<Bin> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        let given = self.best_fit(&order);
        order.sort_by_key(|i| {
            let size = (self.universe.weight(&self.items[*i]), self.items[*i].len());
            (std::cmp::Reverse(size), *i)
        });
        let largest_first = self.best_fit(&order);
        let filled = self.fill(&order);
        [filled, largest_first, given].into_iter().min_by_key(Vec::len).unwrap_or_default()
    }

    /// Every set into the group where it adds least.
    fn best_fit(&self, order: &[usize]) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        for &i in order {
            match self.roomiest(&bins, i) {
                Some(b) => self.put(&mut bins[b], i),
                None => {
                    bins.push(Bin::default());
                    let last = bins.len() - 1;
                    self.put(&mut bins[last], i);
                }
            }
        }
        bins
    }

    /// One group after the other, filled with the sets that add least to it.
    fn fill(&self, order: &[usize]) -> Vec<Bin> {
        let mut rest = order.to_vec();
        let mut bins = Vec::new();
        while !rest.is_empty() {
            let mut bin = Bin::default();
            self.put(&mut bin, rest.remove(0));
            while let Some(at) = self.cheapest(&bin, &rest) {
                self.put(&mut bin, rest.remove(at));
            }
            bins.push(bin);
        }
        bins
    }

    /// Index in `rest` of the set that shares most with `bin` for what it adds, if one fits.
    fn cheapest(&self, bin: &Bin, rest: &[usize]) -> Option<usize> {
        let u = self.universe;
        let cost = |i: usize| {
            let set = &self.items[i];
            let added = u.weight(&set.minus(&bin.union));
            let shared = u.weight(&set.and(&bin.union));
            // Shares in thousandths; a set that adds nothing comes first.
            (added * 1000 / (added + shared).max(1), std::cmp::Reverse(shared))
        };
        let fits = |i: usize| u.fits(&bin.union.or(&self.items[i]));
        (0..rest.len()).filter(|r| fits(rest[*r])).min_by_key(|r| cost(rest[*r]))
    }

    /// The group where item `i` fits and adds least.
    fn roomiest(&self, bins: &[Bin], i: usize) -> Option<usize> {
        let cost = |bin: &Bin| self.added(bin, i);
        let fits = |bin: &Bin| self.universe.fits(&bin.union.or(&self.items[i]));
        (0..bins.len()).filter(|b| fits(&bins[*b])).min_by_key(|b| cost(&bins[*b]))
    }

    /// Cost of adding item `i` to `bin`: general counters, events.
    fn added(&self, bin: &Bin, i: usize) -> (usize, usize) {
        let new = self.items[i].minus(&bin.union);
        (self.universe.weight(&new), new.len())
    }

    fn put(&self, bin: &mut Bin, i: usize) {
        bin.items.push(i);
        bin.union = bin.union.or(&self.items[i]);
    }

    fn without(&self, bin: &Bin, out: &[usize]) -> Bin {
        let mut rest = Bin::default();
        for &i in bin.items.iter().filter(|i| !out.contains(i)) {
            self.put(&mut rest, i);
        }
        rest
    }

    /// A packing of the same sets into one group less, if the search finds one within its effort.
    fn one_less(&mut self, from: &[Bin]) -> Option<Vec<Bin>> {
        let mut bins = from.to_vec();
        let smallest = (0..bins.len()).min_by_key(|b| self.universe.weight(&bins[*b].union))?;
        let mut pool = bins.swap_remove(smallest).items;
        let mut weights = vec![1usize; self.items.len()];
        while let Some(at) = self.next(&pool, &weights) {
            let i = pool.swap_remove(at);
            let (b, out) = self.cheapest_push(&bins, i, &weights)?;
            bins[b] = self.without(&bins[b], &out);
            self.put(&mut bins[b], i);
            for o in out {
                weights[o] += 1;
                pool.push(o);
            }
        }
        Some(bins)
    }

    /// Which waiting set comes next: the one pushed out most often, of equals the largest.
    fn next(&self, pool: &[usize], weights: &[usize]) -> Option<usize> {
        let size = |i: usize| (weights[i], self.universe.weight(&self.items[i]));
        (0..pool.len()).max_by_key(|p| size(pool[*p]))
    }

    /// The group to put item `i` into and the sets to push out of it, at least weight.
    /// `None` when the effort is spent.
    fn cheapest_push(
        &mut self,
        bins: &[Bin],
        i: usize,
        weights: &[usize],
    ) -> Option<(usize, Vec<usize>)> {
        let mut best = None;
        let mut least = (usize::MAX, (usize::MAX, usize::MAX));
        for (b, bin) in bins.iter().enumerate() {
            let Some((cost, out)) = self.push(bin, i, weights, least.0) else { continue };
            let key = (cost, self.added(bin, i));
            if key < least {
                least = key;
                best = Some((b, out));
            }
        }
        best.filter(|_| self.left > 0)
    }

    /// Which sets leave `bin` for item `i`, with their weight; `None` if over `limit`.
    fn push(
        &mut self,
        bin: &Bin,
        i: usize,
        weights: &[usize],
        limit: usize,
    ) -> Option<(usize, Vec<usize>)> {
        self.left = self.left.saturating_sub(1);
        let item = &self.items[i];
        if self.universe.fits(&bin.union.or(item)) {
            return Some((0, Vec::new()));
        }
        let mut out = Vec::new();
        let mut cost = 0;
        let mut rest = bin.items.clone();
        // One alone, if it suffices; else the lightest for what it frees, one after the other.
        rest.sort_by_key(|o| weights[*o]);
        for &o in &rest {
            if weights[o] > limit {
                break;
            }
            let kept = self.without(bin, &[o]);
            self.left = self.left.saturating_sub(1);
            if self.universe.fits(&kept.union.or(item)) {
                return Some((weights[o], vec![o]));
            }
        }
        for &o in &rest {
            cost += weights[o];
            if cost > limit {
                return None;
            }
            out.push(o);
            let kept = self.without(bin, &out);
            self.left = self.left.saturating_sub(1);
            if self.universe.fits(&kept.union.or(item)) {
                return Some((cost, out));
            }
        }
        None
    }

    /// Moves and exchanges sets between groups as long as that saves events.
    fn thin(&self, bins: &mut Vec<Bin>) {
        // More passes hardly save more.
        for _ in 0..4 {
            let mut saved = false;
            for i in 0..self.items.len() {
                saved |= self.relocate(bins, i) || self.exchange(bins, i);
            }
            bins.retain(|b| !b.items.is_empty());
            if !saved {
                break;
            }
        }
    }

    /// Moves item `i` to the group where that saves most events.
    fn relocate(&self, bins: &mut [Bin], i: usize) -> bool {
        let Some(home) = home(bins, i) else { return false };
        let kept = self.without(&bins[home], &[i]);
        let saved = bins[home].union.len() - kept.union.len();
        let target = (0..bins.len())
            .filter(|b| *b != home)
            .map(|b| (saved.saturating_sub(self.added(&bins[b], i).1), b))
            .filter(|(gain, b)| *gain > 0 && self.universe.fits(&bins[*b].union.or(&self.items[i])))
            .max();
        let Some((_, target)) = target else { return false };
        bins[home] = kept;
        self.put(&mut bins[target], i);
        true
    }

    /// Exchanges item `i` for one of another group, if that saves events.
    fn exchange(&self, bins: &mut [Bin], i: usize) -> bool {
        let Some(home) = home(bins, i) else { return false };
        let kept = self.without(&bins[home], &[i]);
        for b in (0..bins.len()).filter(|b| *b != home) {
            for &o in &bins[b].items {
                let mine = kept.union.or(&self.items[o]);
                let rest = self.without(&bins[b], &[o]);
                let theirs = rest.union.or(&self.items[i]);
                let before = bins[home].union.len() + bins[b].union.len();
                if mine.len() + theirs.len() < before
                    && self.universe.fits(&mine)
                    && self.universe.fits(&theirs)
                {
                    (bins[home], bins[b]) = (kept, rest);
                    self.put(&mut bins[home], o);
                    self.put(&mut bins[b], i);
                    return true;
                }
            }
        }
        false
    }
}

fn home(bins: &[Bin], i: usize) -> Option<usize> {
    bins.iter().position(|b| b.items.contains(&i))
}
