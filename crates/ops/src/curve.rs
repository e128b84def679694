//! The curves, and the one place where wire types become arkworks types and back.

use crate::field::{FieldId, NttField};
use crate::wire::{Canonical, Mont, Mont2, Point, Wire};
use ark_ec::{pairing::Pairing, AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInt, Field, Fp, Fp2, Fp2Config, MontBackend, MontConfig, PrimeField};

macro_rules! all_curves {
    (; $($name:ident)*) => { &[$(CurveId::$name),*] };
}

/// Names a curve at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CurveId {
    /// BN254, which snarkjs calls bn128.
    Bn254,
    /// BLS12-381.
    Bls12_381,
}

/// Hands the list of curves to a macro, each as the name that [`CurveId`]'s variant and the type share, after what
/// else it is to get: `for_each_curve!([callback] args..)` becomes `callback!(args.. ; Bn254 Bls12_381)`.
///
/// It is the only list: a curve that is added here, to [`CurveId`] and as a type is a compile error wherever something
/// of its own is missing.
#[macro_export]
macro_rules! for_each_curve {
    ([$($callback:tt)*] $($args:tt)*) => {
        $($callback)*! { $($args)* ; Bn254 Bls12_381 }
    };
}

/// Evaluates an expression with `$curve` as the type of the curve that a [`CurveId`] names.
///
/// ```
/// use tandem_ops::{with_curve, Curve, CurveId};
/// fn name<C: Curve>() -> String {
///     C::ID.to_string()
/// }
/// assert_eq!(with_curve!(CurveId::Bn254, C => name::<C>()), "bn254");
/// ```
#[macro_export]
macro_rules! with_curve {
    ($id:expr, $curve:ident => $body:expr) => {
        $crate::for_each_curve!([$crate::match_curve] $id, $curve => $body)
    };
}

/// The match behind [`with_curve`].
#[doc(hidden)]
#[macro_export]
macro_rules! match_curve {
    ($id:expr, $curve:ident => $body:expr ; $($name:ident)*) => {
        match $id {
            $($crate::CurveId::$name => {
                type $curve = $crate::$name;
                $body
            })*
        }
    };
}

impl CurveId {
    /// All of them.
    pub const ALL: &'static [CurveId] = for_each_curve!([all_curves]);

    /// The name as snarkjs writes it into JSON.
    pub fn snarkjs_name(self) -> &'static str {
        match self {
            CurveId::Bn254 => "bn128",
            CurveId::Bls12_381 => "bls12381",
        }
    }
}

/// The name that users read and type.
impl std::fmt::Display for CurveId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CurveId::Bn254 => "bn254",
            CurveId::Bls12_381 => "bls12-381",
        })
    }
}

/// A pairing-friendly curve, as a type.
pub trait Curve: NttField<Element = Mont, Ark = <Self as Curve>::Fr> {
    /// Its name.
    const ID: CurveId;
    /// The scalar field.
    type Fr: PrimeField<BigInt = BigInt<4>>;
    /// The first source group.
    type G1: Group<Curve = Self>;
    /// The second source group.
    type G2: Group<Curve = Self>;
    /// The pairing of the two.
    type Pairing: Pairing<
        ScalarField = Self::Fr,
        G1 = <Self::G1 as Group>::Ark,
        G2 = <Self::G2 as Group>::Ark,
        G1Affine = <<Self::G1 as Group>::Ark as CurveGroup>::Affine,
        G2Affine = <<Self::G2 as Group>::Ark as CurveGroup>::Affine,
    >;

    /// The Montgomery limbs of `x`.
    fn mont(x: Self::Fr) -> Mont;
    /// The element with these Montgomery limbs, which must be below the modulus.
    fn from_mont(x: Mont) -> Self::Fr;

    /// The integer that `x` is.
    fn canonical(x: Self::Fr) -> Canonical {
        Canonical(x.into_bigint().0)
    }
    /// The element that the integer `x` is; `None` if it is not below the modulus.
    fn from_canonical(x: Canonical) -> Option<Self::Fr> {
        Self::Fr::from_bigint(BigInt(x.0))
    }
    /// `x` times R^2.
    fn mont2(x: Self::Fr) -> Mont2 {
        Mont2(Self::mont(x * Self::r()).0)
    }
    /// The element that `x` is R^2 times of.
    fn from_mont2(x: Mont2) -> Self::Fr {
        Self::from_mont(Mont(x.0)) * Self::r().inverse().unwrap_or(Self::Fr::ZERO)
    }
    /// R = 2^256 as an element.
    fn r() -> Self::Fr {
        Self::Fr::from(2u64).pow([256])
    }
}

/// The field of a group's coordinates.
pub type BaseField<G> = <<G as Group>::Ark as CurveGroup>::BaseField;

/// A group of points, as a type.
pub trait Group: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// The curve it belongs to.
    type Curve: Curve;
    /// Its affine points on the wire.
    type Point: Wire;
    /// Its points in arkworks.
    type Ark: CurveGroup<ScalarField = <Self::Curve as Curve>::Fr>;
    /// Its points, eight at a time.
    type Simd: tandem_field_simd::Group;
    /// `G1` or `G2`.
    const NAME: &'static str;

    /// The affine point, not checked to lie on the curve. A coordinate that is not below the modulus becomes 0.
    fn to_ark(point: &Self::Point) -> <Self::Ark as CurveGroup>::Affine;
    /// The affine point with these coordinates, not checked to lie on the curve; never infinity.
    fn from_xy(x: BaseField<Self>, y: BaseField<Self>) -> <Self::Ark as CurveGroup>::Affine;
    /// The point (x / zz, y / zzz), where zz^3 = zzz^2, from `[x, y]` and `[zz, zzz]` as a `Point` has its coordinates; infinity where
    /// zz and zzz are 0. Not checked to lie on the curve. A coordinate that is not below the modulus becomes 0.
    fn from_xyzz(xyzz: &[Self::Point; 2]) -> Self::Ark;
    /// Replaces a coordinate in its wire form by its inverse; zero stays.
    fn invert_coordinate(words: &mut [u64]);
    /// The wire form.
    fn from_ark(point: &<Self::Ark as CurveGroup>::Affine) -> Self::Point;
    /// Whether the point is infinity or satisfies the curve's equation.
    fn is_on_curve(point: &Self::Point) -> bool;
    /// Whether a point of the curve lies in the subgroup of prime order.
    fn is_in_subgroup(point: &Self::Point) -> bool;
}

/// BN254 (alt_bn128).
#[derive(Debug, Clone, Copy)]
pub struct Bn254;
/// BLS12-381.
#[derive(Debug, Clone, Copy)]
pub struct Bls12_381;
/// G1 of a curve.
#[derive(Debug, Clone, Copy)]
pub struct G1<C>(std::marker::PhantomData<C>);
/// G2 of a curve.
#[derive(Debug, Clone, Copy)]
pub struct G2<C>(std::marker::PhantomData<C>);

#[inline]
fn limbs<P: MontConfig<N>, const N: usize>(x: &Fp<MontBackend<P, N>, N>) -> [u64; N] {
    (x.0).0
}

/// The element with these limbs; 0 where they are not below the modulus, as arithmetic would overflow.
#[inline]
fn element<P: MontConfig<N>, const N: usize>(limbs: &[u64]) -> Fp<MontBackend<P, N>, N> {
    let mut own = BigInt([0; N]);
    own.0.copy_from_slice(limbs);
    if own < P::MODULUS {
        Fp::new_unchecked(own)
    } else {
        Fp::ZERO
    }
}

#[inline]
fn limbs2<C: Fp2Config<Fp = Fp<MontBackend<P, N>, N>>, P: MontConfig<N>, const N: usize>(
    x: &Fp2<C>,
) -> ([u64; N], [u64; N]) {
    (limbs(&x.c0), limbs(&x.c1))
}

/// The primitive 2^`log_n`-th root of unity that snarkjs uses: q^((r-1)/2^log_n) for q the least quadratic
/// non-residue (5 for both curves). `None` above the 2-adicity.
fn root_of_unity<F: PrimeField<BigInt = BigInt<4>>>(log_n: u32) -> Option<F> {
    let s = F::TWO_ADICITY;
    if log_n > s {
        return None;
    }
    // r is odd, so shifting drops the 1 that r - 1 takes away.
    let t = F::MODULUS >> s;
    let mut q = F::from(2u64);
    while q.legendre() != ark_ff::LegendreSymbol::QuadraticNonResidue {
        q += F::ONE;
    }
    let mut w = q.pow(t);
    for _ in log_n..s {
        w.square_in_place();
    }
    Some(w)
}

macro_rules! curve {
    ($name:ident, $id:expr, $field:expr, $ark:ident, $n:literal, $g1:literal, $g2:literal, $fr:ident, $s1:ident, $s2:ident) => {
        impl NttField for $name {
            const FIELD: FieldId = $field;
            type Element = Mont;
            type Ark = $ark::Fr;
            #[inline]
            fn element(x: Self::Ark) -> Mont {
                Self::mont(x)
            }
            #[inline]
            fn value(x: Mont) -> Self::Ark {
                Self::from_mont(x)
            }
            /// As snarkjs: q^((r-1)/2^log_n) for q the least quadratic non-residue, 5 for both curves.
            fn root_of_unity(log_n: u32) -> Option<Self::Ark> {
                root_of_unity(log_n)
            }
            fn simd() -> Option<&'static dyn tandem_field_simd::Field> {
                Some(&tandem_field_simd::$fr)
            }
        }

        impl Curve for $name {
            const ID: CurveId = $id;
            type Fr = $ark::Fr;
            type G1 = G1<$name>;
            type G2 = G2<$name>;
            type Pairing = $ark::$name;
            #[inline]
            fn mont(x: Self::Fr) -> Mont {
                Mont(limbs(&x))
            }
            #[inline]
            fn from_mont(x: Mont) -> Self::Fr {
                element(&x.0)
            }
        }

        impl Group for G1<$name> {
            type Curve = $name;
            type Point = Point<$g1>;
            type Ark = $ark::G1Projective;
            type Simd = tandem_field_simd::$s1;
            const NAME: &'static str = "G1";

            #[inline]
            fn to_ark(p: &Self::Point) -> $ark::G1Affine {
                if p.0 == [0; $g1] {
                    return $ark::G1Affine::identity();
                }
                $ark::G1Affine::new_unchecked(element(&p.0[..$n]), element(&p.0[$n..]))
            }
            #[inline]
            fn from_xy(x: BaseField<Self>, y: BaseField<Self>) -> $ark::G1Affine {
                $ark::G1Affine::new_unchecked(x, y)
            }
            fn from_xyzz([xy, zs]: &[Self::Point; 2]) -> $ark::G1Projective {
                let (xy, zs) = (Self::to_ark(xy), Self::to_ark(zs));
                // Jacobian coordinates with z = zzz.
                $ark::G1Projective::new_unchecked(xy.x * zs.x.square(), xy.y * zs.y.square(), zs.y)
            }
            fn invert_coordinate(words: &mut [u64]) {
                let inverse = element::<_, $n>(words).inverse().unwrap_or($ark::Fq::ZERO);
                words.copy_from_slice(&limbs(&inverse));
            }
            fn from_ark(p: &$ark::G1Affine) -> Self::Point {
                let mut out = [0; $g1];
                if !p.is_zero() {
                    out[..$n].copy_from_slice(&limbs(&p.x));
                    out[$n..].copy_from_slice(&limbs(&p.y));
                }
                Point(out)
            }
            fn is_on_curve(p: &Self::Point) -> bool {
                Self::to_ark(p).is_on_curve()
            }
            fn is_in_subgroup(p: &Self::Point) -> bool {
                Self::to_ark(p).is_in_correct_subgroup_assuming_on_curve()
            }
        }

        impl Group for G2<$name> {
            type Curve = $name;
            type Point = Point<$g2>;
            type Ark = $ark::G2Projective;
            type Simd = tandem_field_simd::$s2;
            const NAME: &'static str = "G2";

            #[inline]
            fn to_ark(p: &Self::Point) -> $ark::G2Affine {
                if p.0 == [0; $g2] {
                    return $ark::G2Affine::identity();
                }
                let at = |i: usize| element(&p.0[i * $n..(i + 1) * $n]);
                $ark::G2Affine::new_unchecked($ark::Fq2::new(at(0), at(1)), $ark::Fq2::new(at(2), at(3)))
            }
            #[inline]
            fn from_xy(x: BaseField<Self>, y: BaseField<Self>) -> $ark::G2Affine {
                $ark::G2Affine::new_unchecked(x, y)
            }
            fn from_xyzz([xy, zs]: &[Self::Point; 2]) -> $ark::G2Projective {
                let (xy, zs) = (Self::to_ark(xy), Self::to_ark(zs));
                $ark::G2Projective::new_unchecked(xy.x * zs.x.square(), xy.y * zs.y.square(), zs.y)
            }
            fn invert_coordinate(words: &mut [u64]) {
                let value = $ark::Fq2::new(element(&words[..$n]), element(&words[$n..]));
                let (c0, c1) = limbs2(&value.inverse().unwrap_or($ark::Fq2::ZERO));
                words[..$n].copy_from_slice(&c0);
                words[$n..].copy_from_slice(&c1);
            }
            fn from_ark(p: &$ark::G2Affine) -> Self::Point {
                let mut out = [0; $g2];
                if !p.is_zero() {
                    let ((x0, x1), (y0, y1)) = (limbs2(&p.x), limbs2(&p.y));
                    for (i, part) in [x0, x1, y0, y1].iter().enumerate() {
                        out[i * $n..(i + 1) * $n].copy_from_slice(part);
                    }
                }
                Point(out)
            }
            fn is_on_curve(p: &Self::Point) -> bool {
                Self::to_ark(p).is_on_curve()
            }
            fn is_in_subgroup(p: &Self::Point) -> bool {
                Self::to_ark(p).is_in_correct_subgroup_assuming_on_curve()
            }
        }
    };
}
curve!(Bn254, CurveId::Bn254, FieldId::Bn254, ark_bn254, 4, 8, 16, Bn254Fr, Bn254G1, Bn254G2);
curve!(Bls12_381, CurveId::Bls12_381, FieldId::Bls12_381, ark_bls12_381, 6, 12, 24, Bls12381Fr, Bls12381G1, Bls12381G2);

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::PrimeGroup;
    use ark_ff::{FftField, UniformRand};
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    fn scalars_round_trip<C: Curve>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for x in [C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE, C::Fr::rand(&mut rng)] {
            assert_eq!(C::from_mont(C::mont(x)), x);
            assert_eq!(C::from_canonical(C::canonical(x)), Some(x));
            assert_eq!(C::from_mont2(C::mont2(x)), x);
            // The product that the type's description promises.
            let w = C::Fr::rand(&mut rng);
            let product = C::from_mont(Mont(C::mont2(x).0)) * C::from_mont(Mont(C::canonical(w).0));
            assert_eq!(product, x * w);
        }
        assert_eq!(C::from_canonical(Canonical(C::Fr::MODULUS.0)), None);
    }

    fn roots<C: Curve>() {
        let s = <C::Fr as FftField>::TWO_ADICITY;
        assert_eq!(C::root_of_unity(s + 1), None);
        assert_eq!(C::root_of_unity(0), Some(C::Fr::ONE));
        assert_eq!(C::root_of_unity(1), Some(-C::Fr::ONE));
        for k in 1..=s {
            let w = C::root_of_unity(k).unwrap();
            assert_eq!(w.pow([1 << (k - 1)]), -C::Fr::ONE, "primitive 2^{k}-th root");
        }
    }

    fn points_round_trip<G: Group>() {
        let g = G::Ark::generator();
        for p in [G::Ark::ZERO, g, -g, g * <G::Curve as Curve>::Fr::from(12345u64)] {
            let wire = G::from_ark(&p.into_affine());
            assert_eq!(G::to_ark(&wire), p.into_affine());
            assert!(G::is_on_curve(&wire) && G::is_in_subgroup(&wire));
            if let Some((x, y)) = p.into_affine().xy() {
                assert_eq!(G::from_xy(x, y), p.into_affine());
            }
        }
        let mut bad = G::from_ark(&g.into_affine());
        bytemuck::bytes_of_mut(&mut bad)[0] ^= 1;
        assert!(!G::is_on_curve(&bad));
    }

    #[test]
    fn bn254() {
        scalars_round_trip::<Bn254>();
        roots::<Bn254>();
        points_round_trip::<G1<Bn254>>();
        points_round_trip::<G2<Bn254>>();
    }

    #[test]
    fn bls12_381() {
        scalars_round_trip::<Bls12_381>();
        roots::<Bls12_381>();
        points_round_trip::<G1<Bls12_381>>();
        points_round_trip::<G2<Bls12_381>>();
    }
}
