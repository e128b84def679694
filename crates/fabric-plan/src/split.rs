//! Removes the nodes that only forward, keeping what trees from given roots can carry.
//!
//! Edges `(u, w)` and `(w, t)` at a relay `w` become an edge `(u, t)`, as much at a time as no cut between the source and a GPU
//! is lowered below the need. Where what enters each relay equals what leaves it, this removes every relay (Bang-Jensen, Frank,
//! Jackson 1995; ForestColl uses it for switches). Elsewhere something may be left over, which is dropped.

use super::flow::INFINITE;
use super::net::Net;
use super::optimum::Roots;
use crate::Result;
use std::collections::BTreeMap;

/// A way through relays and its capacity.
pub(crate) type Piece = (Vec<usize>, i64);

/// Edges between GPUs of the job, each made of pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces(pub(crate) BTreeMap<(usize, usize), Vec<Piece>>);

impl Pieces {
    fn take(&mut self, edge: (usize, usize), mut amount: i64) -> Vec<Piece> {
        let mut out = Vec::new();
        let Some(pieces) = self.0.get_mut(&edge) else { return out };
        while amount > 0 {
            let Some((way, left)) = pieces.last_mut() else { break };
            let part = amount.min(*left);
            out.push((way.clone(), part));
            *left -= part;
            amount -= part;
            if *left == 0 {
                pieces.pop();
            }
        }
        out
    }

    fn put(&mut self, edge: (usize, usize), way: Vec<usize>, amount: i64) {
        let pieces = self.0.entry(edge).or_default();
        match pieces.iter_mut().find(|(w, _)| *w == way) {
            Some((_, left)) => *left += amount,
            None => pieces.push((way, amount)),
        }
    }

    /// The graph on the same nodes that has only these edges.
    pub(crate) fn net(&self, like: &Net) -> Net {
        let mut net = like.bare();
        for ((u, v), pieces) in &self.0 {
            net.add(*u, *v, pieces.iter().map(|(_, amount)| amount).sum());
        }
        net
    }

    pub(crate) fn scaled(&self, times: i64, over: i64) -> Self {
        let scale = |p: &Vec<Piece>| p.iter().map(|(way, c)| (way.clone(), c * times / over)).collect();
        Self(self.0.iter().map(|(edge, p)| (*edge, scale(p))).collect())
    }

    /// Half of each piece and half of each turned round; all amounts doubled.
    pub(crate) fn both_ways(&self) -> Self {
        let mut out = Self::default();
        for ((u, v), pieces) in &self.0 {
            for (way, amount) in pieces {
                out.put((*u, *v), way.clone(), *amount);
                out.put((*v, *u), way.iter().rev().copied().collect(), *amount);
            }
        }
        out
    }
}

/// Splits off every relay of `net`, whose capacities are in the units of `roots`.
pub(crate) fn split(net: &Net, roots: &Roots) -> Result<Pieces> {
    let mut net = net.clone();
    let mut pieces = Pieces::default();
    net.edges().for_each(|(u, v, c)| pieces.put((u, v), vec![u, v], c));
    let relays: Vec<usize> = (0..net.n).filter(|&w| !net.is_job(w)).collect();
    for w in relays {
        let around = |out: bool| -> Vec<usize> {
            (0..net.n).filter(|&x| if out { net.at(w, x) > 0 } else { net.at(x, w) > 0 }).collect()
        };
        let (into, out) = (around(false), around(true));
        for &t in &out {
            // There and back again is of no use, so it comes last.
            let mut from: Vec<usize> = into.iter().copied().filter(|&u| u != t).collect();
            from.extend(into.iter().copied().filter(|&u| u == t));
            for u in from {
                let most = net.at(u, w).min(net.at(w, t));
                let amount = spare(&net, roots, (u, w, t), most)?;
                if amount == 0 {
                    continue;
                }
                net.add(u, w, -amount);
                net.add(w, t, -amount);
                let (first, second) = (pieces.take((u, w), amount), pieces.take((w, t), amount));
                if u != t {
                    net.add(u, t, amount);
                    join(&mut pieces, (u, t), first, second);
                }
            }
        }
        for x in 0..net.n {
            for (a, b) in [(x, w), (w, x)] {
                net.add(a, b, -net.at(a, b));
                pieces.0.remove(&(a, b));
            }
        }
    }
    pieces.0.retain(|_, p| !p.is_empty());
    Ok(pieces)
}

/// Ways of `first` continued by ways of `second`, without loops.
fn join(pieces: &mut Pieces, edge: (usize, usize), first: Vec<Piece>, second: Vec<Piece>) {
    let mut second = second.into_iter();
    let mut tail = second.next();
    for (head, mut amount) in first {
        while amount > 0 {
            let Some((way, left)) = &mut tail else { return };
            let part = amount.min(*left);
            let mut whole: Vec<usize> = Vec::with_capacity(head.len() + way.len());
            for &x in head.iter().chain(&way[1..]) {
                if let Some(i) = whole.iter().position(|&y| y == x) {
                    whole.truncate(i);
                }
                whole.push(x);
            }
            pieces.put(edge, whole, part);
            amount -= part;
            *left -= part;
            if *left == 0 {
                tail = second.next();
            }
        }
    }
}

/// How much of `(u, w)`, `(w, t)` may become `(u, t)`: what the cuts that it lowers have to spare, at most `most`.
fn spare(net: &Net, roots: &Roots, (u, w, t): (usize, usize, usize), most: i64) -> Result<i64> {
    let mut spare = most;
    let s = net.n;
    for &v in &net.job {
        // A cut with w on the GPU's side and u and t on the source's, and one the other way round.
        for is_inside in [true, false] {
            if spare <= 0 {
                return Ok(0);
            }
            if is_inside && (v == u || v == t) {
                continue;
            }
            let mut flow = net.flow(1);
            net.job.iter().for_each(|&r| {
                flow.edge(s, r, roots.at[r]);
            });
            let (near, far): (&[usize], &[usize]) = if is_inside { (&[u, t], &[w]) } else { (&[w], &[u, t]) };
            near.iter().for_each(|&x| {
                flow.edge(s, x, INFINITE);
            });
            far.iter().filter(|&&x| x != v).for_each(|&x| {
                flow.edge(x, v, INFINITE);
            });
            let limit = roots.total + spare;
            spare = spare.min(flow.run(s, v, limit)? - roots.total);
        }
    }
    Ok(spare.max(0))
}
