//! A circuit and powers of tau, of which keys are made.

use crate::files::refuse_custom_gates;
use crate::key::stage;
use crate::{Error, Progress, Result, SetupReport};
use std::path::Path;
use std::time::Instant;
use tandem_formats::{PtauFile, R1cs, R1csFile};

/// The files of a set-up.
pub(crate) struct Files<'a> {
    pub(crate) r1cs: &'a Path,
    pub(crate) ptau: &'a Path,
    pub(crate) zkey: &'a Path,
}

impl Files<'_> {
    /// The error of a set-up: the powers of tau are all that it checks.
    pub(crate) fn failed(&self, error: tandem_groth16::Error) -> Error {
        use tandem_groth16::Error as E;
        match error {
            E::Output(why) => Error::input(format!("{}: {why}", self.zkey.display())),
            E::Key(_) => Error::prover(error, self.ptau),
            other => Error::prover(other, self.r1cs),
        }
    }

    /// The error for powers of tau of too few rows. `needs` says what needs how many.
    pub(crate) fn too_few(&self, powers: &PtauFile, needs: &str, power: u32) -> Error {
        let has = powers.header.power;
        let ptau = self.ptau.display();
        Error::input(format!(
            "{ptau}: powers of tau for 2^{has} rows; {needs} 2^{power}: use a file of power {power} or more"
        ))
    }

    /// Reads the circuit, opens the powers of tau, which must be of its curve, and makes a key of them.
    pub(crate) fn set_up(
        &self,
        progress: &dyn Progress,
        make: impl FnOnce(&R1cs<'_>, &PtauFile) -> Result<SetupReport>,
    ) -> Result<SetupReport> {
        tandem_ops::threads::ready()?;
        let started = Instant::now();
        progress.start("read circuit", 0);
        let powers = PtauFile::open(self.ptau)?;
        let bytes = R1csFile::open(self.r1cs)?.read()?;
        let circuit = R1cs::parse(&bytes).map_err(|e| e.in_file(self.r1cs))?;
        refuse_custom_gates(&circuit, self.r1cs)?;
        let curve = circuit.header.curve;
        if powers.header.curve != curve {
            return Err(Error::input(format!(
                "{}: powers of tau for {}, expected those for {curve} as {} is; use files made for one curve",
                self.ptau.display(),
                powers.header.curve,
                self.r1cs.display()
            )));
        }
        let read = stage("read circuit", started);
        let mut report = make(&circuit, &powers)?;
        report.stages.insert(0, read);
        Ok(report)
    }
}
