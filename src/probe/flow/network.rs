//! A network in which as much flows into each node as out of it, but for the outside. An arc's flow follows from the
//! known ones if nothing else unknown joins its two sides: if it is a bridge of the graph of unknown arcs.

/// How a count is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It was counted.
    Counted,
    /// It follows from counts.
    Derived,
    /// It agrees with all counts, and is nearest to shares that were recorded.
    Sampled,
    /// It agrees with all counts, but others would, too.
    Fitted,
    /// Nothing is known of it.
    #[default]
    Unknown,
}

/// A count, and how it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flowing {
    /// How often; 0 if it is unknown.
    pub count: f64,
    /// How that is known.
    pub how: How,
}

impl Flowing {
    /// A count of a probe.
    pub fn counted(count: u64) -> Self {
        Self { count: count as f64, how: How::Counted }
    }

    /// The count as a whole number; `None` if it is unknown.
    pub fn number(self) -> Option<u64> {
        (self.how != How::Unknown).then_some(self.count.round() as u64)
    }
}

/// Something that flows from one node to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arc {
    pub from: usize,
    pub to: usize,
    /// What flows.
    pub flow: Flowing,
    /// Its share where several arcs are fitted, relative to theirs.
    pub weight: f64,
    /// That share was recorded.
    pub is_sampled: bool,
}

impl Arc {
    pub fn is_unknown(&self) -> bool {
        self.flow.how == How::Unknown
    }
}

/// Nodes and arcs. The last node is the outside.
#[derive(Debug, Clone, Default)]
pub(super) struct Network {
    pub nodes: usize,
    pub arcs: Vec<Arc>,
}

/// Passes of derivation: each finds at least one more arc without flow.
const MOST_PASSES: usize = 64;
/// Share of the flow through a node by which fitted arcs may miss it: fitting ends after some rounds.
const LOOSE: f64 = 1e-3;

impl Network {
    /// Derives what follows, known no better than what it rests on. What would flow backwards, which is set to nothing:
    /// 0 if the counts agree.
    pub fn derive(&mut self) -> f64 {
        let known = self.arcs.iter().map(|arc| arc.flow.how).filter(|how| *how != How::Unknown);
        let how = known.fold(How::Derived, How::max);
        for _ in 0..MOST_PASSES {
            let derived = self.bridges(how);
            if !self.close(how) && !derived {
                break;
            }
        }
        let negative: f64 = self.arcs.iter().map(|arc| (-arc.flow.count).max(0.0)).sum();
        for arc in self.arcs.iter_mut().filter(|arc| arc.flow.count < 0.0) {
            arc.flow = Flowing { count: 0.0, how: How::Fitted };
        }
        negative
    }

    /// What flows into each node minus what flows out, over known arcs.
    fn surplus(&self) -> Vec<f64> {
        let mut surplus = vec![0.0; self.nodes];
        for arc in self.arcs.iter().filter(|arc| !arc.is_unknown()) {
            surplus[arc.to] += arc.flow.count;
            surplus[arc.from] -= arc.flow.count;
        }
        surplus
    }

    /// The surplus of all nodes without unknown arcs, besides the outside; where arcs are fitted, if it is more than
    /// rounds of fitting leave.
    pub fn imbalance(&self) -> f64 {
        let mut surplus = self.surplus();
        let mut loose = vec![0.0; self.nodes];
        for arc in &self.arcs {
            for node in [arc.from, arc.to] {
                match arc.flow.how {
                    How::Unknown => surplus[node] = 0.0,
                    How::Sampled | How::Fitted => loose[node] = LOOSE,
                    How::Counted | How::Derived => {}
                }
            }
        }
        let mut through = vec![0.0; self.nodes];
        self.arcs.iter().for_each(|arc| through[arc.to] += arc.flow.count);
        surplus.pop();
        let nodes = surplus.into_iter().zip(loose.into_iter().zip(through));
        let misses = |(surplus, (loose, through)): (f64, (f64, f64))| {
            let least = if loose > 0.0 { (loose * through).max(0.5) } else { 0.0 };
            Some(surplus.abs()).filter(|surplus| *surplus > least)
        };
        nodes.filter_map(misses).sum()
    }

    /// Unknown arcs carry nothing where all that enters a node leaves it by known ones, or the other way round. Whether
    /// there were some.
    fn close(&mut self, how: How) -> bool {
        // By node and side: what flows there, and whether an arc of it is unknown.
        let mut sides = vec![[(0.0, false); 2]; self.nodes];
        for arc in &self.arcs {
            for (node, side) in [(arc.to, 0), (arc.from, 1)] {
                let of = &mut sides[node][side];
                *of = (of.0 + arc.flow.count, of.1 || arc.is_unknown());
            }
        }
        let outside = self.nodes - 1;
        let is_closed = |node: usize, side: usize| {
            let (own, other) = (sides[node][side], sides[node][1 - side]);
            node != outside && !other.1 && own.0 >= other.0
        };
        let mut any = false;
        for arc in self.arcs.iter_mut().filter(|arc| arc.is_unknown()) {
            if is_closed(arc.to, 0) || is_closed(arc.from, 1) {
                arc.flow = Flowing { count: 0.0, how };
                any = true;
            }
        }
        any
    }

    /// Gives every bridge among the unknown arcs its flow. Whether there were some.
    fn bridges(&mut self, how: How) -> bool {
        let mut beside = vec![Vec::new(); self.nodes];
        for (number, arc) in self.arcs.iter().enumerate().filter(|(_, arc)| arc.is_unknown()) {
            beside[arc.from].push((number, arc.to));
            beside[arc.to].push((number, arc.from));
        }
        let mut search = Search {
            beside,
            surplus: self.surplus(),
            order: vec![0; self.nodes],
            low: vec![0; self.nodes],
            next: 1,
            found: Vec::new(),
        };
        // From the outside first: what is below a bridge then never contains it.
        for root in (0..self.nodes).rev() {
            if search.order[root] == 0 {
                search.from(root);
            }
        }
        for (number, below, surplus) in &search.found {
            let arc = &mut self.arcs[*number];
            // What is below keeps nothing: its surplus leaves by the bridge.
            let count = if arc.from == *below { *surplus } else { -surplus };
            arc.flow = Flowing { count, how };
        }
        !search.found.is_empty()
    }
}

/// A depth-first search for bridges (Tarjan, Information Processing Letters 2, 1974), with the surplus of all nodes
/// below each node.
struct Search {
    beside: Vec<Vec<(usize, usize)>>,
    surplus: Vec<f64>,
    /// When each node was found, from 1.
    order: Vec<usize>,
    /// The earliest node that is reached from below it.
    low: Vec<usize>,
    next: usize,
    /// Bridges: the arc, the node below it, and the surplus there.
    found: Vec<(usize, usize, f64)>,
}

impl Search {
    fn enter(&mut self, node: usize) {
        self.order[node] = self.next;
        self.low[node] = self.next;
        self.next += 1;
    }

    fn from(&mut self, root: usize) {
        self.enter(root);
        // Node, the arc that it was found by, and the next of the arcs beside it.
        let mut path = vec![(root, usize::MAX, 0)];
        while let Some((node, by, next)) = path.last_mut() {
            let (node, by) = (*node, *by);
            if let Some((arc, other)) = self.beside[node].get(*next).copied() {
                *next += 1;
                if arc == by {
                    continue;
                }
                if self.order[other] == 0 {
                    self.enter(other);
                    path.push((other, arc, 0));
                } else {
                    self.low[node] = self.low[node].min(self.order[other]);
                }
                continue;
            }
            path.pop();
            let Some((above, ..)) = path.last() else { return };
            self.surplus[*above] += self.surplus[node];
            self.low[*above] = self.low[*above].min(self.low[node]);
            if self.low[node] > self.order[*above] {
                self.found.push((by, node, self.surplus[node]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit::solve;
    use super::*;

    fn network(nodes: usize, arcs: &[(usize, usize, Option<u64>)]) -> Network {
        let arc = |(from, to, count): &(usize, usize, Option<u64>)| Arc {
            from: *from,
            to: *to,
            flow: count.map_or_else(Flowing::default, Flowing::counted),
            weight: 1.0,
            is_sampled: false,
        };
        Network { nodes, arcs: arcs.iter().map(arc).collect() }
    }

    fn solved(mut of: Network) -> (Vec<(f64, How)>, f64) {
        let rest = solve(&mut of);
        (of.arcs.iter().map(|arc| (arc.flow.count, arc.flow.how)).collect(), rest)
    }

    /// By hand: 10 enter, 3 go one way, so 7 the other; both meet again and leave.
    #[test]
    fn the_other_way_and_the_end_follow() {
        let arcs = [(4, 0, Some(10)), (0, 1, Some(3)), (0, 2, None), (1, 3, None), (2, 3, None)];
        let (found, rest) = solved(network(5, &[&arcs[..], &[(3, 4, None)]].concat()));
        let derived = |count: f64| (count, How::Derived);
        assert_eq!(found[2..], [derived(7.0), derived(3.0), derived(7.0), derived(10.0)]);
        assert_eq!(rest, 0.0);
    }

    /// What leaves node 0 equals what enters it by known arcs: the unknown arc into it carries nothing, and so on.
    #[test]
    fn arcs_beside_balanced_ones_carry_nothing() {
        let arcs = [(3, 0, Some(5)), (1, 0, None), (0, 2, Some(5)), (2, 1, None), (2, 3, None)];
        let (found, rest) = solved(network(4, &arcs));
        assert_eq!(
            (found[1], found[3], found[4]),
            ((0.0, How::Derived), (0.0, How::Derived), (5.0, How::Derived))
        );
        assert_eq!(rest, 0.0);
    }

    /// Two sources of 30 and 10 and two targets of 20 and 20, joined by four unknown arcs: in proportion to both.
    #[test]
    fn what_does_not_follow_is_fitted_in_proportion() {
        let known = [(4, 0, Some(30)), (4, 1, Some(10)), (2, 4, Some(20)), (3, 4, Some(20))];
        let unknown = [(0, 2, None), (0, 3, None), (1, 2, None), (1, 3, None)];
        let (found, rest) = solved(network(5, &[&known[..], &unknown[..]].concat()));
        let all: Vec<f64> = found[4..].iter().map(|(count, _)| count.round()).collect();
        assert_eq!(all, [15.0, 15.0, 5.0, 5.0]);
        assert!(found[4..].iter().all(|(_, how)| *how == How::Fitted) && rest == 0.0);
    }

    /// The same, but 6 of 10 of the first source were seen to go to the first target: 18, so the other source sends 2 there.
    #[test]
    fn recorded_shares_decide_where_others_are_open() {
        let known = [(4, 0, Some(30)), (4, 1, Some(10)), (2, 4, Some(20)), (3, 4, Some(20))];
        let unknown = [(0, 2, None), (0, 3, None), (1, 2, None), (1, 3, None)];
        let mut of = network(5, &[&known[..], &unknown[..]].concat());
        for (arc, share) in [(4, 0.6), (5, 0.4)] {
            (of.arcs[arc].weight, of.arcs[arc].is_sampled) = (share, true);
        }
        let (found, _) = solved(of);
        let all: Vec<f64> = found[4..].iter().map(|(count, _)| count.round()).collect();
        assert_eq!(all, [18.0, 12.0, 2.0, 8.0]);
        assert_eq!([4, 5, 6].map(|arc| found[arc].1), [How::Sampled, How::Sampled, How::Fitted]);
    }

    /// 10 enter, and go by either of two unknown arcs; 7 leave.
    #[test]
    fn counts_that_disagree_beyond_unknown_arcs_are_noticed() {
        let arcs = [(2, 0, Some(10)), (0, 1, None), (0, 1, None), (1, 2, Some(7))];
        assert!(solved(network(3, &arcs)).1 > 1.0);
    }

    /// Of 10 fitted that enter, 3 go one way.
    #[test]
    fn what_rests_on_fitted_counts_is_fitted() {
        let mut of = network(2, &[(1, 0, Some(10)), (0, 1, Some(3)), (0, 1, None)]);
        of.arcs[0].flow.how = How::Fitted;
        assert_eq!(solved(of).0[2], (7.0, How::Fitted));
    }

    #[test]
    fn counts_that_disagree_and_unknown_networks_are_told() {
        let (_, rest) = solved(network(2, &[(1, 0, Some(5)), (0, 1, Some(4))]));
        assert_eq!(rest, 1.0);
        let (found, _) = solved(network(2, &[(1, 0, None), (0, 1, None)]));
        assert!(found.iter().all(|(_, how)| *how == How::Unknown));
    }
}
