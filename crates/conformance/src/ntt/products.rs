//! Transforms that begin or end with a pointwise product.

use super::forms;
use crate::{samples, Outcome, Suite};
use ark_ff::UniformRand;
use tandem_ops::ntt::{ntt_then_product, product_then_ntt};
use tandem_ops::{naive, Backend, Curve, Lane, Mont, NttOp, NttProducts};

/// Sizes up to this are compared with the definition, larger ones with the CPU, one operation after the other.
const BY_DEFINITION: u32 = 3;

impl<B: Backend> Suite<'_, B> {
    /// Transforms of products, and products less transforms: every size up to 2^10 and the two largest, in all forms.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn ntt_products<C: Curve>(&mut self) -> Outcome
    where
        B: NttProducts<C>,
    {
        let lanes = self.backend.lanes();
        for log_n in (0..=10.min(self.log_n)).chain([self.log_n - 1, self.log_n]) {
            let rng = &mut samples::rng(200 + u64::from(log_n));
            let g = C::mont(C::Fr::rand(rng));
            let vectors: [Vec<C::Fr>; 3] = std::array::from_fn(|_| samples::elements::<C>(1 << log_n, rng));
            for op in forms(g) {
                self.with_products::<C>(Lane(log_n as usize % lanes), &vectors, op)?;
            }
        }
        self.unequal_products::<C>()
    }

    fn with_products<C: Curve>(&mut self, lane: Lane, vectors: &[Vec<C::Fr>; 3], op: NttOp) -> Outcome
    where
        B: NttProducts<C>,
    {
        let wires = vectors.each_ref().map(|v| samples::wire::<C>(v));
        let n = wires[0].len();
        let (product, less) = if n.ilog2() <= BY_DEFINITION {
            let [a, b, c] = vectors;
            let times = |a: &[C::Fr], b: &[C::Fr]| a.iter().zip(b).map(|(a, b)| *a * b).collect::<Vec<_>>();
            let ntt = |v: &[C::Fr]| naive::ntt::<C>(v, op).unwrap_or_default();
            let less: Vec<C::Fr> = times(a, b).into_iter().zip(ntt(c)).map(|(ab, c)| ab - c).collect();
            (samples::wire::<C>(&ntt(&times(a, b))), samples::wire::<C>(&less))
        } else {
            let cpu = &self.reference;
            let [a, b, c] = [0, 1, 2].map(|i| cpu.upload(Lane(0), &wires[i]));
            let (a, b) = (a?, b?);
            let product = product_then_ntt::<C, _>(cpu, &a, &b, op)?;
            let less = ntt_then_product::<C, _>(cpu, &a, &b, c?, op)?;
            (product.as_slice().to_vec(), less.as_slice().to_vec())
        };
        let [a, b, c] = [0, 1, 2].map(|i| self.backend.upload(lane, &wires[i]));
        let (a, b) = (a?, b?);
        let got = NttProducts::<C>::ntt_of_product(self.backend, &a, &b, op)?;
        self.holds(&got, &product, format_args!("{op:?} of a product of {n} elements"))?;
        let got = NttProducts::<C>::product_less_ntt(self.backend, &a, &b, c?, op)?;
        self.holds(&got, &less, format_args!("a product less {op:?} of {n} elements"))?;
        // A square: both factors are one vector.
        let got = NttProducts::<C>::ntt_of_product(self.backend, &a, &a, op)?;
        let cpu = &self.reference;
        let of_cpu = cpu.upload(Lane(0), &wires[0])?;
        let square = product_then_ntt::<C, _>(cpu, &of_cpu, &of_cpu, op)?;
        self.holds(&got, square.as_slice(), format_args!("{op:?} of a square of {n} elements"))?;
        for (buf, wire) in [&a, &b].into_iter().zip(&wires) {
            self.holds(buf, wire, "a factor afterwards")?;
        }
        Ok(())
    }

    fn unequal_products<C: Curve>(&mut self) -> Outcome
    where
        B: NttProducts<C>,
    {
        let backend = self.backend;
        let op = forms(C::mont(C::Fr::from(7u64)))[0];
        let last = Lane(backend.lanes() - 1);
        let mut others = vec![(Lane(0), 4), (Lane(0), 0), (Lane(0), 16)];
        if last != Lane(0) {
            others.push((last, 8));
        }
        let same = || backend.alloc::<Mont>(Lane(0), 8);
        for (lane, n) in others {
            let what = |which| format!("{which}: {n} elements of lane {} among 8 of lane 0", lane.0);
            let other = || backend.alloc::<Mont>(lane, n);
            let product = NttProducts::<C>::ntt_of_product(backend, &same()?, &other()?, op);
            self.refused(product, what("the second factor"))?;
            let less = NttProducts::<C>::product_less_ntt(backend, &same()?, &other()?, same()?, op);
            self.refused(less, what("the second factor"))?;
            let less = NttProducts::<C>::product_less_ntt(backend, &other()?, &same()?, same()?, op);
            self.refused(less, what("the first factor"))?;
        }
        for n in [0, 3, 12] {
            let odd = || backend.alloc::<Mont>(Lane(0), n);
            let product = NttProducts::<C>::ntt_of_product(backend, &odd()?, &odd()?, op);
            self.refused(product, format_args!("a transform of a product of {n} elements"))?;
            let less = NttProducts::<C>::product_less_ntt(backend, &odd()?, &odd()?, odd()?, op);
            self.refused(less, format_args!("a product less a transform of {n} elements"))?;
        }
        Ok(())
    }
}
