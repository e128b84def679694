//! Words of snarkjs and rapidsnark: they do what ours do, or are answered with what to type.

use super::{
    Calldata, Check, Cli, Command, ExportSolidity, ExportVkey, Fullprove, Inspect, Protocol, Prove, Verify, Witness,
};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::Json;
use tandem_console::report;

/// What snarkjs and rapidsnark call their commands.
#[derive(Subcommand)]
pub(crate) enum Snarkjs {
    /// snarkjs groth16
    #[command(hide = true)]
    Groth16 {
        #[command(subcommand)]
        what: Groth16,
    },
    /// snarkjs zkey
    #[command(hide = true)]
    Zkey {
        #[command(subcommand)]
        what: Zkey,
    },
    /// snarkjs wtns
    #[command(hide = true)]
    Wtns {
        #[command(subcommand)]
        what: Wtns,
    },
    /// snarkjs r1cs
    #[command(hide = true)]
    R1cs {
        #[command(subcommand)]
        what: Info,
    },
    /// snarkjs file
    #[command(hide = true)]
    File {
        #[command(subcommand)]
        what: Info,
    },
    /// snarkjs plonk
    #[command(hide = true)]
    Plonk {
        #[command(subcommand)]
        what: Plonk,
    },
    /// snarkjs fflonk
    #[command(hide = true)]
    Fflonk {
        #[command(subcommand)]
        what: Fflonk,
    },
    /// snarkjs powersoftau
    #[command(hide = true)]
    Powersoftau(Words),
    /// snarkjs groth16 prove
    #[command(hide = true, alias = "pkp")]
    G16p(Prove),
    /// snarkjs groth16 fullprove
    #[command(hide = true, alias = "pkf")]
    G16f(Fullprove),
    /// snarkjs groth16 verify
    #[command(hide = true, alias = "pkv")]
    G16v(Verify),
    /// snarkjs plonk setup
    #[command(hide = true)]
    Pks(Setup),
    /// snarkjs groth16 setup
    #[command(hide = true)]
    G16s(Setup),
    /// snarkjs zkey export verificationkey
    #[command(hide = true)]
    Zkev(ExportVkey),
    /// snarkjs zkey export solidityverifier
    #[command(hide = true)]
    Zkesv(ExportSolidity),
    /// snarkjs zkey export soliditycalldata
    #[command(hide = true)]
    Generatecall(Calldata),
    /// snarkjs wtns calculate
    #[command(hide = true)]
    Wc(Witness),
    /// snarkjs wtns check
    #[command(hide = true)]
    Wchk(Check),
    /// snarkjs r1cs info
    #[command(hide = true)]
    Ri(Inspect),
    /// The program of rapidsnark
    #[command(hide = true)]
    Prover(Prove),
    /// The verifier of rapidsnark
    #[command(hide = true)]
    Verifier(Verify),
}

/// snarkjs groth16
#[derive(Subcommand)]
pub(crate) enum Groth16 {
    /// As tandem setup --ptau
    Setup(Setup),
    /// As tandem prove
    Prove(Prove),
    /// As tandem fullprove
    Fullprove(Fullprove),
    /// As tandem verify
    Verify(Verify),
}

#[derive(Args)]
pub(crate) struct Setup {
    /// The circuit's constraints
    r1cs: PathBuf,
    /// The powers of tau
    ptau: PathBuf,
    /// Where to write the key
    zkey: PathBuf,
}

/// snarkjs plonk
#[derive(Subcommand)]
pub(crate) enum Plonk {
    /// As tandem setup --protocol plonk
    Setup(Setup),
    /// As tandem prove
    Prove(Prove),
    /// As tandem fullprove
    Fullprove(Fullprove),
    /// As tandem verify
    Verify(Verify),
}

/// snarkjs fflonk
#[derive(Subcommand)]
pub(crate) enum Fflonk {
    /// As tandem setup --protocol fflonk
    Setup(Setup),
    /// As tandem prove
    Prove(Prove),
    /// As tandem fullprove
    Fullprove(Fullprove),
    /// As tandem verify
    Verify(Verify),
}

/// snarkjs zkey
#[derive(Subcommand)]
pub(crate) enum Zkey {
    /// As tandem export-vkey, and more
    Export {
        #[command(subcommand)]
        what: Export,
    },
    /// Of ceremonies
    Verify(Words),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// snarkjs zkey export
#[derive(Subcommand)]
pub(crate) enum Export {
    /// As tandem export-vkey
    Verificationkey(ExportVkey),
    /// As tandem export-solidity
    Solidityverifier(ExportSolidity),
    /// As tandem calldata
    Soliditycalldata(Calldata),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// snarkjs wtns
#[derive(Subcommand)]
pub(crate) enum Wtns {
    /// As tandem witness
    Calculate(Witness),
    /// As tandem check
    Check(Check),
    /// Values of a witness, which tandem does not show
    Export(Words),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// snarkjs r1cs and file
#[derive(Subcommand)]
pub(crate) enum Info {
    /// As tandem inspect
    Info(Inspect),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// What follows a word.
#[derive(Args)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Cli {
    /// With our own command for one of snarkjs's.
    pub(crate) fn in_our_words(self) -> Outcome<Self> {
        let command = match self.command {
            Command::Snarkjs(words) => words.ours()?,
            other => other,
        };
        Ok(Self { command, ..self })
    }
}

impl Snarkjs {
    fn ours(self) -> Outcome<Command> {
        Ok(match self {
            Snarkjs::Groth16 { what: Groth16::Prove(a) } | Snarkjs::G16p(a) | Snarkjs::Prover(a) => Command::Prove(a),
            Snarkjs::Groth16 { what: Groth16::Fullprove(a) } | Snarkjs::G16f(a) => Command::Fullprove(a),
            Snarkjs::Groth16 { what: Groth16::Verify(a) } | Snarkjs::G16v(a) | Snarkjs::Verifier(a) => {
                Command::Verify(a)
            }
            Snarkjs::Plonk { what: Plonk::Prove(a) } => Command::Prove(a),
            Snarkjs::Plonk { what: Plonk::Fullprove(a) } => Command::Fullprove(a),
            Snarkjs::Plonk { what: Plonk::Verify(a) } => Command::Verify(a),
            Snarkjs::Plonk { what: Plonk::Setup(a) } | Snarkjs::Pks(a) => Command::Setup(a.of(Protocol::Plonk)),
            Snarkjs::Groth16 { what: Groth16::Setup(a) } | Snarkjs::G16s(a) => Command::Setup(a.of(Protocol::Groth16)),
            Snarkjs::Zkey { what: Zkey::Export { what: Export::Verificationkey(a) } } | Snarkjs::Zkev(a) => {
                Command::ExportVkey(a)
            }
            Snarkjs::Zkey { what: Zkey::Export { what: Export::Solidityverifier(a) } } | Snarkjs::Zkesv(a) => {
                Command::ExportSolidity(a)
            }
            Snarkjs::Zkey { what: Zkey::Export { what: Export::Soliditycalldata(a) } } | Snarkjs::Generatecall(a) => {
                Command::Calldata(a)
            }
            Snarkjs::Zkey { what: Zkey::Export { what: Export::Other(words) } } => {
                return Err(other("zkey export", &words))
            }
            Snarkjs::Zkey { what: Zkey::Verify(words) } => return Err(of_ceremony(&words.words)),
            Snarkjs::Zkey { what: Zkey::Other(words) } => return Err(other("zkey", &words)),
            Snarkjs::Wtns { what: Wtns::Calculate(a) } | Snarkjs::Wc(a) => Command::Witness(a),
            Snarkjs::Wtns { what: Wtns::Check(a) } | Snarkjs::Wchk(a) => Command::Check(a),
            Snarkjs::Wtns { what: Wtns::Export(words) } => return Err(of_values(&words.words)),
            Snarkjs::Wtns { what: Wtns::Other(words) } => return Err(other("wtns", &words)),
            Snarkjs::R1cs { what: Info::Info(a) } | Snarkjs::File { what: Info::Info(a) } | Snarkjs::Ri(a) => {
                Command::Inspect(a)
            }
            Snarkjs::R1cs { what: Info::Other(words) } => return Err(other("r1cs", &words)),
            Snarkjs::File { what: Info::Other(words) } => return Err(other("file", &words)),
            Snarkjs::Fflonk { what: Fflonk::Setup(a) } => Command::Setup(a.of(Protocol::Fflonk)),
            Snarkjs::Fflonk { what: Fflonk::Verify(a) } => Command::Verify(a),
            Snarkjs::Fflonk { what: Fflonk::Prove(a) } => Command::Prove(a),
            Snarkjs::Fflonk { what: Fflonk::Fullprove(a) } => Command::Fullprove(a),
            Snarkjs::Powersoftau(words) => return Err(other("powersoftau", &words.words)),
        })
    }
}

impl Setup {
    /// As tandem setup --protocol ... --ptau.
    fn of(self, protocol: Protocol) -> super::Setup {
        let json = Json { json: false };
        super::Setup {
            r1cs: self.r1cs,
            zkey: self.zkey,
            protocol,
            ptau: Some(self.ptau),
            params: false,
            seed: None,
            json,
        }
    }
}

fn other(group: &str, words: &[OsString]) -> Failure {
    Failure::input(format!("tandem has no such command; snarkjs has: npx snarkjs {group}{}", joined(words)))
}

/// Of `zkey verify [r1cs|init] FILE PTAU ZKEY`.
fn of_ceremony(words: &[OsString]) -> Failure {
    let inspect = words.last().map_or("circuit.zkey".into(), |zkey| quoted(zkey));
    Failure::input(format!(
        "tandem does not verify ceremonies; snarkjs does: npx snarkjs zkey verify{}; \
         what the key says of its own: tandem inspect {inspect}",
        joined(words)
    ))
}

/// Of `wtns export json WTNS JSON`.
fn of_values(words: &[OsString]) -> Failure {
    let witness = words.iter().find(|word| *word != "json").map_or("witness.wtns".into(), |file| quoted(file));
    Failure::input(format!(
        "tandem shows no values of a witness; snarkjs does: npx snarkjs wtns export{}; \
         its curve and length: tandem inspect {witness}",
        joined(words)
    ))
}

/// Words as a shell takes them, each with a space before it.
fn joined(words: &[OsString]) -> String {
    words.iter().map(|word| format!(" {}", quoted(word))).collect()
}

fn quoted(word: &std::ffi::OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:=@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Words of theirs, and ours.
pub(crate) const TABLE: [(&str, &str); 20] = [
    ("groth16 prove ZKEY WTNS PROOF PUBLIC", "prove ZKEY WTNS PROOF PUBLIC"),
    ("groth16 fullprove INPUT WASM ZKEY PROOF PUBLIC", "fullprove INPUT WASM ZKEY PROOF PUBLIC"),
    ("groth16 verify VKEY PUBLIC PROOF", "verify VKEY PUBLIC PROOF"),
    ("groth16 setup R1CS PTAU ZKEY", "setup --ptau PTAU R1CS ZKEY"),
    ("zkey export verificationkey ZKEY VKEY", "export-vkey ZKEY VKEY"),
    ("zkey export solidityverifier ZKEY SOL", "export-solidity ZKEY SOL"),
    ("zkey export soliditycalldata PUBLIC PROOF", "calldata PUBLIC PROOF"),
    ("zkey verify R1CS PTAU ZKEY", "inspect ZKEY says who took part *"),
    ("zkey contribute, zkey beacon, powersoftau", "none *"),
    ("wtns calculate WASM INPUT WTNS", "witness WASM INPUT WTNS"),
    ("wtns check R1CS WTNS", "check R1CS WTNS"),
    ("wtns export json WTNS JSON", "none: values are secret *"),
    ("r1cs info R1CS", "inspect R1CS"),
    ("file info FILE", "inspect FILE"),
    ("plonk setup R1CS PTAU ZKEY", "setup --protocol plonk --ptau PTAU"),
    ("plonk prove, plonk fullprove, plonk verify", "prove, fullprove, verify"),
    ("fflonk setup R1CS PTAU ZKEY", "setup --protocol fflonk --ptau PTAU"),
    ("fflonk prove, fflonk fullprove, fflonk verify", "prove, fullprove, verify"),
    ("prover ZKEY WTNS PROOF PUBLIC (rapidsnark)", "prove ZKEY WTNS PROOF PUBLIC"),
    ("verifier VKEY PUBLIC PROOF (rapidsnark)", "verify VKEY PUBLIC PROOF"),
];

/// The table, for `tandem help snarkjs`.
pub(crate) fn help() -> String {
    let mut text = "Commands of snarkjs and rapidsnark, after 'tandem'. They do what ours do, the\n\
                    short ones (g16p, pkp, pks, zkev, wc, wchk, ri ..) too; those with * are\n\
                    answered with what to type.\n\n"
        .to_string();
    for (theirs, ours) in TABLE {
        text += &report::row(46, theirs, ours);
        text.push('\n');
    }
    text
}
