//! `tandem hash`: hashes of the elements in a file.

use crate::source::Source;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::{Curve, HashFunction, Json};
use tandem_console::session::Session;
use tandem_console::{interrupt, report};
use tandem_engine::{CurveId, Hasher, Progress, ELEMENT_BYTES};
use tandem_formats::Output;
use tandem_ops::cpu::Cpu;
use tandem_ops::{Backend, Canonical, Unaligned};
use zeroize::Zeroizing;

/// Bytes of a file that are held at a time, at most.
const PIECE: usize = 256 << 20;

/// What to hash with.
#[derive(Subcommand)]
pub(crate) enum Hash {
    /// Poseidon of every column of a matrix, or the root of a Merkle tree
    #[command(
        after_help = "The input holds elements of 32 bytes each: integers below the modulus, least significant byte first, \
        column after column. The output holds one such integer for each column, or, with --tree, the root alone.\n\n\
        Examples:\n  tandem hash poseidon columns.bin hashes.bin --arity 11 --family filecoin --curve bls12-381\n  \
        tandem hash poseidon leaves.bin root.bin --arity 2 --tree"
    )]
    Poseidon(HashPoseidon),
}

#[derive(Args)]
pub(crate) struct HashPoseidon {
    /// The elements
    #[arg(value_parser = tandem_console::values::input())]
    pub(crate) input: PathBuf,
    /// Where to write the hashes
    #[arg(value_parser = tandem_console::values::output())]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) function: HashFunction,
    /// The curve whose scalars are hashed
    #[arg(long, value_enum, default_value = "bn254")]
    pub(crate) curve: Curve,
    /// Take the elements as leaves of a Merkle tree, and write its root
    #[arg(long)]
    pub(crate) tree: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

pub(crate) fn run(session: &Session, what: &Hash) -> Outcome {
    let Hash::Poseidon(args) = what;
    poseidon(session, args, args.curve.into())
}

fn poseidon(session: &Session, args: &HashPoseidon, curve: CurveId) -> Outcome {
    let params = args.function.params()?;
    let mut source = Source::open(&args.input, ELEMENT_BYTES)?;
    let elements = source.elements;
    if elements == 0 {
        let problem = format!("the file is empty; expected elements of {ELEMENT_BYTES} bytes each");
        return Err(Failure::file(&args.input, problem));
    }
    if args.tree {
        if tandem_ops::poseidon::height(elements, params.arity()).is_none() {
            let problem = format!("{elements} leaves; expected a power of the arity {}", params.arity());
            return Err(Failure::file(&args.input, format!("{problem}; add leaves, or choose another --arity")));
        }
    } else if !elements.is_multiple_of(params.arity()) {
        let problem = format!("{elements} elements; expected a multiple of the arity {}", params.arity());
        return Err(Failure::file(&args.input, problem));
    }
    let mut output = Output::create(&args.output)?;
    let begun = Instant::now();
    let hasher = session.trace.step("open device", || Hasher::open(&session.device, curve, params))?;
    if session.device == tandem_engine::DeviceChoice::Auto {
        session.note(&format!("device: {}", hasher.report().lanes.join(", ")));
    }
    let hashes = if args.tree {
        session.trace.step("tree", || tree(session, &hasher, &mut source, &mut output))?
    } else {
        session.trace.step("hash", || columns(session, &hasher, &mut source, &mut output))?
    };
    source.unchanged()?;
    interrupt::check()?;
    tandem_formats::output::commit([output])?;
    session.bars.clear();
    let seconds = begun.elapsed().as_secs_f64();
    if args.json.json {
        let row = json!({"elements": elements, "hashes": hashes, "seconds": report::round(seconds)});
        report::result(&row.to_string());
        return Ok(());
    }
    session.note(&format!("{elements} elements, {hashes} hashes in {}", report::seconds(seconds)));
    Ok(())
}

/// Hashes columns piece by piece; returns how many.
fn columns(session: &Session, hasher: &Hasher, source: &mut Source<'_>, output: &mut Output) -> Outcome<usize> {
    let arity = hasher.params().arity();
    let (total, most) = (source.elements / arity, PIECE / ELEMENT_BYTES / arity);
    Progress::start(&session.bars, "hash", total as u64);
    let mut elements = memory(total.min(most) * arity * ELEMENT_BYTES, source.path)?;
    let mut hashes = vec![Canonical::default(); total.min(most)];
    for first in (0..total).step_by(most) {
        interrupt::check()?;
        let count = most.min(total - first);
        let piece = read(source, hasher, &mut elements[..count * arity * ELEMENT_BYTES], first * arity)?;
        hasher.columns(piece, &mut hashes[..count])?;
        write(output, &hashes[..count])?;
        Progress::advance(&session.bars, count as u64);
    }
    Ok(total)
}

/// Writes the root of the tree over all elements; returns how many nodes it has above the leaves.
fn tree(session: &Session, hasher: &Hasher, source: &mut Source<'_>, output: &mut Output) -> Outcome<usize> {
    let total = source.elements;
    Progress::start(&session.bars, "read leaves", total as u64);
    let mut elements = memory(total * ELEMENT_BYTES, source.path)?;
    for (i, piece) in elements.chunks_mut(PIECE).enumerate() {
        interrupt::check()?;
        let count = piece.len() / ELEMENT_BYTES;
        read(source, hasher, piece, i * (PIECE / ELEMENT_BYTES))?;
        Progress::advance(&session.bars, count as u64);
    }
    Progress::start(&session.bars, "hash", 0);
    let leaves = Unaligned::new(&elements).ok_or_else(|| Failure::file(source.path, "no whole elements"))?;
    write(output, &[hasher.root(leaves)?])?;
    Ok((total - 1) / (hasher.params().arity() - 1))
}

fn write(output: &mut Output, hashes: &[Canonical]) -> Outcome {
    let mut bytes = Vec::with_capacity(hashes.len() * ELEMENT_BYTES);
    hashes.iter().flat_map(|hash| hash.0).for_each(|limb| bytes.extend(limb.to_le_bytes()));
    output.write_all(&bytes).map_err(|e| output.error(e).into())
}

/// Memory for what may be secret.
fn memory(bytes: usize, path: &Path) -> Outcome<Zeroizing<Vec<u8>>> {
    let mut all = Zeroizing::new(Vec::new());
    let free = Cpu::new(1).info().free_bytes.first().copied().unwrap_or(0);
    if bytes as u64 > free || all.try_reserve_exact(bytes).is_err() {
        return Err(Failure::file(
            path,
            format!("needs {bytes} bytes of memory, {free} are free; hash a part at a time"),
        ));
    }
    all.resize(bytes, 0);
    Ok(all)
}

/// Reads the elements from index `first` on into `to`, which they fill, and checks them.
fn read<'b>(
    source: &mut Source<'_>,
    hasher: &Hasher,
    to: &'b mut [u8],
    first: usize,
) -> Outcome<Unaligned<'b, Canonical>> {
    source.file().read_exact(to).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => source.changed(),
        _ => Failure::file(source.path, format!("cannot read: {e}")),
    })?;
    let elements = Unaligned::new(to).ok_or_else(|| Failure::file(source.path, "no whole elements"))?;
    match hasher.first_too_large(elements) {
        Some(index) => {
            let problem = format!("element {} is not below the modulus of the scalar field", first + index);
            Err(Failure::file(source.path, format!("{problem}; is --curve right?")))
        }
        None => Ok(elements),
    }
}
