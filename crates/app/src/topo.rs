//! `tandem topo`: the devices and links of a machine.

use crate::cli::{self, Source};
use crate::failure::{Failure, Outcome};
use crate::{files, report};
use tandem_fabric::topology::{Topology, MAX_FILE};

pub(crate) fn run(args: &cli::Topo) -> Outcome {
    let topology = open(&args.source)?;
    report::result(&match args.format {
        cli::TopoFormat { json: true, .. } => topology.to_json(),
        cli::TopoFormat { nccl_xml: true, .. } => topology.to_nccl_xml().map_err(|e| Failure::input(e.to_string()))?,
        cli::TopoFormat { svg: true, .. } => topology.to_svg(),
        _ => topology.to_matrix(),
    })
}

/// The topology that the user named.
pub(crate) fn open(source: &Source) -> Outcome<Topology> {
    match (&source.preset, &source.from) {
        (Some(name), _) => Topology::preset(name).map_err(|e| Failure::input(e.to_string())),
        (None, Some(path)) => {
            let bytes = files::read(path, MAX_FILE as u64)?;
            Topology::read(&bytes).map_err(|e| Failure::file(path, e))
        }
        (None, None) => {
            let problem = "probing the links of this machine is not built yet; name a topology with --preset NAME or --from FILE \
                           (our JSON, NCCL topology XML, or the text of nvidia-smi topo -m)";
            Err(Failure::input(problem))
        }
    }
}
