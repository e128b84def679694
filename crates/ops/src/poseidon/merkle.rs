//! Merkle trees whose nodes are hashes of `arity` children.

use super::{Poseidon, PoseidonParams, Tables};
use crate::{Backend, Buffer, Canonical, Curve, Error, Lane, Mont, Result, Unaligned, VecOps};
use std::ops::Range;

const OP: &str = "merkle tree";

/// With several lanes, each gets about this many subtrees, so that no lane has much more than another.
const SUBTREES_A_LANE: usize = 16;

/// A tree of arity^height leaves in the memory of a backend's lanes, with all its nodes.
///
/// The leaves are level 0; they are not hashed themselves. Lanes hold whole subtrees, as [`subtrees`] spreads them; what is
/// above them is on the first lane.
///
/// ```
/// use tandem_ops::{cpu::Cpu, poseidon::Tables, Bn254, Canonical, Family, MerkleTree, Poseidon, PoseidonParams};
///
/// let params = PoseidonParams::new(Family::Circomlib, 2)?;
/// let backend = Cpu::new(1);
/// let hasher = Poseidon::<Bn254>::hasher(&backend, params)?;
/// let leaves: Vec<Canonical> = (0..8).map(|i| Canonical([i, 0, 0, 0])).collect();
/// let tree = MerkleTree::build::<Bn254>(&backend, &hasher, params, leaves.as_slice().into())?;
/// let path = tree.path::<Bn254>(&backend, 5)?;
/// assert!(path.verify::<Bn254>(&Tables::new(params), tree.root::<Bn254>(&backend)?, leaves[5])?);
/// # Ok::<(), tandem_ops::Error>(())
/// ```
pub struct MerkleTree<B: Backend> {
    params: PoseidonParams,
    /// For each lane that holds leaves: its first leaf, and its levels from the leaves on.
    lanes: Vec<(usize, Vec<B::Buf<Mont>>)>,
    /// The levels from the roots of the subtrees on.
    top: Vec<B::Buf<Mont>>,
    height: u32,
}

/// A leaf's way to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MerklePath {
    /// The leaf's index.
    pub index: usize,
    /// For each level from the leaves on, the other children of the node above, in their order.
    pub siblings: Vec<Vec<Canonical>>,
}

/// The h for which `leaves` = `arity`^h; `None` where there is none, as for 0.
pub fn height(leaves: usize, arity: usize) -> Option<u32> {
    let h = leaves.checked_ilog(arity)?;
    (arity.checked_pow(h) == Some(leaves)).then_some(h)
}

/// How a tree of this height lies on `lanes` lanes: the height of the subtrees, and for each lane which of them it holds.
pub fn subtrees(arity: usize, height: u32, lanes: usize) -> (u32, Vec<Range<usize>>) {
    let mut below = height;
    let mut count = 1;
    while lanes > 1 && below > 0 && count < SUBTREES_A_LANE * lanes {
        below -= 1;
        count *= arity;
    }
    (below, (0..lanes).map(|l| count * l / lanes..count * (l + 1) / lanes).collect())
}

impl<B: Backend> MerkleTree<B> {
    /// The tree over `leaves`.
    ///
    /// # Errors
    /// The number of leaves is no power of the arity; not enough memory; the device failed.
    pub fn build<C: Curve>(
        backend: &B,
        hasher: &B::Hasher,
        params: PoseidonParams,
        leaves: Unaligned<'_, Canonical>,
    ) -> Result<Self>
    where
        B: Poseidon<C> + VecOps<C>,
    {
        let height = height(leaves.len(), params.arity()).ok_or_else(|| {
            Error::invalid(OP, format!("{} leaves; expected a power of {}", leaves.len(), params.arity()))
        })?;
        let (below, split) = subtrees(params.arity(), height, backend.lanes());
        let size = params.arity().pow(below);
        let mut pieces = Vec::new();
        for (lane, range) in split.into_iter().enumerate() {
            let range = range.start * size..range.end * size;
            if !range.is_empty() {
                let mut integers = backend.alloc::<Canonical>(Lane(lane), range.len())?;
                write(backend, &mut integers, leaves.slice(range.clone()))?;
                let mut elements = backend.alloc::<Mont>(Lane(lane), range.len())?;
                VecOps::<C>::to_mont(backend, &integers, &mut elements)?;
                pieces.push((range.start, elements));
            }
        }
        Self::on_lanes::<C>(backend, hasher, params, pieces, height)
    }

    /// The tree over leaves that lie on the lanes as [`subtrees`] says: the first leaf of each piece, and the piece.
    ///
    /// # Errors
    /// As [`MerkleTree::build`].
    pub fn on_lanes<C: Curve>(
        backend: &B,
        hasher: &B::Hasher,
        params: PoseidonParams,
        pieces: Vec<(usize, B::Buf<Mont>)>,
        height: u32,
    ) -> Result<Self>
    where
        B: Poseidon<C> + VecOps<C>,
    {
        let arity = params.arity();
        let (below, split) = subtrees(arity, height, backend.lanes());
        let size = arity.pow(below);
        let expected = split.iter().enumerate().filter(|(_, range)| !range.is_empty());
        let expected = expected.map(|(lane, range)| (Lane(lane), range.start * size, range.len() * size));
        if !pieces.iter().map(|(first, piece)| (piece.lane(), *first, piece.len())).eq(expected) {
            return Err(Error::invalid(OP, format!("pieces that are not those of {arity}^{height} leaves")));
        }
        let level = |children: &B::Buf<Mont>| {
            let mut nodes = backend.alloc::<Mont>(children.lane(), children.len() / arity)?;
            backend.poseidon(hasher, children, &mut nodes)?;
            Ok::<_, Error>(nodes)
        };
        // Level by level over all lanes, so that they work at once.
        let mut lanes: Vec<_> = pieces.into_iter().map(|(first, leaves)| (first, vec![leaves])).collect();
        for at in 0..below as usize {
            for (_, levels) in &mut lanes {
                let nodes = level(&levels[at])?;
                levels.push(nodes);
            }
        }
        let mut top = Vec::new();
        if below < height {
            // The roots of the subtrees are few: they meet on the host.
            let roots: Vec<_> = lanes.iter().flat_map(|(_, l)| l.last()).map(|b| backend.download(b)).collect();
            let mut all = Vec::new();
            for roots in roots {
                all.extend(roots?.wait()?);
            }
            top.push(backend.upload(Lane(0), &all)?);
            for at in 0..(height - below) as usize {
                let nodes = level(&top[at])?;
                top.push(nodes);
            }
        }
        Ok(MerkleTree { params, lanes, top, height })
    }

    /// Levels above the leaves.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.params.arity().pow(self.height)
    }

    /// The root.
    ///
    /// # Errors
    /// The device failed.
    pub fn root<C: Curve>(&self, backend: &B) -> Result<Canonical> {
        let root = self.nodes::<C>(backend, self.height, 0..1)?;
        root.first().copied().ok_or_else(|| Error::invalid(OP, "no root"))
    }

    /// The way of leaf `index` to the root.
    ///
    /// # Errors
    /// There is no such leaf; the device failed.
    pub fn path<C: Curve>(&self, backend: &B, index: usize) -> Result<MerklePath> {
        if index >= self.leaves() {
            return Err(Error::invalid(OP, format!("leaf {index} of {}", self.leaves())));
        }
        let arity = self.params.arity();
        let mut siblings = Vec::with_capacity(self.height as usize);
        let mut at = index;
        for level in 0..self.height {
            let first = at / arity * arity;
            let mut others = self.nodes::<C>(backend, level, first..first + arity)?;
            others.remove(at - first);
            siblings.push(others);
            at /= arity;
        }
        Ok(MerklePath { index, siblings })
    }

    /// Children of one node, or the root.
    fn nodes<C: Curve>(&self, backend: &B, level: u32, range: Range<usize>) -> Result<Vec<Canonical>> {
        let below = self.height - (self.top.len().max(1) - 1) as u32;
        let (first, nodes) = if level >= below && !self.top.is_empty() {
            (0, &self.top[(level - below) as usize])
        } else {
            let start = |first: usize| first / self.params.arity().pow(level);
            let holds = |(first, levels): &&(usize, Vec<B::Buf<Mont>>)| {
                range.end <= start(*first) + levels[level as usize].len() && range.start >= start(*first)
            };
            let piece = self.lanes.iter().find(holds);
            let (first, levels) = piece.ok_or_else(|| Error::invalid(OP, "no such nodes"))?;
            (start(*first), &levels[level as usize])
        };
        let part = backend.copy(nodes, range.start - first..range.end - first, nodes.lane())?;
        Ok(backend.download(&part)?.wait()?.into_iter().map(|x| C::canonical(C::from_mont(x))).collect())
    }
}

/// Writes values of any alignment, piece by piece where they have to be moved first.
fn write<B: Backend>(backend: &B, to: &mut B::Buf<Canonical>, from: Unaligned<'_, Canonical>) -> Result<()> {
    if let Ok(aligned) = bytemuck::try_cast_slice(from.as_bytes()) {
        return backend.write(to, 0, aligned);
    }
    let size = 1 << 16;
    for at in (0..from.len()).step_by(size) {
        let piece: Vec<Canonical> = from.slice(at..from.len().min(at + size)).iter().collect();
        backend.write(to, at, &piece)?;
    }
    Ok(())
}

impl MerklePath {
    /// The root that the path gives `leaf`, computed on the host.
    ///
    /// # Errors
    /// A level has not as many nodes as the arity says; the index is of a larger tree; a node is not below the modulus.
    pub fn root<C: Curve>(&self, tables: &Tables<C::Fr>, leaf: Canonical) -> Result<Canonical> {
        let arity = tables.params().arity();
        let element = |x: Canonical| {
            C::from_canonical(x).ok_or_else(|| Error::invalid(OP, "a node of the path is not below the modulus"))
        };
        let (mut node, mut at, mut state) = (element(leaf)?, self.index, Vec::new());
        for (level, siblings) in self.siblings.iter().enumerate() {
            if siblings.len() + 1 != arity {
                let reason =
                    format!("{} other nodes at level {level} of a path; expected {}", siblings.len(), arity - 1);
                return Err(Error::invalid(OP, reason));
            }
            let mut children = siblings.iter().map(|&x| element(x)).collect::<Result<Vec<_>>>()?;
            children.insert(at % arity, node);
            node = tables.hash(children.into_iter(), &mut state);
            at /= arity;
        }
        if at != 0 {
            let reason = format!("leaf {} of a path of {} levels", self.index, self.siblings.len());
            return Err(Error::invalid(OP, reason));
        }
        Ok(C::canonical(node))
    }

    /// Whether `leaf` is at the path's index of the tree with this root.
    ///
    /// # Errors
    /// As [`MerklePath::root`].
    pub fn verify<C: Curve>(&self, tables: &Tables<C::Fr>, root: Canonical, leaf: Canonical) -> Result<bool> {
        Ok(self.root::<C>(tables, leaf)? == root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_logarithms() {
        for arity in [2usize, 4, 8, 11] {
            for h in 0..5 {
                assert_eq!(height(arity.pow(h), arity), Some(h));
            }
            assert_eq!([0, arity + 1, arity * arity - 1].map(|n| height(n, arity)), [None; 3], "{arity}");
        }
        assert_eq!(height(1 << 63, 2), Some(63));
    }

    #[test]
    fn subtrees_cover_the_tree_and_are_even() {
        for arity in [2usize, 4, 8, 11] {
            for height in 0..8 {
                for lanes in 1..=8 {
                    let (below, split) = subtrees(arity, height, lanes);
                    let count = arity.pow(height - below);
                    assert_eq!(split.len(), lanes);
                    assert_eq!((split[0].start, split[lanes - 1].end), (0, count));
                    assert!(split.windows(2).all(|w| w[0].end == w[1].start));
                    let (least, most) = (split.iter().map(|r| r.len()).min(), split.iter().map(|r| r.len()).max());
                    assert!(most.unwrap() - least.unwrap() <= 1);
                    // Even to 1 / 16, or single leaves.
                    assert!(lanes == 1 || count >= 16 * lanes || below == 0);
                }
            }
        }
    }
}
