//! The command line.

mod fabric;
mod listed;
pub(crate) mod snarkjs;
mod values;

pub(crate) use fabric::{Plan, PlanFormat, Source, Topo, TopoFormat};
pub(crate) use listed::{alone, command};
pub(crate) use values::{is_operation, Gpus, Helpers};

use clap::{Args, Parser, Subcommand};
use std::path::{Path, PathBuf};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::{Common, Curve, Json};
use tandem_console::values::{input, output, STDIN, STDOUT};

/// Groth16 and PLONK proofs of circom circuits, on the CPU and on NVIDIA GPUs, from snarkjs's own files.
#[derive(Parser)]
#[command(name = "tandem", version = crate::version::text(), about, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = "Exit status:\n  \
    0    done; of verify, the proof is valid\n  \
    1    the proof is not valid: its equation does not hold, a point of it is none of the curve's group, or a number of it or of \
    the public signals is not below the modulus; of check, the witness does not satisfy the circuit\n  \
    2    bad usage or bad input: a file is missing, malformed or of another circuit, or an output cannot be written\n  \
    3    the device failed, memory ran out, or tandem has a fault\n  \
    130  ended by Ctrl-C; 143 by SIGTERM; 128 + N by signal N\n\n\
    Files: - stands for stdin as an input and for stdout as an output; a file of that name is ./-\n\n\
    Example:\n  tandem prove circuit.zkey witness.wtns proof.json public.json\n\n\
    'tandem <command> --help' shows an example of each command, 'tandem help environment' the variables that set options, \
    and 'tandem help snarkjs' the commands of snarkjs and rapidsnark that work here.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a proof from a key and a witness
    #[command(after_help = "The proof is verified before it is written.\n\n\
        Examples:\n  tandem prove circuit.zkey witness.wtns proof.json public.json --device cuda:0\n  \
        tandem prove --wait < jobs.jsonl")]
    Prove(Prove),
    /// Compute the witness and make a proof
    #[command(after_help = "Example:\n  tandem fullprove input.json circuit.wasm circuit.zkey proof.json public.json")]
    Fullprove(Fullprove),
    /// Check a key once, so that its first proof takes no longer than later ones
    #[command(
        after_help = "The check is remembered in the cache folder (tandem cache), with the hashes of the file's blocks. Later uses read the file\n\
        once, compare each block with its hash, and check nothing again.\n\n\
        Example:\n  tandem prepare circuit.zkey"
    )]
    Prepare(Prepare),
    /// Compute a witness with the program that was made of a circuit
    #[command(
        after_help = "The program is circom's WebAssembly, a graph of circom-witnesscalc, or, with --native, what circom --c made.\n\n\
        Examples:\n  tandem witness circuit.wasm input.json witness.wtns\n  \
        tandem witness circuit_cpp/circuit input.json witness.wtns --native"
    )]
    Witness(Witness),
    /// Check a proof: prints OK, or INVALID with exit status 1
    #[command(after_help = "Example:\n  tandem verify verification_key.json public.json proof.json")]
    Verify(Verify),
    /// Say which constraints of a circuit a witness does not satisfy; exit status 1 if there are any
    #[command(after_help = "Names come from the file that circom --sym writes. No value of the witness is shown.\n\n\
        Example:\n  tandem check circuit.r1cs witness.wtns --sym circuit.sym")]
    Check(Check),
    /// Make a key for a circuit: a test key, NOT for production, or of powers of tau
    #[command(
        after_help = "A test key: whoever makes it can know the secret behind it and forge proofs. Use it for tests and benches.\n\
        With --ptau the key is that of snarkjs, byte for byte. A Groth16 one is the first of a ceremony: go on with\n\
        snarkjs zkey contribute. A PLONK one needs no ceremony of its own and is as good as the powers of tau.\n\n\
        Examples:\n  tandem setup circuit.r1cs circuit.zkey\n  \
        tandem setup --ptau pot.ptau circuit.r1cs circuit_0000.zkey\n  \
        tandem setup --protocol plonk --ptau pot.ptau circuit.r1cs circuit.zkey"
    )]
    Setup(Setup),
    /// Make powers of tau for tests, whose secret is known; NOT for production
    #[command(
        after_help = "With such powers of tau anybody can forge proofs. For a key that must be trusted take those of a ceremony.\n\n\
        Example:\n  tandem ptau --test 12 test.ptau"
    )]
    Ptau(Ptau),
    /// Write the verification key of a proving key
    #[command(after_help = "Example:\n  tandem export-vkey circuit.zkey verification_key.json")]
    ExportVkey(ExportVkey),
    /// Write a contract in Solidity that verifies the proofs of a key over bn254
    #[command(
        after_help = "Its verifyProof takes what that of snarkjs's contract takes, and tandem calldata prints. Without public signals the\n\
        last argument is an empty array of any length. A Groth16 contract has room for 250 public signals, the others for any number.\n\n\
        Examples:\n  tandem export-solidity circuit.zkey Verifier.sol\n  tandem export-solidity verification_key.json Verifier.sol"
    )]
    ExportSolidity(ExportSolidity),
    /// Print a proof and its public signals as arguments of a verifier contract
    #[command(
        after_help = "The arguments are those of verifyProof of the contracts of tandem export-solidity and of snarkjs.\n\n\
        Example:\n  tandem calldata public.json proof.json"
    )]
    Calldata(Calldata),
    /// Say what a zkey, wtns, r1cs or ptau file holds; never shows a value of a witness
    #[command(
        after_help = "Of a key it foretells the memory that one proof takes, in all: of all GPUs together (beside a context of some 0.5 GiB on\n\
        each; where more is free, sums take more), of the host beside them, and of the host where the CPU proves.\n\n\
        Example:\n  tandem inspect circuit.zkey --json"
    )]
    Inspect(Inspect),
    /// Say what was built in, what was found, and why a GPU is not used
    #[command(after_help = "Example:\n  tandem doctor")]
    Doctor(Doctor),
    /// Say which checks of keys are remembered, or forget them
    #[command(
        after_help = "Nothing breaks without them: a key is checked again when it is next used. What was not used for longest is forgotten\n\
        beyond 1024 keys, or 64 MiB of hashes of their files' blocks.\n\n\
        Examples:\n  tandem cache\n  tandem cache clear"
    )]
    Cache(Cache),
    /// Show the GPUs, switches and links of a machine, with GB/s
    #[command(
        after_help = "Examples:\n  tandem topo --measure\n  tandem topo --preset dgx1-v100\n  tandem topo --from topo.xml --json\n  \
            tandem topo --preset hgx-h200 --draw box.svg"
    )]
    Topo(Topo),
    /// Plan how to move data over all links, and prove that nothing is faster
    #[command(after_help = "The rate is nccl-tests' algbw for large data. Helpers only forward.\n\n\
        Examples:\n  tandem plan broadcast --gpus 0,1 --helpers 2,3 --preset dgx1-v100\n  \
        tandem plan allreduce --gpus all --preset hgx-h200\n  \
        tandem plan broadcast --gpus 0,1 --helpers all --preset dgx1-v100 --draw plan.svg")]
    Plan(Plan),
    /// Start a program several times, as the processes of one team
    #[command(
        after_help = "Each process finds its rank, how many there are, and where they meet in TANDEM_RANK, TANDEM_SIZE and TANDEM_MEET. What it\n\
        prints has the rank before each line. When one ends with another status than 0, the others are ended, and its status is\n\
        that of tandem run (128 + N after signal N). Ctrl-C and SIGTERM end all. None of them is left.\n\n\
        Processes of several nodes reach each other by TCP. Run it on each, with the same secret in TANDEM_NODES_SECRET.\n\n\
        Examples:\n  tandem run -n 4 target/debug/examples/shift\n  \
        tandem run --nodes 2 --node 0 --at 10.0.0.1:4300 -n 4 program     (on the host 10.0.0.1)\n  \
        tandem run --nodes 2 --node 1 --at 10.0.0.1:4300 -n 4 program     (on the other one)"
    )]
    Run(crate::run::Run),
    /// Hash the elements in a file
    Hash {
        #[command(subcommand)]
        what: crate::hash::Hash,
    },
    /// The sum, the least or the greatest of the elements in a file
    #[command(after_help = "The file may be larger than any memory: it streams to all devices.\n\nExamples:\n  \
                            tandem reduce values.bin --element f32 --op max\n  \
                            tandem reduce scalars.bin --element scalar --curve bls12-381")]
    Reduce(crate::reduce::ReduceFile),
    /// Put the keys in a file in order
    #[command(
        after_help = "What is larger than the devices' memory is sorted in pieces. The file and what comes of it must fit in host \
                            memory.\n\nExamples:\n  tandem sort keys.bin sorted.bin\n  \
                            tandem sort pairs.bin sorted.bin --key u32 --pairs --descending"
    )]
    Sort(crate::sort::SortFile),
    /// Run a proving service on this machine
    #[command(
        after_help = "Callers use tandem submit, status, wait, cancel and keys, or HTTP: GET /openapi.json describes it.\n\n\
        Examples:\n  tandem serve\n  tandem serve --config tandem.toml --print-config\n  \
        tandem serve --worker cuda:0 --worker cuda:1"
    )]
    Serve(crate::serve::Serve),
    /// A worker of the service, which starts it
    #[command(hide = true)]
    ServeWorker(crate::serve::Worker),
    /// A process of the service that makes one witness
    #[command(hide = true)]
    ServeCalculator,
    /// Send a witness, or inputs, to a service; prints the job's id, or waits for its proof
    #[command(
        after_help = "With PROOF and PUBLIC it waits and writes them. Inputs (JSON) want a key with a circuit's program:\n\
        tandem keys add NAME FILE --wasm PROGRAM.\n\nExamples:\n  \
        tandem submit circuit.zkey witness.wtns proof.json public.json\n  tandem submit withdraw witness.wtns --id order-17\n  \
        tandem submit withdraw input.json proof.json public.json\n  \
        tandem submit --r1cs circuit.r1cs key.params witness.wtns proof.json public.json"
    )]
    Submit(crate::jobs::Submit),
    /// Send witnesses and inputs of one key to a service as one; prints the batch's id, or waits for the proofs
    #[command(
        after_help = "With --out it waits, and writes NAME.proof.json and NAME.public.json for each file NAME.wtns or NAME.json.\n\n\
        Examples:\n  tandem batch withdraw a.wtns b.wtns c.json --out proofs\n  tandem batch withdraw a.wtns b.wtns --id night-7"
    )]
    Batch(crate::batch::Batch),
    /// Say how a job of a service is, or list its jobs
    #[command(after_help = "Example:\n  tandem status 0f1e2d3c4b5a69788796a5b4c3d2e1f0 --json")]
    Status(crate::jobs::Status),
    /// Wait for a job of a service, and write its proof
    #[command(after_help = "Example:\n  tandem wait 0f1e2d3c4b5a69788796a5b4c3d2e1f0 proof.json public.json")]
    Wait(crate::jobs::Wait),
    /// Take a job of a service back
    #[command(after_help = "Example:\n  tandem cancel 0f1e2d3c4b5a69788796a5b4c3d2e1f0")]
    Cancel(crate::jobs::Cancel),
    /// Write what a service did in the last minutes as a trace, for Perfetto and Chrome
    #[command(
        after_help = "Example:\n  tandem trace trace.json --minutes 10\n\nOpen the file at https://ui.perfetto.dev or chrome://tracing."
    )]
    Trace(crate::batch::Trace),
    /// The keys of a service
    Keys {
        #[command(subcommand)]
        what: crate::jobs::Keys,
    },
    /// Say who may call the service of a data folder
    #[command(after_help = "Example:\n  tandem tokens add wallet > wallet.token")]
    Tokens {
        #[command(subcommand)]
        what: crate::tokens::Tokens,
    },
    /// Measure, after checking that the results are right
    Bench(tandem_bench::Command),
    /// Print the help of a command, or of environment or snarkjs
    #[command(after_help = "Examples:\n  tandem help prove\n  tandem help environment\n  tandem help snarkjs")]
    Help {
        /// A command, environment or snarkjs
        topic: Vec<String>,
    },
    /// Words of snarkjs and rapidsnark.
    #[command(flatten)]
    Snarkjs(snarkjs::Snarkjs),
    /// Print the completions of a shell
    #[command(after_help = "Example:\n  tandem completions bash > ~/.local/share/bash-completion/completions/tandem")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub(crate) struct Prove {
    /// The proving key
    #[arg(value_parser = input(), required_unless_present = "wait")]
    zkey: Option<PathBuf>,
    /// The witness
    #[arg(value_parser = input(), required_unless_present = "wait")]
    witness: Option<PathBuf>,
    /// Where to write the proof
    #[arg(value_parser = output(), required_unless_present = "wait")]
    proof: Option<PathBuf>,
    /// Where to write the public signals
    #[arg(value_parser = output(), required_unless_present = "wait")]
    public: Option<PathBuf>,
    /// For a key of bellperson (params), which holds no matrices: the circuit that it was made of
    #[arg(long, value_name = "R1CS", value_parser = input(), conflicts_with_all = ["more", "wait"])]
    pub(crate) r1cs: Option<PathBuf>,
    /// One more proof with the same key; may be given again and again. With --schedule each every GPU makes proofs of its own
    #[arg(long, num_args = 3, value_names = ["WITNESS", "PROOF", "PUBLIC"])]
    more: Vec<PathBuf>,
    /// Stay ready: read jobs from stdin, one JSON object a line, and answer each with a line on stdout, until stdin ends
    #[arg(long, conflicts_with_all = ["zkey", "more", "check_key", "explain", "json"])]
    wait: bool,
    /// With --wait: MiB of keys that stay loaded, by their files; those that were not used for longest make room [default: 16384]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    key_memory: Option<u64>,
    #[command(flatten)]
    pub(crate) explain: Explain,
    #[command(flatten)]
    pub(crate) options: ProveOptions,
}

/// The files of one proof.
#[derive(Clone, Copy)]
pub(crate) struct ProveFiles<'a> {
    pub(crate) zkey: &'a Path,
    pub(crate) witness: &'a Path,
    pub(crate) proof: &'a Path,
    pub(crate) public: &'a Path,
}

impl Prove {
    /// Where jobs are waited for, the bytes of keys that stay loaded.
    pub(crate) fn waits(&self) -> Outcome<Option<u64>> {
        match (self.wait, self.key_memory) {
            (true, mib) => Ok(Some(mib.unwrap_or(16 << 10) << 20)),
            (false, None) => Ok(None),
            // To clap an option that conflicts with what is there is not missing.
            (false, Some(_)) => Err(Failure::input("--key-memory goes with --wait; see tandem prove --help")),
        }
    }

    /// The files of the first proof; `None` where jobs are waited for.
    pub(crate) fn files(&self) -> Option<ProveFiles<'_>> {
        let Self { zkey: Some(zkey), witness: Some(witness), proof: Some(proof), public: Some(public), .. } = self
        else {
            return None;
        };
        Some(ProveFiles { zkey, witness, proof, public })
    }

    /// The witness, the proof and the public signals of each further proof.
    pub(crate) fn more(&self) -> impl Iterator<Item = [PathBuf; 3]> + '_ {
        let file = |path: &PathBuf, stream: &str| if path.as_os_str() == "-" { stream.into() } else { path.clone() };
        let of = move |paths: &[PathBuf]| [file(&paths[0], STDIN), file(&paths[1], STDOUT), file(&paths[2], STDOUT)];
        self.more.chunks_exact(3).map(of)
    }
}

#[derive(Args)]
pub(crate) struct Fullprove {
    /// The circuit's inputs
    #[arg(value_parser = input())]
    pub(crate) input: PathBuf,
    /// The circuit as WebAssembly, or as a graph of circom-witnesscalc
    #[arg(value_parser = input())]
    pub(crate) wasm: PathBuf,
    /// The proving key
    #[arg(value_parser = input())]
    pub(crate) zkey: PathBuf,
    /// Where to write the proof
    #[arg(value_parser = output())]
    pub(crate) proof: PathBuf,
    /// Where to write the public signals
    #[arg(value_parser = output())]
    pub(crate) public: PathBuf,
    #[command(flatten)]
    pub(crate) explain: Explain,
    #[command(flatten)]
    pub(crate) options: ProveOptions,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

#[derive(Args)]
pub(crate) struct ProveOptions {
    /// Check every point of the key even if this key has been checked before
    #[arg(long)]
    pub(crate) check_key: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// Say on stderr which lane (a device of --device, from 0 on) does what in a proof, before it is made
    #[arg(long)]
    pub(crate) explain: bool,
}

impl ProveOptions {
    pub(crate) fn check(&self) -> tandem_engine::KeyCheck {
        match self.check_key {
            true => tandem_engine::KeyCheck::Always,
            false => tandem_engine::KeyCheck::Once,
        }
    }
}

#[derive(Args)]
pub(crate) struct Prepare {
    /// The proving key
    #[arg(value_parser = input())]
    pub(crate) zkey: PathBuf,
    #[command(flatten)]
    pub(crate) options: ProveOptions,
}

#[derive(Args)]
pub(crate) struct Witness {
    /// The circuit as WebAssembly, or as a graph of circom-witnesscalc
    #[arg(value_parser = input())]
    pub(crate) wasm: PathBuf,
    /// The circuit's inputs
    #[arg(value_parser = input())]
    pub(crate) input: PathBuf,
    /// Where to write the witness
    #[arg(value_parser = output())]
    pub(crate) witness: PathBuf,
    /// For a key of bellperson (params): write the sides of this circuit's constraints, too, so that a proof needs no circuit
    #[arg(long, value_name = "R1CS", value_parser = input())]
    pub(crate) r1cs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Bounds of the circuit's program, and what is known of it.
#[derive(Args)]
pub(crate) struct Limits {
    /// Stop the circuit's program after this many million steps; what is slower than a step counts as several
    #[arg(long, value_name = "MILLIONS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    #[arg(env = "TANDEM_MAX_STEPS", hide_env_values = true)]
    pub(crate) max_steps: u64,
    /// Stop the circuit's program after this many seconds by the clock
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    #[arg(env = "TANDEM_MAX_SECONDS", hide_env_values = true)]
    pub(crate) max_seconds: Option<u64>,
    /// Take at most this much memory for the circuit's program, the inputs and the witness together
    #[arg(long, value_name = "MIB", default_value_t = 8192, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    #[arg(env = "TANDEM_MAX_MEMORY", hide_env_values = true)]
    pub(crate) max_memory: u64,
    /// Which runs of a WebAssembly are recorded: later runs with other inputs then replay the recording
    #[arg(long, value_name = "WHICH", default_value = "auto", env = "TANDEM_RECORDINGS", hide_env_values = true)]
    pub(crate) recordings: Recordings,
    /// Run the circuit's program also where it is one of this machine, from circom --c. It may do all that you may: trust it first
    #[arg(long)]
    pub(crate) native: bool,
    /// The names of the signals, for messages; circuit.sym beside circuit_js/circuit.wasm, or beside circuit.wasm, unless given
    #[arg(long, value_name = "FILE")]
    pub(crate) sym: Option<PathBuf>,
}

/// Which runs of circuits are recorded.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Recordings {
    /// Those that do not branch on their inputs: a short one at once, of a longer program the third
    Auto,
    /// All; a recording then says which way the run branched on its inputs
    All,
    /// None, and none is replayed
    Off,
}

impl Limits {
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.max_memory << 20
    }

    pub(crate) fn of_witness(&self) -> tandem_witness::Limits {
        tandem_witness::Limits {
            memory_bytes: usize::try_from(self.memory_bytes()).unwrap_or(usize::MAX),
            steps: self.max_steps.saturating_mul(1_000_000),
            time: self.max_seconds.map(std::time::Duration::from_secs),
        }
    }

    /// The option that sets a limit.
    pub(crate) fn option(limit: tandem_witness::Limit) -> &'static str {
        match limit {
            tandem_witness::Limit::Memory => "--max-memory",
            tandem_witness::Limit::Steps => "--max-steps",
            tandem_witness::Limit::Time => "--max-seconds",
        }
    }
}

#[derive(Args)]
pub(crate) struct Verify {
    /// The verification key
    #[arg(value_parser = input())]
    pub(crate) vkey: PathBuf,
    /// The public signals
    #[arg(value_parser = input())]
    pub(crate) public: PathBuf,
    /// The proof
    #[arg(value_parser = input())]
    pub(crate) proof: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Args)]
pub(crate) struct Calldata {
    /// The public signals
    #[arg(value_parser = input())]
    pub(crate) public: PathBuf,
    /// The proof
    #[arg(value_parser = input())]
    pub(crate) proof: PathBuf,
}

#[derive(Args)]
pub(crate) struct Check {
    /// The circuit's constraints
    pub(crate) r1cs: PathBuf,
    /// The witness
    pub(crate) witness: PathBuf,
    /// The names of the signals
    #[arg(long, value_name = "FILE")]
    pub(crate) sym: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Args)]
pub(crate) struct Setup {
    /// The circuit's constraints
    #[arg(value_parser = input())]
    pub(crate) r1cs: PathBuf,
    /// Where to write the proving key
    #[arg(value_parser = output())]
    pub(crate) zkey: PathBuf,
    /// The proof system
    #[arg(long, value_enum, default_value = "groth16")]
    pub(crate) protocol: Protocol,
    /// The powers of tau, prepared for phase 2: for PLONK and FFLONK, and for the first key of a Groth16 ceremony
    #[arg(
        long,
        value_name = "PTAU",
        value_parser = input(),
        required_if_eq_any([("protocol", "plonk"), ("protocol", "fflonk")])
    )]
    pub(crate) ptau: Option<PathBuf>,
    /// Write a test key as bellperson does (params), for circuits over bls12-381
    #[arg(long, conflicts_with_all = ["ptau", "protocol"])]
    pub(crate) params: bool,
    /// Draw the secret of a test key from this text, so that the same text gives the same key
    #[arg(long, value_name = "TEXT")]
    pub(crate) seed: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A proof system that keys are made for.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// Groth16
    Groth16,
    /// PLONK
    Plonk,
    /// FFLONK, over bn254 alone
    Fflonk,
}

#[derive(Args)]
pub(crate) struct Ptau {
    /// Says that you know that the secret is known
    #[arg(long, required = true)]
    test: bool,
    /// They serve up to 2^POWER constraints, for PLONK gates, for FFLONK an eighth as many
    #[arg(value_parser = clap::value_parser!(u32).range(1..=27))]
    pub(crate) power: u32,
    /// Where to write them
    #[arg(value_parser = output())]
    pub(crate) ptau: PathBuf,
    /// The curve
    #[arg(long, value_enum, default_value = "bn254")]
    pub(crate) curve: Curve,
    /// Draw the secret from this text and not from one that everybody knows
    #[arg(long, value_name = "TEXT")]
    pub(crate) seed: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Args)]
pub(crate) struct ExportVkey {
    /// The proving key
    #[arg(value_parser = input())]
    pub(crate) zkey: PathBuf,
    /// Where to write the verification key
    #[arg(value_parser = output())]
    pub(crate) vkey: PathBuf,
}

#[derive(Args)]
pub(crate) struct ExportSolidity {
    /// The verification key or the proving key
    #[arg(value_parser = input())]
    pub(crate) key: PathBuf,
    /// Where to write the contract
    #[arg(value_parser = output(), default_value = "-")]
    pub(crate) contract: PathBuf,
}

#[derive(Args)]
pub(crate) struct Inspect {
    /// The file
    #[arg(value_parser = input())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Args)]
pub(crate) struct Cache {
    /// What to do
    #[arg(value_enum, default_value = "list")]
    pub(crate) what: CacheWork,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CacheWork {
    /// Say what is remembered
    List,
    /// Forget all of it
    Clear,
}

/// Prints the completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "tandem", &mut text);
    tandem_console::report::result(
        &String::from_utf8(text).map_err(|_| Failure::device("the completions are not text"))?,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let path = path.trim();
            if command.has_subcommands() {
                command.get_subcommands().filter(|c| !c.is_hide_set()).for_each(|c| check(c, path));
            } else {
                let help = command.get_after_help().map(|h| h.to_string()).unwrap_or_default();
                assert!(
                    help.contains("Example") && help.contains(&format!("  {path} ")) || help.ends_with(path),
                    "{path}"
                );
            }
        }
        check(&command(), "");
    }
}
