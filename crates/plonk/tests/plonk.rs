//! Quick.
use tandem_formats::{plonk::PlonkSection, PlonkHeader, PlonkWriter, PlonkZkey, PtauFile, R1cs};
use tandem_ops::{cpu::Cpu, Bn254, Curve, Mont, with_curve, Bls12_381};
use tandem_plonk::{setup::*, *};
use tandem_proof::circuit::*;

struct File<'a>(R1cs<'a>);
impl<C: Curve> Circuit<C> for File<'_> {
    fn constraints(&self) -> usize { self.0.header.n_constraints as usize }
    fn variables(&self) -> usize { self.0.header.n_vars as usize }
    fn publics(&self) -> usize { self.0.header.n_public() as usize }
    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()> {
        for from in self.0.constraints() {
            let t = |lc: tandem_formats::LinearCombination<'_>| lc.iter().map(|(w, v)| (w, C::from_canonical(v).unwrap())).collect();
            row(&Constraint { a: t(from.a), b: t(from.b), c: t(from.c) })?;
        }
        Ok(())
    }
}
struct Sink<C: Curve>(Option<PlonkWriter<Vec<u8>, C>>, Option<Shape>, Vec<u8>, OwnedKey<C>);
impl<C: Curve> KeySink<C> for Sink<C> {
    fn shape(&mut self, s: Shape) -> Result<()> {
        self.3.shape(s)?;
        self.1 = Some(s);
        self.0 = Some(PlonkWriter::new(Vec::new(), s.publics as u32, s.domain as u32, s.additions as u32, s.gates as u32).unwrap());
        Ok(())
    }
    fn begin(&mut self, part: Part) -> Result<()> {
        self.3.begin(part)?;
        self.0.as_mut().unwrap().section(match part {
            Part::Additions => PlonkSection::Additions,
            Part::Map(i) => PlonkSection::Map(i),
            Part::Selector(i) => PlonkSection::Selector(i),
            Part::Permutation => PlonkSection::Permutation,
            Part::Lagrange => PlonkSection::Lagrange,
            Part::Powers => PlonkSection::Powers,
        }).unwrap();
        Ok(())
    }
    fn bytes(&mut self, b: &[u8]) -> Result<()> { self.3.bytes(b)?; self.0.as_mut().unwrap().bytes(b).unwrap(); Ok(()) }
    fn verifying(&mut self, k: &VerifyingKey<C>) -> Result<()> {
        self.3.verifying(k)?;
        let s = self.1.unwrap();
        self.2 = self.0.take().unwrap().finish(&PlonkHeader { n_vars: s.signals() as u32, n_public: s.publics as u32, domain_size: s.domain as u32,
            n_additions: s.additions as u32, n_constraints: s.gates as u32, k1: C::mont(k.k[0]), k2: C::mont(k.k[1]), selectors: k.selectors, permutation: k.permutation, x_2: k.x_2 }).unwrap();
        Ok(())
    }
}
fn one<C: Curve>(r1cs: &str, ptau: &str, zkey: Option<&str>, wtns: Option<&str>) {
    let bytes = std::fs::read(r1cs).unwrap();
    let r = R1cs::parse(&bytes).unwrap();
    let gates = Gates::<C>::of(&File(r), &Silent).unwrap();
    let p = PtauFile::open(ptau).unwrap();
    let g1 = p.powers_g1::<C>(gates.shape().powers()).unwrap();
    let g2 = p.powers_g2::<C>(2).unwrap();
    let cpu = Cpu::new(1);
    let mut sink = Sink(None, None, vec![], OwnedKey::default());
    setup(&cpu, &gates, (&g1, &g2[1]), &mut sink, &Silent).unwrap();
    if let Some(zkey) = zkey {
        let theirs = std::fs::read(zkey).unwrap();
        PlonkZkey::<C>::parse(&theirs).unwrap();
        PlonkZkey::<C>::parse(&sink.2).unwrap();
        assert_eq!(theirs.len(), sink.2.len());
        let at = theirs.iter().zip(&sink.2).position(|(a, b)| a != b);
        assert_eq!(at, None);
    }
    let Some(wtns) = wtns else { return };
    let view = sink.3.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let w = tandem_formats::Wtns::parse(&std::fs::read(wtns).unwrap()).unwrap();
    let w = Witness::<C>::new(w.values).unwrap();
    for lanes in 1..=4 {
        let cpu = Cpu::new(lanes);
        let key = ProvingKey::load(&cpu, &view, 1).unwrap();
        let made = prove_verified(&cpu, &key, &verifier, &w, &Blinding::random().unwrap(), &Request::silent()).unwrap();
        made.verdict.unwrap();
    }
}
#[test]
fn quick() {
    let r = "/work/scratch/plonk/ref/";
    let d = "/work/wt-plonk/crates/formats/tests/data/";
    one::<Bn254>(&format!("{d}mul.r1cs"), &format!("{r}bn128.ptau"), Some(&format!("{r}mul.plonk.zkey")), Some(&format!("{d}mul.wtns")));
}
