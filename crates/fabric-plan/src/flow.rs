//! Maximum flow in whole numbers (Dinic's algorithm).

use super::budget::Clock;
use crate::Result;

/// More than any sum of capacities.
pub(crate) const INFINITE: i64 = i64::MAX / 4;
const NONE: usize = usize::MAX;

/// A network; edge `e` and its reverse `e ^ 1` hold what can still flow.
pub(crate) struct Flow {
    first: Vec<usize>,
    next: Vec<usize>,
    to: Vec<usize>,
    left: Vec<i64>,
    clock: Clock,
}

impl Flow {
    pub(crate) fn new(nodes: usize, clock: Clock) -> Self {
        Self { first: vec![NONE; nodes], next: Vec::new(), to: Vec::new(), left: Vec::new(), clock }
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
    ///
    /// # Errors
    /// The budget is used up.
    pub(crate) fn run(&mut self, s: usize, t: usize, limit: i64) -> Result<i64> {
        // What it took to make the network of a dense graph.
        self.clock.take((self.first.len() * self.first.len()) as u64)?;
        let mut total = 0;
        while total < limit {
            self.clock.take(2 * self.to.len() as u64)?;
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
                self.clock.take(self.first.len() as u64)?;
            }
        }
        Ok(total)
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
    use super::super::Budget;
    use super::*;

    #[test]
    fn a_flow_with_a_detour() {
        let mut f = Flow::new(4, Budget::default().begin());
        let edges = [(0, 1, 3), (0, 2, 2), (1, 2, 5), (1, 3, 2), (2, 3, 3)].map(|(a, b, c)| f.edge(a, b, c));
        assert_eq!(f.run(0, 3, INFINITE), Ok(5));
        assert_eq!(edges.map(|e| f.over(e)), [3, 2, 1, 2, 3]);
        assert_eq!(f.reached(0), [true, false, false, false]);
    }

    #[test]
    fn a_limit_stops_it() {
        let mut f = Flow::new(2, Budget::default().begin());
        f.edge(0, 1, 10);
        assert_eq!(f.run(0, 1, 4), Ok(4));
    }
}
