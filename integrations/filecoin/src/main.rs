//! Proofs of Filecoin's 2 KiB sectors by `filecoin-proofs`, unmodified: a sealed sector's PoRep, a WinningPoSt, and a WindowPoSt of two
//! partitions. Makes test parameters where the cache has none. `filecoin-proofs` verifies each proof, and has to refuse it for other inputs.
//!
//! `scripts/filecoin.sh` builds and runs it, and sets the folders.

mod parameters;
mod steps;

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use anyhow::{ensure, Result};
use filecoin_proofs::{
    add_piece, generate_piece_commitment, generate_window_post, generate_winning_post, seal_commit_phase1,
    seal_commit_phase2, seal_pre_commit_phase1, seal_pre_commit_phase2, verify_seal, verify_window_post,
    verify_winning_post, Commitment, PaddedBytesAmount, PieceInfo, PoRepConfig, PoStConfig, PoStType,
    PrivateReplicaInfo, ProverId, PublicReplicaInfo, SealPreCommitOutput, SectorShape2KiB, UnpaddedBytesAmount,
    SECTOR_SIZE_2_KIB, WINDOW_POST_CHALLENGE_COUNT, WINDOW_POST_SECTOR_COUNT, WINNING_POST_CHALLENGE_COUNT,
    WINNING_POST_SECTOR_COUNT,
};
use rand::{random, Rng};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::sector::SectorId;
use tempfile::{tempdir, NamedTempFile, TempDir};

use steps::step;

type Tree = SectorShape2KiB;

const PROVER: ProverId = [7; 32];
/// WindowPoSt's partitions, which one call proves.
const WINDOW_PARTITIONS: usize = 2;

/// A sector of random bytes, sealed up to its second pre-commitment.
struct Sector {
    id: SectorId,
    ticket: [u8; 32],
    pieces: Vec<PieceInfo>,
    commitments: SealPreCommitOutput,
    replica: NamedTempFile,
    cache: TempDir,
}

/// 32 random bytes that are an element of the field.
fn element() -> [u8; 32] {
    let mut bytes: [u8; 32] = random();
    bytes[31] &= 0x3f;
    bytes
}

fn seal(config: &PoRepConfig, id: u64) -> Result<Sector> {
    let size = UnpaddedBytesAmount::from(PaddedBytesAmount(SECTOR_SIZE_2_KIB));
    let mut piece = NamedTempFile::new()?;
    let mut bytes = vec![0; size.0 as usize];
    rand::thread_rng().fill(&mut bytes[..]);
    piece.write_all(&bytes)?;
    piece.rewind()?;
    let pieces = vec![generate_piece_commitment(piece.as_file_mut(), size)?];
    piece.rewind()?;
    let mut staged = NamedTempFile::new()?;
    add_piece(&mut piece, &mut staged, size, &[])?;

    let (id, ticket, replica, cache) = (SectorId::from(id), element(), NamedTempFile::new()?, tempdir()?);
    let labels = seal_pre_commit_phase1::<_, _, _, Tree>(
        config,
        cache.path(),
        staged.path(),
        replica.path(),
        PROVER,
        id,
        ticket,
        &pieces,
    )?;
    let commitments = seal_pre_commit_phase2(config, labels, cache.path(), replica.path())?;
    Ok(Sector { id, ticket, pieces, commitments, replica, cache })
}

impl Sector {
    fn commitment(&self) -> Commitment {
        self.commitments.comm_r
    }

    fn private(&self) -> Result<PrivateReplicaInfo<Tree>> {
        PrivateReplicaInfo::new(self.replica.path().into(), self.commitment(), self.cache.path().into())
    }

    fn public(&self) -> Result<PublicReplicaInfo> {
        PublicReplicaInfo::new(self.commitment())
    }
}

fn porep(config: &PoRepConfig, sector: &Sector, times: usize) -> Result<()> {
    let seed = element();
    let (cache, replica) = (sector.cache.path(), sector.replica.path());
    let verify = |seed, proof: &[u8]| {
        let (r, d) = (sector.commitments.comm_r, sector.commitments.comm_d);
        verify_seal::<Tree>(config, r, d, PROVER, sector.id, sector.ticket, seed, proof)
    };
    for time in 1..=times {
        let first = step(&format!("PoRep {time}: C1"), || {
            seal_commit_phase1::<_, Tree>(
                config,
                cache,
                replica,
                PROVER,
                sector.id,
                sector.ticket,
                seed,
                sector.commitments.clone(),
                &sector.pieces,
            )
        })?;
        let proof = step(&format!("PoRep {time}: C2"), || seal_commit_phase2(config, first, PROVER, sector.id))?.proof;
        step(&format!("PoRep {time}: verify"), || {
            ensure!(verify(seed, &proof)?, "a PoRep is refused");
            ensure!(!verify(element(), &proof)?, "a PoRep passes with another seed");
            Ok(())
        })?;
    }
    Ok(())
}

fn winning(config: &PoStConfig, sector: &Sector) -> Result<()> {
    let randomness = element();
    let proof = step("WinningPoSt: prove", || {
        generate_winning_post::<Tree>(config, &randomness, &[(sector.id, sector.private()?)], PROVER)
    })?;
    step("WinningPoSt: verify", || {
        let public = [(sector.id, sector.public()?)];
        ensure!(verify_winning_post::<Tree>(config, &randomness, &public, PROVER, &proof)?, "a WinningPoSt is refused");
        ensure!(
            !verify_winning_post::<Tree>(config, &element(), &public, PROVER, &proof)?,
            "a WinningPoSt passes with other randomness"
        );
        Ok(())
    })
}

fn window(config: &PoStConfig, sectors: &[Sector]) -> Result<()> {
    let randomness = element();
    let mut private = BTreeMap::new();
    let mut public = BTreeMap::new();
    for sector in sectors {
        private.insert(sector.id, sector.private()?);
        public.insert(sector.id, sector.public()?);
    }
    let proof = step("WindowPoSt: prove two partitions", || {
        generate_window_post::<Tree>(config, &randomness, &private, PROVER)
    })?;
    step("WindowPoSt: verify", || {
        ensure!(verify_window_post::<Tree>(config, &randomness, &public, PROVER, &proof)?, "a WindowPoSt is refused");
        ensure!(
            !verify_window_post::<Tree>(config, &element(), &public, PROVER, &proof)?,
            "a WindowPoSt passes with other randomness"
        );
        Ok(())
    })
}

fn main() -> Result<()> {
    let times = match std::env::args().nth(1) {
        Some(times) => times.parse()?,
        None => 2,
    };
    // The first id that is not of the proofs with the known fault of their graph's seed.
    let mut id = [0; 32];
    id[0] = 5;
    let version = ApiVersion::V1_2_0;
    let seals = PoRepConfig::new_groth16(SECTOR_SIZE_2_KIB, id, version);
    let post = |typ, sector_count, challenge_count| PoStConfig {
        sector_size: SECTOR_SIZE_2_KIB.into(),
        sector_count,
        challenge_count,
        typ,
        priority: false,
        api_version: version,
    };
    let window_sectors = WINDOW_POST_SECTOR_COUNT.read().expect("a constant")[&SECTOR_SIZE_2_KIB];
    let winning_post = post(PoStType::Winning, WINNING_POST_SECTOR_COUNT, WINNING_POST_CHALLENGE_COUNT);
    let window_post = post(PoStType::Window, window_sectors, WINDOW_POST_CHALLENGE_COUNT);

    let count = WINDOW_PARTITIONS * window_sectors;
    let sectors = step(&format!("seal {count} sectors (PC1, PC2)"), || {
        (1..=count as u64).map(|id| seal(&seals, id)).collect::<Result<Vec<_>>>()
    })?;
    // The smallest circuit first.
    parameters::post("WindowPoSt", &filecoin_proofs::parameters::window_post_public_params::<Tree>(&window_post)?)?;
    window(&window_post, &sectors)?;
    parameters::post("WinningPoSt", &filecoin_proofs::parameters::winning_post_public_params::<Tree>(&winning_post)?)?;
    winning(&winning_post, &sectors[0])?;
    parameters::porep(&seals)?;
    porep(&seals, &sectors[0], times)
}
