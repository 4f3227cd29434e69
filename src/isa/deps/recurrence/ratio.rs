//! The maximum cycle ratio: over all cycles of a graph, the maximum of the sum of weights divided by the sum of distances.
//!
//! Lawler's method (1976), exact: p/q is below the maximum as long as there is a cycle with positive
//! reduced weight `weight·q − distance·p`, which the Bellman–Ford algorithm finds in O(nodes · edges).
//! The ratio of such a cycle is the next candidate. If that converges slowly, bisection continues
//! until the interval is narrower than the distance of two different ratios.

/// An edge with integer weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightedEdge {
    /// Source node.
    pub from: usize,
    /// Target node.
    pub to: usize,
    /// Latency, in arbitrary units.
    pub weight: u32,
    /// Iterations.
    pub distance: u32,
}

/// A cycle of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// Indices of its edges in path order.
    pub edges: Vec<usize>,
    /// Sum of their weights.
    pub weight: u64,
    /// Sum of their distances.
    pub distance: u64,
}

/// Candidate ratios before bisection starts.
const MAX_CANDIDATES: usize = 16;

/// The cycle with the maximum ratio, of a graph with `nodes` nodes. `None` if no ratio is positive or a
/// cycle has distance 0.
pub fn maximum(nodes: usize, edges: &[WeightedEdge]) -> Option<Cycle> {
    let mut best: Option<Cycle> = None;
    for _ in 0..MAX_CANDIDATES {
        let (p, q) = best.as_ref().map_or((0, 1), |c| (c.weight, c.distance));
        match positive(nodes, edges, p.into(), q.into()) {
            None => return best,
            Some(cycle) if cycle.distance == 0 => return None,
            Some(cycle) => best = Some(cycle),
        }
    }
    bisect(nodes, edges, best?)
}

/// The maximum ratio by bisection, starting from the ratio of some cycle.
fn bisect(nodes: usize, edges: &[WeightedEdge], mut best: Cycle) -> Option<Cycle> {
    let mut farthest = vec![0u64; nodes];
    for edge in edges {
        farthest[edge.from] = farthest[edge.from].max(edge.distance.into());
    }
    // Simple cycles are no longer than this, so different ratios differ by at least 1/longest².
    let longest = i128::from(farthest.iter().sum::<u64>().max(1)).min(1 << 40);
    let scale = 2 * longest * longest;
    let total: i128 = edges.iter().map(|e| i128::from(e.weight)).sum();
    let mut high = (total + 1).saturating_mul(scale);
    let of = |c: &Cycle| i128::from(c.weight) * scale / i128::from(c.distance.max(1));
    let mut low = of(&best);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match positive(nodes, edges, middle, scale) {
            None => high = middle,
            Some(cycle) if cycle.distance == 0 => return None,
            Some(cycle) => {
                low = middle.max(of(&cycle));
                best = cycle;
            }
        }
    }
    Some(best)
}

/// A cycle whose ratio exceeds p/q.
fn positive(nodes: usize, edges: &[WeightedEdge], p: i128, q: i128) -> Option<Cycle> {
    let mut reached = vec![0i128; nodes];
    let mut through = vec![usize::MAX; nodes];
    for pass in 0..=nodes {
        let mut changed = false;
        for (number, edge) in edges.iter().enumerate() {
            let gain = i128::from(edge.weight) * q - i128::from(edge.distance) * p;
            let there = reached[edge.from].saturating_add(gain);
            if there > reached[edge.to] {
                (reached[edge.to], through[edge.to]) = (there, number);
                changed = true;
            }
        }
        if !changed {
            return None;
        }
        // A cycle among the predecessor edges is positive. The search is expensive, so it is rare.
        if ((pass + 1).is_power_of_two() || pass == nodes)
            && let Some(cycle) = closed(edges, &through)
        {
            return Some(cycle);
        }
    }
    None
}

/// A cycle among the predecessor edges `through` of the nodes.
fn closed(edges: &[WeightedEdge], through: &[usize]) -> Option<Cycle> {
    let mut seen = vec![usize::MAX; through.len()];
    for start in 0..through.len() {
        let mut node = start;
        while seen[node] == usize::MAX && through[node] != usize::MAX {
            seen[node] = start;
            node = edges[through[node]].from;
        }
        if seen[node] == start && through[node] != usize::MAX {
            return Some(around(edges, through, node));
        }
        seen[node] = seen[node].min(start);
    }
    None
}

fn around(edges: &[WeightedEdge], through: &[usize], node: usize) -> Cycle {
    let mut cycle = Cycle { edges: Vec::new(), weight: 0, distance: 0 };
    let mut at = node;
    loop {
        let edge = &edges[through[at]];
        cycle.edges.push(through[at]);
        cycle.weight += u64::from(edge.weight);
        cycle.distance += u64::from(edge.distance);
        at = edge.from;
        if at == node {
            break;
        }
    }
    cycle.edges.reverse();
    cycle
}

/// The component of each node, given each node's successors `targets`.
pub fn components(targets: &[Vec<usize>]) -> Vec<usize> {
    let count = targets.len();
    let mut search = Search {
        index: vec![usize::MAX; count],
        low: vec![0; count],
        component: vec![usize::MAX; count],
        stack: Vec::new(),
        next: 0,
        found: 0,
    };
    for root in 0..count {
        if search.index[root] == usize::MAX {
            search.visit(root, targets);
        }
    }
    search.component
}

struct Search {
    index: Vec<usize>,
    low: Vec<usize>,
    component: Vec<usize>,
    stack: Vec<usize>,
    next: usize,
    found: usize,
}

impl Search {
    fn visit(&mut self, root: usize, targets: &[Vec<usize>]) {
        // A node and the number of its successors visited.
        let mut path = vec![(root, 0)];
        self.enter(root);
        while let Some((node, at)) = path.last_mut() {
            let node = *node;
            if let Some(next) = targets[node].get(*at).copied() {
                *at += 1;
                if self.index[next] == usize::MAX {
                    self.enter(next);
                    path.push((next, 0));
                } else if self.component[next] == usize::MAX {
                    self.low[node] = self.low[node].min(self.index[next]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
            if self.low[node] == self.index[node] {
                self.leave(node);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        (self.index[node], self.low[node]) = (self.next, self.next);
        self.next += 1;
        self.stack.push(node);
    }

    fn leave(&mut self, node: usize) {
        while let Some(top) = self.stack.pop() {
            self.component[top] = self.found;
            if top == node {
                break;
            }
        }
        self.found += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edge(from: usize, to: usize, weight: u32, distance: u32) -> WeightedEdge {
        WeightedEdge { from, to, weight, distance }
    }

    #[test]
    fn a_longer_cycle_over_more_iterations_may_have_the_smaller_ratio() {
        // 0→1→0 takes 7 over one iteration; 0→2→0 takes 12 over two.
        let edges = [edge(0, 1, 3, 0), edge(1, 0, 4, 1), edge(0, 2, 6, 0), edge(2, 0, 6, 2)];
        let cycle = maximum(3, &edges).unwrap();
        assert_eq!((cycle.weight, cycle.distance, cycle.edges.len()), (7, 1, 2));
        assert_eq!(maximum(3, &[edge(0, 1, 9, 0), edge(1, 2, 9, 1)]), None);
        assert_eq!(maximum(2, &[edge(0, 1, 0, 0), edge(1, 0, 0, 1)]), None, "0 is not a bound");
    }

    /// The maximum ratio by enumeration of all simple cycles.
    fn enumerated(nodes: usize, edges: &[WeightedEdge]) -> Option<(u64, u64)> {
        fn walk(
            edges: &[WeightedEdge],
            start: usize,
            at: usize,
            seen: u32,
            sums: (u64, u64),
            best: &mut Option<(u64, u64)>,
        ) {
            for e in edges.iter().filter(|e| e.from == at) {
                let sums = (sums.0 + u64::from(e.weight), sums.1 + u64::from(e.distance));
                if e.to == start {
                    if best.is_none_or(|b| sums.0 * b.1 > b.0 * sums.1) {
                        *best = Some(sums);
                    }
                } else if e.to > start && seen & 1 << e.to == 0 {
                    walk(edges, start, e.to, seen | 1 << e.to, sums, best);
                }
            }
        }
        let mut best = None;
        for start in 0..nodes {
            walk(edges, start, start, 1 << start, (0, 0), &mut best);
        }
        best.filter(|b| b.0 > 0)
    }

    proptest! {
        #[test]
        fn the_ratio_is_the_maximum_over_all_cycles(
            raw in prop::collection::vec((0usize..7, 0usize..7, 0u32..20_000, 0u32..4), 0..24)
        ) {
            // Edges within an iteration go forward in program order.
            let edges: Vec<WeightedEdge> = raw
                .into_iter()
                .map(|(a, b, w, d)| edge(a, b, w, if a >= b { d.max(1) } else { d }))
                .collect();
            let found = maximum(7, &edges);
            let expected = enumerated(7, &edges);
            prop_assert_eq!(found.is_some(), expected.is_some());
            if let (Some(found), Some((weight, distance))) = (&found, expected) {
                prop_assert_eq!(found.weight * distance, weight * found.distance);
                for (a, b) in found.edges.iter().zip(found.edges.iter().cycle().skip(1)) {
                    prop_assert_eq!(edges[*a].to, edges[*b].from);
                }
            }
            // Bisection from any positive cycle finds the same ratio.
            if let Some(start) = positive(7, &edges, 0, 1) {
                let bisected = bisect(7, &edges, start).unwrap();
                let found = found.unwrap();
                prop_assert_eq!(bisected.weight * found.distance, found.weight * bisected.distance);
            }
        }
    }
}
