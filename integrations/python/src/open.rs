//! From the name of devices to a team, and to the topology that its collectives are planned on.

use crate::errors::{self, plain};
use pyo3::PyResult;
use std::sync::Arc;
use tandem_cuda::{Device, Stream};
use tandem_fabric::topology::{Builder, DeviceKind, LinkKind, Rate, Topology};
use tandem_fabric::{Error, Meeting, OneSided, Options, Queue, Team};

fn wrong(devices: &str, problem: &str) -> pyo3::PyErr {
    plain(
        "InvalidError",
        format!("devices {devices:?}: {problem}; expected \"sim:4\", \"cuda\", \"cuda:0\" or \"cuda:0,1\""),
    )
}

/// The team that a name such as `sim:4` or `cuda:0,1` stands for; on the caller's streams, where these are given. With a meeting these are
/// the PEs of this process, and the team is that of all that meet.
pub(crate) fn team(
    devices: &str,
    options: Options,
    streams: Option<&[u64]>,
    meeting: Option<Meeting>,
) -> PyResult<Team> {
    if let Some(pes) = devices.strip_prefix("sim:") {
        let pes = pes.parse().map_err(|_| wrong(devices, "no number of pretend PEs"))?;
        if streams.is_some() {
            return Err(wrong(devices, "pretend PEs have no streams"));
        }
        let team = match meeting {
            Some(meeting) => Team::sim_in(meeting, pes, options),
            None => Team::sim(pes, options),
        };
        return team.map_err(errors::bare_error);
    }
    if meeting.is_some() {
        return Err(wrong(devices, "GPUs are of one process; several processes share pretend PEs"));
    }
    let wanted: Option<Vec<u32>> = match devices.strip_prefix("cuda") {
        Some("") => None,
        Some(list) if list.starts_with(':') => {
            let numbers = list[1..].split(',').map(str::parse).collect::<Result<_, _>>();
            Some(numbers.map_err(|_| wrong(devices, "no list of GPUs"))?)
        }
        _ => return Err(wrong(devices, "no such kind")),
    };
    let found =
        tandem_cuda::probe().map_err(|reason| plain("DeviceError", format!("devices {devices:?}: {reason}")))?;
    let wanted = wanted.unwrap_or_else(|| found.iter().map(|gpu| gpu.index).collect());
    let device = |index: u32| -> PyResult<Device> {
        let gpu = found.iter().find(|gpu| gpu.index == index);
        let gpu = gpu.ok_or_else(|| wrong(devices, &format!("there is no GPU {index} among {}", found.len())))?;
        gpu.usable.clone().map_err(|reason| plain("DeviceError", reason))
    };
    let gpus = wanted.into_iter().map(device).collect::<PyResult<Vec<_>>>()?;
    let Some(streams) = streams else { return Team::cuda(&gpus, options).map_err(errors::bare_error) };
    if streams.len() != gpus.len() {
        return Err(wrong(devices, &format!("{} streams for {} GPUs", streams.len(), gpus.len())));
    }
    // SAFETY: what stands on the world keeps the caller's objects (`Life`); of a handle alone its documentation asks for that.
    let borrowed = |(&gpu, &raw): (&Device, &u64)| Arc::new(unsafe { Stream::borrowed(gpu, raw as *mut _) });
    let streams: Vec<Arc<Stream>> = gpus.iter().zip(streams).map(borrowed).collect();
    Team::cuda_on(&streams, options).map_err(errors::bare_error)
}

/// PE `pe`'s queue, or where another process has it, one of this process; `None` where this has none.
pub(crate) fn near(team: &Team, pe: usize) -> Option<&Queue> {
    let queues = team.queues();
    queues.iter().find(|queue| queue.me() == pe).or(queues.first())
}

/// What joins the PEs: of GPUs what the machine says, of pretend PEs one switch.
pub(crate) fn topology(team: &Team) -> Result<Topology, Error> {
    let gpus: Vec<Device> = team.queues().iter().filter_map(Queue::stream).map(|stream| stream.device()).collect();
    if gpus.len() == team.size() {
        return tandem_fabric::probe::topology(&gpus);
    }
    let mut builder = Builder::default();
    let switch = builder.device("NVSW", DeviceKind::NvSwitch, &[]);
    let rate = Rate::from_gbs(100.0).ok_or_else(|| Error::Job("no such rate".into()))?;
    for pe in 0..team.size() {
        let gpu = builder.device(format!("GPU{pe}"), DeviceKind::Gpu, &[]);
        builder.link(gpu, switch, LinkKind::NvLink, 1, rate);
    }
    Ok(builder.build("pretend PEs")?)
}
