//! A key of bellperson is refused, or all of it can be used, and what is written of it are the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::{write_params, ParamsOutline, ParamsSection};
use tandem_ops::zcash::Encoded;
use tandem_ops::{Bls12_381, Curve, Group};

type P1 = <<Bls12_381 as Curve>::G1 as Group>::Point;
type P2 = <<Bls12_381 as Curve>::G2 as Group>::Point;

fn points<P: Encoded>(bytes: &[u8], section: &ParamsSection) -> Vec<P> {
    let points = bytes[section.bytes.clone()].chunks_exact(size_of::<P>());
    points.map(|point| P::decode(point).expect("checked by the reader")).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let read = ParamsOutline::read(&bytes).and_then(|outline| outline.check_points(&bytes).map(|()| outline));
    let outline = match read {
        Ok(outline) => outline,
        Err(error) => return assert!(!error.to_string().contains(char::is_control)),
    };
    let sizes = outline.sizes();
    assert!(sizes.domain.is_power_of_two() && sizes.publics < sizes.variables);
    assert!(sizes.a > sizes.publics && sizes.a.max(sizes.b) <= sizes.variables);
    let [h, l, a, b1] = [&outline.h, &outline.l, &outline.a, &outline.b1].map(|s| points::<P1>(bytes, s));
    let b2 = points::<P2>(bytes, &outline.b2);
    let mut written = Vec::new();
    write_params(&mut written, &outline.points, [&outline.ic, &h, &l, &a, &b1], &b2).expect("memory takes all");
    assert!(written == bytes);
});
