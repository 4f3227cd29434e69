//! Strongly connected components (Tarjan 1972, iterative).

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
