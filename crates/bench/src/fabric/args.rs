//! The command line of the fabric's benches.

use crate::plot::PlotFile;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tandem_console::sizes;
use tandem_fabric::exec::Tuning;

/// What to measure of the fabric.
#[derive(Subcommand)]
pub(crate) enum FabricBench {
    /// Copies from one GPU to another, beside cudaMemcpyPeer and NCCL
    #[command(after_help = "Example:\n  tandem bench p2p -b 4K -e 1G -f 16 --plot p2p.svg")]
    P2p(Options),
    /// Puts from inside a kernel: by a thread, a warp, a block, a grid
    #[command(after_help = "Example:\n  tandem bench put -b 4K -e 16M -f 16")]
    Put(Sweep),
    /// Gets from inside a kernel
    #[command(after_help = "Example:\n  tandem bench get -b 4K -e 16M -f 16")]
    Get(Sweep),
    /// Round trips of 8 bytes between two kernels that wait for each other
    #[command(after_help = "Example:\n  tandem bench pingpong")]
    Pingpong(Calls),
    /// Collectives of 8 bytes inside kernels: by a thread, a warp, a block on each PE
    #[command(after_help = "Example:\n  tandem bench inside --device cuda:0,0,0,0,0,0,0,0")]
    Inside(Calls),
    /// From the first GPU to all
    #[command(after_help = "Examples:\n  tandem bench broadcast -b 4K -e 1G -f 4 --nccl\n  \
        tandem bench broadcast --device sim:4 --among 0,1 -e 1M")]
    Broadcast(Shared),
    /// The sum of all to all
    #[command(after_help = "Example:\n  tandem bench allreduce -b 4K -e 1G -f 4 --nccl --json rows.jsonl")]
    Allreduce(Shared),
    /// The parts of all to all
    #[command(after_help = "Example:\n  tandem bench allgather --device sim:4 -e 1M")]
    Allgather(Shared),
    /// The sum of all, a part to each
    #[command(after_help = "Example:\n  tandem bench reducescatter -b 4K -e 1G -f 4")]
    Reducescatter(Shared),
    /// A part of each to each
    #[command(after_help = "Example:\n  tandem bench alltoall -b 4K -e 1G -f 4")]
    Alltoall(Shared),
    /// Words of 64 bits to a GPU, from host memory and from another GPU: 2^30 of them unless said
    #[command(after_help = "Examples:\n  tandem bench words\n  tandem bench words --log-n 20 --device sim:2")]
    Words(Words),
    /// From host memory to the first GPU, over as many PCIe links as pay
    #[command(after_help = "Example:\n  tandem bench upload -b 16M -e 1G -f 4")]
    Upload(Sweep),
    /// From the first GPU to host memory
    #[command(after_help = "Example:\n  tandem bench download -b 16M -e 1G -f 4")]
    Download(Sweep),
}

/// Choices of the executor, and how they were written.
#[derive(Clone)]
pub(crate) struct Choices {
    pub(crate) text: String,
    pub(crate) tuning: Tuning,
}

impl Choices {
    fn parse(text: &str) -> Result<Self, String> {
        let tuning = text.parse().map_err(|error: tandem_fabric::Error| error.to_string())?;
        Ok(Self { text: text.into(), tuning })
    }
}

/// What every bench of the fabric can be told, after nccl-tests.
#[derive(Args, Clone)]
pub(crate) struct Calls {
    /// Calls that are timed for a size; fewer where they take long
    #[arg(long, short = 'n', default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) iters: u32,
    /// Calls before that
    #[arg(long, short = 'w', default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) warmup: u32,
    /// Append one JSON row for each line of the table to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

/// Options of a bench that goes over several sizes.
#[derive(Args)]
pub(crate) struct Sweep {
    /// The least size
    #[arg(long = "min-bytes", short = 'b', value_name = "SIZE", default_value = "4K", value_parser = sizes::parse)]
    pub(crate) least: u64,
    /// The largest size
    #[arg(long = "max-bytes", short = 'e', value_name = "SIZE", default_value = "16M", value_parser = sizes::parse)]
    pub(crate) most: u64,
    /// Each size is so many times the one before
    #[arg(long, short = 'f', default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1 << 30))]
    pub(crate) factor: u64,
    #[command(flatten)]
    pub(crate) calls: Calls,
}

/// A number of words.
#[derive(Args)]
pub(crate) struct Words {
    /// Binary logarithm of the number of words
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(7..=31))]
    pub(crate) log_n: u32,
    #[command(flatten)]
    pub(crate) calls: Calls,
}

/// Options of a bench of collectives: plans carry them out, and NCCL has them too.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) sweep: Sweep,
    /// Measure NCCL too, from this library or where the system finds libnccl.so.2
    #[arg(long, value_name = "LIBRARY", num_args = 0..=1, default_missing_value = "libnccl.so.2")]
    pub(crate) nccl: Option<PathBuf>,
    /// Measure ours with other choices of the executor too, such as resident=0,workers=64; may be given several times
    #[arg(long, value_name = "NAME=VALUE,...", value_parser = Choices::parse)]
    pub(crate) tuning: Vec<Choices>,
}

/// Options of a bench of what several PEs do together.
#[derive(Args)]
pub(crate) struct Shared {
    #[command(flatten)]
    pub(crate) options: Options,
    /// The PEs of the job, by their places in --device, the root first; the others only forward. All of them unless set
    #[arg(long, value_name = "PE,...", value_delimiter = ',', num_args = 1)]
    pub(crate) among: Vec<usize>,
}

impl FabricBench {
    /// Its options, as far as it has them.
    pub(crate) fn options(&self) -> (&Calls, Option<&Options>) {
        match self {
            Self::Pingpong(calls) | Self::Inside(calls) => (calls, None),
            Self::Words(words) => (&words.calls, None),
            Self::Put(sweep) | Self::Get(sweep) | Self::Upload(sweep) | Self::Download(sweep) => (&sweep.calls, None),
            Self::P2p(options) => (&options.sweep.calls, Some(options)),
            Self::Broadcast(shared)
            | Self::Allreduce(shared)
            | Self::Allgather(shared)
            | Self::Reducescatter(shared)
            | Self::Alltoall(shared) => (&shared.options.sweep.calls, Some(&shared.options)),
        }
    }
}
