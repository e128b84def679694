//! Poseidon: columns on a lane, columns in host memory, and Merkle trees.

use crate::{samples, Outcome, Suite};
use ark_ff::UniformRand;
use tandem_ops::poseidon::{height, subtrees, Constants, Tables, WIDTHS};
use tandem_ops::{
    naive, Backend, Canonical, Curve, Error, Family, Lane, MerkleTree, Mont, Poseidon, PoseidonParams, Unaligned,
    VecOps,
};

/// What hashes are compared with.
struct Reference<F> {
    tables: Tables<F>,
    constants: Constants<F>,
}

/// Hashes up to this many are compared with the definition, and two of more.
const WHOLE: usize = 3;

impl<B: Backend> Suite<'_, B> {
    /// Hashes of every width of both families at sizes around those of a block and of a wave, and Merkle trees.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn poseidon<C: Curve>(&mut self) -> Outcome
    where
        B: Poseidon<C> + VecOps<C>,
    {
        for family in [Family::Circomlib, Family::Filecoin] {
            for arity in WIDTHS.map(|t| t - 1) {
                let params = PoseidonParams::new(family, arity)?;
                let hasher = self.backend.hasher(params)?;
                let reference = &Reference { tables: Tables::new(params), constants: params.constants() };
                let most = (1usize << self.log_n) / 64 / arity;
                for n in [0, 1, 2, 3, 127, 128, 129, most, most + 1] {
                    self.columns::<C>(&hasher, reference, n)?;
                }
                for leaves in (0..).map(|h| arity.pow(h)).take_while(|&n| n <= most.max(arity * arity)) {
                    self.tree::<C>(&hasher, reference, leaves)?;
                }
                self.poseidon_refusals::<C>(&hasher, &reference.tables)?;
            }
        }
        Ok(())
    }

    fn columns<C: Curve>(&mut self, hasher: &B::Hasher, reference: &Reference<C::Fr>, n: usize) -> Outcome
    where
        B: Poseidon<C> + VecOps<C>,
    {
        let backend = self.backend;
        let Reference { tables, constants } = reference;
        let (params, mut state) = (tables.params(), Vec::new());
        let arity = params.arity();
        let what = format!("{n} hashes of {arity} elements, {:?}", params.family());
        let input = samples::elements::<C>(n * arity, &mut samples::rng(n as u64));
        let expected: Vec<C::Fr> =
            input.chunks(arity).map(|column| tables.hash(column.iter().copied(), &mut state)).collect();
        for i in (0..n).filter(|&i| n <= WHOLE || i == n / 2 || i == n - 1) {
            let same = expected[i] == naive::poseidon(constants, &input[i * arity..(i + 1) * arity]);
            self.that(same, format_args!("{what}: hash {i} of the tables is not that of the definition"))?;
        }
        let lane = Lane(n % backend.lanes());
        let columns = backend.upload(lane, &samples::wire::<C>(&input))?;
        let mut hashes = backend.upload(lane, &vec![Mont([3; 4]); n])?;
        backend.poseidon(hasher, &columns, &mut hashes)?;
        self.holds(&hashes, &samples::wire::<C>(&expected), &what)?;
        self.holds(&columns, &samples::wire::<C>(&input), "the columns afterwards")?;

        // From host memory, at an address that is no multiple of anything.
        let integers = samples::canonical::<C>(&input);
        let mut bytes = vec![0u8];
        bytes.extend_from_slice(bytemuck::cast_slice(&integers));
        let mut out = vec![Canonical([3; 4]); n];
        let unaligned = Unaligned::new(&bytes[1..]).ok_or_else(|| crate::Failure("no elements".into()))?;
        backend.poseidon_columns(hasher, unaligned, &mut out)?;
        self.that(out == samples::canonical::<C>(&expected), format_args!("{what}, from host memory"))
    }

    fn tree<C: Curve>(&mut self, hasher: &B::Hasher, reference: &Reference<C::Fr>, leaves: usize) -> Outcome
    where
        B: Poseidon<C> + VecOps<C>,
    {
        let backend = self.backend;
        let Reference { tables, constants } = reference;
        let (params, mut state) = (tables.params(), Vec::new());
        let arity = params.arity();
        let what = format!("a tree of {leaves} leaves, arity {arity}, {:?}", params.family());
        let leaves = samples::elements::<C>(leaves, &mut samples::rng(leaves as u64));
        let mut levels = vec![leaves.clone()];
        while levels[levels.len() - 1].len() > 1 {
            let children = levels[levels.len() - 1].chunks(arity);
            levels.push(children.map(|c| tables.hash(c.iter().copied(), &mut state)).collect());
        }
        let root = C::canonical(levels[levels.len() - 1][0]);
        if leaves.len() <= arity {
            let defined = naive::merkle(constants, &leaves);
            self.that(defined == levels, format_args!("{what}: not as it is defined"))?;
        }
        let integers = samples::canonical::<C>(&leaves);
        let tree = MerkleTree::build::<C>(backend, hasher, params, integers.as_slice().into())?;
        let got = tree.root::<C>(backend)?;
        self.that(got == root && tree.leaves() == leaves.len(), format_args!("{what}: the root"))?;
        let last = leaves.len() - 1;
        for index in [0, 1, last / 3, last / 2, last].into_iter().filter(|&i| i <= last) {
            let path = tree.path::<C>(backend, index)?;
            let (mut at, mut good) = (index, path.siblings.len() == levels.len() - 1);
            for (siblings, level) in path.siblings.iter().zip(&levels) {
                let first = at / arity * arity;
                let mut expected = samples::canonical::<C>(&level[first..first + arity]);
                expected.remove(at - first);
                good &= *siblings == expected;
                at /= arity;
            }
            self.that(good, format_args!("{what}: the path of leaf {index}"))?;
            let verified = path.verify::<C>(tables, root, integers[index])?;
            let other = C::canonical(leaves[index] + C::Fr::rand(&mut samples::rng(9)));
            let forged = path.verify::<C>(tables, root, other)?;
            self.that(verified && !forged, format_args!("{what}: the check of the path of leaf {index}"))?;
        }
        self.refused(tree.path::<C>(backend, leaves.len()), format_args!("{what}: a path of no leaf"))
    }

    fn poseidon_refusals<C: Curve>(&mut self, hasher: &B::Hasher, tables: &Tables<C::Fr>) -> Outcome
    where
        B: Poseidon<C> + VecOps<C>,
    {
        let (backend, params) = (self.backend, tables.params());
        let arity = params.arity();
        let values = samples::wire::<C>(&samples::elements::<C>(2 * arity + 1, &mut samples::rng(1)));
        for (n, hashes) in [(2 * arity + 1, 2), (2 * arity - 1, 2), (arity, 2), (arity, 0), (0, 1)] {
            let what = format!("{hashes} hashes of {arity} of {n} elements");
            let input = backend.upload(Lane(0), &values[..n])?;
            let mut out = backend.upload(Lane(0), &values[..hashes])?;
            self.refused(backend.poseidon(hasher, &input, &mut out), &what)?;
            self.holds(&out, &values[..hashes], "room for hashes after a refusal")?;
            let refused = backend.poseidon_columns(
                hasher,
                (&vec![Canonical([0; 4]); n][..]).into(),
                &mut vec![Canonical([0; 4]); hashes],
            );
            self.refused(refused, format_args!("{what}, from host memory"))?;
        }
        if backend.lanes() > 1 {
            let input = backend.upload(Lane(0), &values[..arity])?;
            let mut out = backend.alloc::<Mont>(Lane(backend.lanes() - 1), 1)?;
            self.refused(backend.poseidon(hasher, &input, &mut out), "hashes on another lane")?;
        }
        for leaves in
            [0, arity + 1, 2 * arity - 1, arity * arity + 1].into_iter().filter(|&n| height(n, arity).is_none())
        {
            let integers = vec![Canonical([1, 0, 0, 0]); leaves];
            let built = MerkleTree::build::<C>(backend, hasher, params, integers.as_slice().into());
            self.refused(built.map(drop), format_args!("a tree of {leaves} leaves of arity {arity}"))?;
        }
        // Pieces that are not those of the split.
        let (below, split) = subtrees(arity, 2, backend.lanes());
        if below == 2 && split.len() == 1 {
            let piece = backend.upload(Lane(0), &values[..arity])?;
            let built = MerkleTree::on_lanes::<C>(backend, hasher, params, vec![(0, piece)], 2);
            self.refused(built.map(drop), "a piece that is too short")?;
        }
        let path = tandem_ops::MerklePath { index: arity, siblings: vec![vec![Canonical([0; 4]); arity - 1]] };
        let zero = Canonical([0; 4]);
        self.refused(path.root::<C>(tables, zero), "a path of a leaf that is past its tree")?;
        let short = tandem_ops::MerklePath { index: 0, siblings: vec![vec![zero; arity]] };
        self.refused(short.root::<C>(tables, zero), "a path with a node too many")?;
        let large = tandem_ops::MerklePath { index: 0, siblings: vec![vec![Canonical([u64::MAX; 4]); arity - 1]] };
        self.refused(large.root::<C>(tables, zero), "a path with a node that is no element")?;
        match PoseidonParams::new(params.family(), arity + 5) {
            Err(Error::Invalid { .. }) => self.that(true, ""),
            _ => self.that(false, format_args!("arity {} was accepted", arity + 5)),
        }
    }
}
