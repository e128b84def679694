//! Maximum flow in whole numbers (Dinic's algorithm).

/// More than any sum of capacities.
pub(crate) const INFINITE: i64 = i64::MAX / 4;
const NONE: usize = usize::MAX;

/// A network; edge `e` and its reverse `e ^ 1` hold what can still flow.
pub(crate) struct Flow {
    first: Vec<usize>,
    next: Vec<usize>,
    to: Vec<usize>,
    left: Vec<i64>,
}

impl Flow {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { first: vec![NONE; nodes], next: Vec::new(), to: Vec::new(), left: Vec::new() }
    }

    /// Adds an edge; returns its number.
    pub(crate) fn edge(&mut self, from: usize, to: usize, capacity: i64) -> usize {
        let e = self.to.len();
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            self.next.push(self.first[from]);
            self.first[from] = self.to.len();
            self.to.push(to);
            self.left.push(capacity);
        }
        e
    }

    /// What flows over an edge.
    pub(crate) fn over(&self, edge: usize) -> i64 {
        self.left[edge ^ 1]
    }

    /// The maximum flow from `s` to `t`, or `limit` where it is more.
    pub(crate) fn run(&mut self, s: usize, t: usize, limit: i64) -> i64 {
        let mut total = 0;
        while total < limit {
            let level = self.levels(s);
            if level[t] == NONE {
                break;
            }
            let mut at = self.first.clone();
            loop {
                let pushed = self.push(s, t, limit - total, &level, &mut at);
                if pushed == 0 {
                    break;
                }
                total += pushed;
            }
        }
        total
    }

    /// After [`Flow::run`]: the nodes that can still be reached from `s`, the smallest minimum cut.
    pub(crate) fn reached(&self, s: usize) -> Vec<bool> {
        self.levels(s).into_iter().map(|level| level != NONE).collect()
    }

    fn levels(&self, s: usize) -> Vec<usize> {
        let mut level = vec![NONE; self.first.len()];
        let mut queue = vec![s];
        level[s] = 0;
        let mut head = 0;
        while head < queue.len() {
            let u = queue[head];
            head += 1;
            let mut e = self.first[u];
            while e != NONE {
                let v = self.to[e];
                if self.left[e] > 0 && level[v] == NONE {
                    level[v] = level[u] + 1;
                    queue.push(v);
                }
                e = self.next[e];
            }
        }
        level
    }

    /// Depth is bounded by the number of nodes, a few hundred.
    fn push(&mut self, u: usize, t: usize, most: i64, level: &[usize], at: &mut [usize]) -> i64 {
        if u == t {
            return most;
        }
        while at[u] != NONE {
            let e = at[u];
            let v = self.to[e];
            if self.left[e] > 0 && level[v] == level[u] + 1 {
                let pushed = self.push(v, t, most.min(self.left[e]), level, at);
                if pushed > 0 {
                    self.left[e] -= pushed;
                    self.left[e ^ 1] += pushed;
                    return pushed;
                }
            }
            at[u] = self.next[e];
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_with_a_detour() {
        let mut f = Flow::new(4);
        let edges = [(0, 1, 3), (0, 2, 2), (1, 2, 5), (1, 3, 2), (2, 3, 3)].map(|(a, b, c)| f.edge(a, b, c));
        assert_eq!(f.run(0, 3, INFINITE), 5);
        assert_eq!(edges.map(|e| f.over(e)), [3, 2, 1, 2, 3]);
        assert_eq!(f.reached(0), [true, false, false, false]);
    }

    #[test]
    fn a_limit_stops_it() {
        let mut f = Flow::new(2);
        f.edge(0, 1, 10);
        assert_eq!(f.run(0, 1, 4), 4);
    }
}
