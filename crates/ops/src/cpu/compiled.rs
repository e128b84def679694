//! What a debug build compiles of [`Cpu`] together with this crate. As all of it is generic, each crate and each test program would otherwise
//! compile what it uses anew. At low levels of optimisation rustc takes what a crate below has compiled.

use super::Cpu;
use crate::{
    BabyBear, Backend, BatchInverse, Bls12_381, Bn254, Canonical, Complex, Complex32, Complex64, Curve, Fft,
    Goldilocks, Group, Mont, Msm, Ntt, NttField, NttProducts, NttSpread, PlonkRows, PointNtt, Poseidon, ScalarRecoding,
    Scan, Sort, SortKey, SpMv, Sumcheck, SumcheckField, VecOps, Wire,
};
use std::hint::black_box;

/// Compiled although nobody calls it, with all that it names.
#[used]
static COMPILED: fn() = all;

macro_rules! name {
    ($($function:expr),+ $(,)?) => {
        $(black_box($function as *const ());)+
    };
}

fn all() {
    memory::<Mont>();
    memory::<Canonical>();
    curve::<Bn254>();
    curve::<Bls12_381>();
    field::<Goldilocks>();
    field::<BabyBear>();
    sumcheck::<Goldilocks>();
    complex::<Complex32>();
    complex::<Complex64>();
    sort::<u32>();
    sort::<u64>();
}

fn memory<T: Wire>() {
    name!(Cpu::alloc::<T>, Cpu::write::<T>, Cpu::upload::<T>, Cpu::upload_to_all::<T>, Cpu::upload_beside::<T>);
    name!(Cpu::copy::<T>, Cpu::join::<T>, Cpu::deal::<T>, Cpu::download::<T>);
}

fn curve<C: Curve>() {
    field::<C>();
    sumcheck::<C>();
    group::<C::G1>();
    group::<C::G2>();
    name!(<Cpu as VecOps<C>>::add, <Cpu as VecOps<C>>::sub, <Cpu as VecOps<C>>::mul, <Cpu as VecOps<C>>::scale);
    name!(<Cpu as VecOps<C>>::mul_sub, <Cpu as VecOps<C>>::add_scaled, <Cpu as VecOps<C>>::combined);
    name!(<Cpu as VecOps<C>>::to_canonical, <Cpu as VecOps<C>>::to_mont);
    name!(<Cpu as PlonkRows<C>>::gate_rows, <Cpu as PlonkRows<C>>::permuted_rows, <Cpu as PlonkRows<C>>::quotient_rows);
    name!(<Cpu as Scan<C>>::prefix_product, <Cpu as Scan<C>>::evaluate, <Cpu as Scan<C>>::divide);
    name!(<Cpu as BatchInverse<C>>::batch_inverse, <Cpu as PointNtt<C>>::lagrange_points);
    name!(<Cpu as NttProducts<C>>::ntt_of_product, <Cpu as NttProducts<C>>::product_less_ntt);
    name!(<Cpu as SpMv<C>>::load_matrix, <Cpu as SpMv<C>>::spmv);
    name!(<Cpu as ScalarRecoding<C>>::plan, <Cpu as ScalarRecoding<C>>::recode);
    name!(<Cpu as Poseidon<C>>::hasher, <Cpu as Poseidon<C>>::poseidon, <Cpu as Poseidon<C>>::poseidon_columns);
}

fn group<G: Group>() {
    memory::<G::Point>();
    name!(<Cpu as Msm<G>>::load, <Cpu as Msm<G>>::msm);
}

fn field<F: NttField>() {
    name!(<Cpu as Ntt<F>>::ntt_batch, <Cpu as NttSpread<F>>::ntt_spread);
}

fn sumcheck<F: SumcheckField>() {
    name!(
        <Cpu as Sumcheck<F>>::sumcheck_sums,
        <Cpu as Sumcheck<F>>::sumcheck_bind,
        <Cpu as Sumcheck<F>>::sumcheck_fold
    );
}

fn complex<T: Complex>() {
    name!(<Cpu as Fft<T>>::fft_batch, <Cpu as Fft<T>>::fft_spread);
}

fn sort<K: SortKey>() {
    name!(<Cpu as Sort<K>>::sort, <Cpu as Sort<K>>::sort_pairs);
}
