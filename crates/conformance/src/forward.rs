//! What [`Dual`] and [`Stepped`] do with the methods of a primitive that take buffers and values only: it follows from what each
//! method reads, writes and returns.

use crate::{Dual, Stepped};
use tandem_ops::{BatchInverse, Canonical, Curve, Group, Mont, Pending, PointNtt, Result, Scan, VecOps};

/// Implements primitives over a curve for [`Dual`] and [`Stepped`]. A method's arguments are buffers that it reads (`read`),
/// buffers that it writes (`write`), or values (`value`). It returns nothing, or a value that is waited for. A method that fits none of it
/// is written out behind the others, for [`Dual`] and for [`Stepped`].
macro_rules! forward {
    (@type read $ty:ty) => { &Self::Buf<$ty> };
    (@type write $ty:ty) => { &mut Self::Buf<$ty> };
    (@type value $ty:ty) => { $ty };
    (@result) => { Result<()> };
    (@result $ty:ty) => { Result<Pending<$ty>> };

    // An argument for one of the two of a Dual.
    (@of $side:tt read $arg:ident) => { &$arg.$side };
    (@of $side:tt write $arg:ident) => { &mut $arg.$side };
    (@of $side:tt value $arg:ident) => { $arg };
    (@compare $dual:ident $op:expr, write $arg:ident) => { $dual.compare($op, $arg)?; };
    (@compare $dual:ident $op:expr, $kind:ident $arg:ident) => {};
    (@both $dual:ident $op:expr, $left:ident, $right:ident) => { $dual.both($op, $left, $right).map(drop) };
    (@both $dual:ident $op:expr, $left:ident, $right:ident, $ty:ty) => {
        $dual.same_result($op, $left.and_then(Pending::wait), $right.and_then(Pending::wait))
            .map(Pending::ready)
    };

    // An argument that is used again.
    (@again write $arg:ident) => { &mut *$arg };
    (@again $kind:ident $arg:ident) => { $arg };
    (@spoil $stepped:ident $is_wrong:ident, write $arg:ident) => { $stepped.spoil($is_wrong, $arg)?; };
    (@spoil $stepped:ident $is_wrong:ident, $kind:ident $arg:ident) => {};
    (@spoiled $is_wrong:ident, $done:ident) => { $done };
    (@spoiled $is_wrong:ident, $done:ident, $ty:ty) => {
        $done.map(move |mut value: $ty| {
            bytemuck::bytes_of_mut(&mut value)[0] ^= u8::from($is_wrong);
            value
        })
    };

    ($($primitive:ident { $(fn $method:ident($($kind:ident $arg:ident: $ty:ty),*) $(-> $result:ty)?;)*
       $(dual { $($dual:tt)* } stepped { $($stepped:tt)* })? })*) => {$(
        impl<C: Curve, L: $primitive<C>, R: $primitive<C>> $primitive<C> for Dual<L, R> {$(
            fn $method(&self, $($arg: forward!(@type $kind $ty)),*) -> forward!(@result $($result)?) {
                const OP: &str = stringify!($method);
                let left = $primitive::<C>::$method(&self.left, $(forward!(@of 0 $kind $arg)),*);
                let right = $primitive::<C>::$method(&self.right, $(forward!(@of 1 $kind $arg)),*);
                let done = forward!(@both self OP, left, right $(, $result)?)?;
                $(forward!(@compare self OP, $kind $arg);)*
                Ok(done)
            }
        )* $($($dual)*)?}

        impl<C: Curve> $primitive<C> for Stepped {$(
            fn $method(&self, $($arg: forward!(@type $kind $ty)),*) -> forward!(@result $($result)?) {
                let is_wrong = self.step(stringify!($method))?;
                let done = $primitive::<C>::$method(&self.cpu, $(forward!(@again $kind $arg)),*)?;
                $(forward!(@spoil self is_wrong, $kind $arg);)*
                Ok(forward!(@spoiled is_wrong, done $(, $result)?))
            }
        )* $($($stepped)*)?}
    )*};
}

forward! {
    VecOps {
        fn add(write a: Mont, read b: Mont);
        fn sub(write a: Mont, read b: Mont);
        fn mul(write a: Mont, read b: Mont);
        fn scale(write a: Mont, value k: Mont);
        fn mul_sub(write a: Mont, read b: Mont, read c: Mont);
        fn add_scaled(write a: Mont, value first: usize, value step: usize, read b: Mont, value k: Mont);
        fn to_canonical(read a: Mont, write out: Canonical);
        fn to_mont(read a: Canonical, write out: Mont);
        dual {
            fn combined(&self, len: usize, terms: &[(&Self::Buf<Mont>, Mont)]) -> Result<Self::Buf<Mont>> {
                let left: Vec<_> = terms.iter().map(|(of, k)| (&of.0, *k)).collect();
                let right: Vec<_> = terms.iter().map(|(of, k)| (&of.1, *k)).collect();
                let left = VecOps::<C>::combined(&self.left, len, &left);
                self.made("combined", left, VecOps::<C>::combined(&self.right, len, &right))
            }
        }
        stepped {
            fn combined(&self, len: usize, terms: &[(&Self::Buf<Mont>, Mont)]) -> Result<Self::Buf<Mont>> {
                let is_wrong = self.step("combined")?;
                self.spoiled(is_wrong, VecOps::<C>::combined(&self.cpu, len, terms)?)
            }
        }
    }
    BatchInverse {
        fn batch_inverse(write data: Mont);
    }
    PointNtt {
        fn lagrange_points(write points: <C::G1 as Group>::Point);
    }
    Scan {
        fn prefix_product(write data: Mont) -> Mont;
        fn evaluate(read coefficients: Mont, value x: Mont) -> Mont;
        fn divide(write coefficients: Mont, value m: usize, value b: Mont);
    }
}
