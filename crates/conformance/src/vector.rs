//! Element-wise arithmetic.

use crate::{samples, Outcome, Suite};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use tandem_ops::vector::TERMS_MAX;
use tandem_ops::{Backend, Canonical, Curve, Lane, Mont, VecOps};

impl<B: Backend> Suite<'_, B> {
    /// Element-wise arithmetic.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn vector<C: Curve>(&mut self) -> Outcome
    where
        B: VecOps<C>,
    {
        for lane in self.lanes() {
            for n in [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, (1 << self.log_n) - 1, 1 << self.log_n] {
                self.arithmetic::<C>(lane, n)?;
            }
        }
        self.unequal::<C>()
    }

    fn arithmetic<C: Curve>(&mut self, lane: Lane, n: usize) -> Outcome
    where
        B: VecOps<C>,
    {
        let backend = self.backend;
        let rng = &mut samples::rng(n as u64);
        let mut input = || samples::elements::<C>(n, rng);
        let (a, mut b, c) = (input(), input(), input());
        // Sums and differences that are zero are among them.
        b.iter_mut().zip(&a).step_by(11).for_each(|(b, a)| *b = *a);
        b.iter_mut().zip(&a).skip(1).step_by(11).for_each(|(b, a)| *b = -*a);
        let k = C::Fr::rand(rng);
        let upload = |x: &[C::Fr]| backend.upload(lane, &samples::wire::<C>(x));
        let (b_buf, c_buf) = (upload(&b)?, upload(&c)?);

        type Op<'a, B, F> =
            (&'static str, &'a dyn Fn(&mut <B as Backend>::Buf<Mont>) -> tandem_ops::Result<()>, Vec<F>);
        let each = |f: &dyn Fn(usize) -> C::Fr| (0..n).map(f).collect::<Vec<_>>();
        let ops: [Op<'_, B, C::Fr>; 5] = [
            ("add", &|a| VecOps::<C>::add(backend, a, &b_buf), each(&|i| a[i] + b[i])),
            ("sub", &|a| VecOps::<C>::sub(backend, a, &b_buf), each(&|i| a[i] - b[i])),
            ("mul", &|a| VecOps::<C>::mul(backend, a, &b_buf), each(&|i| a[i] * b[i])),
            ("scale", &|a| VecOps::<C>::scale(backend, a, C::mont(k)), each(&|i| a[i] * k)),
            ("mul_sub", &|a| VecOps::<C>::mul_sub(backend, a, &b_buf, &c_buf), each(&|i| a[i] * b[i] - c[i])),
        ];
        for (name, op, expected) in ops {
            let mut a = upload(&a)?;
            op(&mut a)?;
            self.holds(&a, &samples::wire::<C>(&expected), format_args!("{name} of {n}"))?;
        }
        self.holds(&b_buf, &samples::wire::<C>(&b), "the right operand afterwards")?;

        // From the first element on, in steps, and none at all.
        for (first, step, many) in
            [(0, 1, n), (n / 3, 1, n - n / 3), (1, 3, (n + 1) / 3), (n, 1, 0), (0, n.max(1), n.min(1))]
        {
            let (mut a_buf, short) = (upload(&a)?, upload(&b[..many])?);
            VecOps::<C>::add_scaled(backend, &mut a_buf, first, step, &short, C::mont(k))?;
            let mut expected = a.clone();
            b[..many].iter().enumerate().for_each(|(i, b)| expected[first + i * step] += k * b);
            let what = format_args!("add_scaled of {many} from {first} in steps of {step} to {n}");
            self.holds(&a_buf, &samples::wire::<C>(&expected), what)?;
        }

        self.combinations::<C>(lane, [&a, &b, &c], k)?;

        let mut integers = backend.upload(lane, &vec![Canonical([3; 4]); n])?;
        VecOps::<C>::to_canonical(backend, &b_buf, &mut integers)?;
        self.holds(&integers, &samples::canonical::<C>(&b), format_args!("to_canonical of {n}"))?;
        let mut back = backend.upload(lane, &vec![Mont([3; 4]); n])?;
        VecOps::<C>::to_mont(backend, &integers, &mut back)?;
        self.holds(&back, &samples::wire::<C>(&b), format_args!("to_mont of {n}"))
    }

    /// Of one vector to as many as there may be, of several lengths, to one that is as long as the longest and to a longer one.
    fn combinations<C: Curve>(&mut self, lane: Lane, of: [&[C::Fr]; 3], k: C::Fr) -> Outcome
    where
        B: VecOps<C>,
    {
        let (backend, n) = (self.backend, of[0].len());
        for (terms, len) in [(1, n), (2, n), (3, n + 1), (TERMS_MAX, 2 * n + 3)] {
            let part = |j: usize| &of[j % 3][..n - n * (j % 4) / 5];
            let factors: Vec<C::Fr> = (0..terms as u64).map(|j| k.pow([j])).collect();
            let on = (0..terms).map(|j| backend.upload(lane, &samples::wire::<C>(part(j))));
            let on = on.collect::<tandem_ops::Result<Vec<_>>>()?;
            let all: Vec<_> = on.iter().zip(factors.iter().map(|&k| C::mont(k))).collect();
            let made = VecOps::<C>::combined(backend, len, &all)?;
            let mut expected = vec![C::Fr::ZERO; len];
            for (j, factor) in factors.iter().enumerate() {
                expected.iter_mut().zip(part(j)).for_each(|(sum, x)| *sum += *factor * x);
            }
            self.holds(&made, &samples::wire::<C>(&expected), format_args!("combined of {terms} to {len}"))?;
        }
        Ok(())
    }

    fn unequal<C: Curve>(&mut self) -> Outcome
    where
        B: VecOps<C>,
    {
        let backend = self.backend;
        let values = samples::wire::<C>(&samples::elements::<C>(5, &mut samples::rng(1)));
        let last = Lane(backend.lanes() - 1);
        let mut others = vec![(Lane(0), 4), (Lane(0), 0), (Lane(0), 6)];
        if last != Lane(0) {
            others.push((last, 5));
        }
        for (lane, n) in others {
            let what = |op| format!("{op} of 5 elements of lane 0 with {n} of lane {}", lane.0);
            let mut a = backend.upload(Lane(0), &values)?;
            let same = backend.upload(Lane(0), &values)?;
            let other = backend.alloc::<Mont>(lane, n)?;
            let mut integers = backend.alloc::<Canonical>(lane, n)?;
            self.refused(VecOps::<C>::add(backend, &mut a, &other), what("add"))?;
            self.refused(VecOps::<C>::sub(backend, &mut a, &other), what("sub"))?;
            self.refused(VecOps::<C>::mul(backend, &mut a, &other), what("mul"))?;
            self.refused(VecOps::<C>::mul_sub(backend, &mut a, &other, &same), what("mul_sub"))?;
            self.refused(VecOps::<C>::mul_sub(backend, &mut a, &same, &other), what("mul_sub"))?;
            if n > 5 || lane != Lane(0) {
                self.refused(VecOps::<C>::add_scaled(backend, &mut a, 0, 1, &other, values[0]), what("add_scaled"))?;
            }
            if n > 5 || lane != Lane(0) {
                let made = VecOps::<C>::combined(backend, 5, &[(&same, values[0]), (&other, values[0])]);
                self.refused(made, what("combined"))?;
            }
            self.refused(VecOps::<C>::to_canonical(backend, &a, &mut integers), what("to_canonical"))?;
            self.refused(VecOps::<C>::to_mont(backend, &integers, &mut a), what("to_mont"))?;
            self.holds(&a, &values, "a vector after refused operations")?;
        }
        let (mut a, b) = (backend.upload(Lane(0), &values)?, backend.upload(Lane(0), &values[..2])?);
        for terms in [0, TERMS_MAX + 1] {
            let made = VecOps::<C>::combined(backend, 5, &vec![(&b, values[0]); terms]);
            self.refused(made, format_args!("combined of {terms} terms"))?;
        }
        for (first, step) in [(4, 1), (0, 5), (5, 1), (0, 0), (usize::MAX, 1), (1, usize::MAX)] {
            let added = VecOps::<C>::add_scaled(backend, &mut a, first, step, &b, values[0]);
            self.refused(added, format_args!("add_scaled of 2 from {first} in steps of {step} to 5"))?;
        }
        self.holds(&a, &values, "a vector after refused operations")
    }
}
