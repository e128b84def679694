//! How long it takes to open a key: `open_key FILE...` or `open_key LOG2_CONSTRAINTS`.
//!
//! Opens each file (a BN254 key) three times and prints the time of each step. For a number it first writes a key of
//! that many constraints into the folder for temporary files: random coordinates below the modulus, about 4 matrix
//! entries for each constraint. The file is in the page cache then.

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::time::Instant;
use tandem_formats::{write_atomically, Coef, Zkey, ZkeyFile, ZkeyHeader, ZkeySection, ZkeyWriter};
use tandem_ops::{Bn254, Mont2, Point};

fn limbs<const N: usize>(rng: &mut ChaCha8Rng) -> [u64; N] {
    let mut limbs = [0; N];
    for (i, limb) in limbs.iter_mut().enumerate() {
        // The modulus is above 2^253 and below 2^254.
        *limb = rng.next_u64() >> if i % 4 == 3 { 3 } else { 0 };
    }
    limbs
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for arg in std::env::args().skip(1) {
        let Ok(log) = arg.parse() else {
            open(Path::new(&arg))?;
            continue;
        };
        let path = std::env::temp_dir().join(format!("tandem-open-key-{log}.zkey"));
        write(&path, log)?;
        open(&path)?;
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

fn write(path: &Path, log: u32) -> Result<(), Box<dyn std::error::Error>> {
    let n = 1u32.checked_shl(log).filter(|&n| n >= 4).ok_or("expected a logarithm from 2 to 28")?;
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let header = ZkeyHeader::<Bn254> {
        n_vars: n - 2,
        n_public: 1,
        domain_size: n,
        alpha_1: Point(limbs(rng)),
        beta_1: Point(limbs(rng)),
        beta_2: Point(limbs(rng)),
        gamma_2: Point(limbs(rng)),
        delta_1: Point(limbs(rng)),
        delta_2: Point(limbs(rng)),
    };
    // Most coefficients of circuits are 1 or -1, the others are a program's constants.
    let constants: Vec<Mont2> = (0..1000).map(|_| Mont2(limbs(rng))).collect();
    let mut coefs = Vec::new();
    for constraint in 0..n - 2 {
        for (matrix, terms) in [(0, 1 + rng.next_u32() % 4), (1, 1 + rng.next_u32() % 2)] {
            for _ in 0..terms {
                let choice = rng.next_u32();
                let value = constants[if choice % 4 < 3 { choice % 2 } else { choice >> 2 } as usize % 1000];
                coefs.push(Coef { matrix, constraint, signal: rng.next_u32() % header.n_vars, value });
            }
        }
    }
    write_atomically(path, |out| {
        let mut key = ZkeyWriter::new(out, &header, 9)?;
        key.section(ZkeySection::Coefs { count: coefs.len() as u32 })?;
        key.coefs(coefs.iter().copied())?;
        for (section, points) in [
            (ZkeySection::Ic, 2),
            (ZkeySection::H, n),
            (ZkeySection::C, n - 4),
            (ZkeySection::A, n - 2),
            (ZkeySection::B1, n - 2),
            (ZkeySection::B2, n - 2),
        ] {
            key.section(section)?;
            for _ in 0..points {
                match section {
                    ZkeySection::B2 => key.points(&[Point::<16>(limbs(rng))])?,
                    _ => key.points(&[Point::<8>(limbs(rng))])?,
                }
            }
        }
        key.finish().map(drop)
    })?;
    Ok(())
}

fn open(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!("{}: {:.3} GB", path.display(), std::fs::metadata(path)?.len() as f64 / 1e9);
    for _ in 0..3 {
        let start = Instant::now();
        let file = ZkeyFile::open(path)?.read()?;
        let read = start.elapsed();
        let key = Zkey::<Bn254>::parse(&file)?;
        let parsed = start.elapsed();
        let matrices = key.coefs.matrices()?;
        let all = start.elapsed();
        println!(
            "read {:.1} ms, headers and points {:.1} ms, matrices {:.1} ms ({} entries, {} values), in all {:.1} ms",
            read.as_secs_f64() * 1e3,
            (parsed - read).as_secs_f64() * 1e3,
            (all - parsed).as_secs_f64() * 1e3,
            key.coefs.len(),
            matrices.a.values.len(),
            all.as_secs_f64() * 1e3
        );
    }
    Ok(())
}
