//! What the benches of one run share: the team, the data, the peers that were asked for.

use super::data::Pattern;
use std::path::Path;
use std::sync::Arc;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::Session;
use tandem_cuda::nccl::Nccl;
use tandem_cuda::Device;
use tandem_engine::DeviceChoice;
use tandem_fabric::topology::{DeviceKind, Link, LinkKind, Rate, Topology};
use tandem_fabric::{probe, HostLinks, Team};

/// A team and its data.
pub(crate) struct Context {
    pub(crate) team: Team,
    /// By PE; empty for pretend ones.
    pub(crate) devices: Vec<Device>,
    /// The PEs of the job, its root first; the others of the team only forward.
    pub(crate) job: Vec<usize>,
    pub(crate) links: Arc<HostLinks>,
    pub(crate) pattern: Arc<Pattern>,
    /// Of the team's PEs, as collectives want it.
    pub(crate) topology: Topology,
    pub(crate) nccl: Option<Arc<Nccl>>,
    /// The largest number of elements.
    pub(crate) most: usize,
}

/// An error of the fabric is one of the device: the benches make no bad calls.
pub(crate) fn failed(error: tandem_fabric::Error) -> Failure {
    Failure::device(error.to_string())
}

/// An error of the CUDA runtime, which is one of the device.
pub(crate) fn cuda_failed(error: tandem_cuda::Error) -> Failure {
    Failure::device(error.to_string())
}

impl Context {
    /// Opens the team that `--device` says, GPUs or pretend PEs, and NCCL where a library is named; no array is larger than `most_bytes`.
    pub(crate) fn open(
        session: &Session,
        most_bytes: u64,
        nccl: Option<&Path>,
        least_pes: usize,
        among: &[usize],
    ) -> Outcome<Self> {
        let (team, devices, among) = open_team(session, among)?;
        let size = team.size();
        let job = chosen(&among, size).map_err(Failure::input)?;
        if size < least_pes {
            let problem = format!(
                "--device {}: {size} PE, and this needs {least_pes}; sim:{least_pes} has as many",
                session.device
            );
            return Err(Failure::input(problem));
        }
        let nccl = match nccl {
            None => None,
            Some(_) if devices.is_empty() => {
                return Err(Failure::input("--nccl: NCCL needs GPUs, and the PEs are pretend ones"));
            }
            Some(path) => Some(Nccl::load(Some(path)).map_err(|why| Failure::input(format!("--nccl: {why}")))?),
        };
        let most = usize::try_from(most_bytes / 4).unwrap_or(usize::MAX);
        Self::of(team, devices, job, nccl, most).map_err(failed)
    }

    fn of(
        team: Team,
        devices: Vec<Device>,
        job: Vec<usize>,
        nccl: Option<Arc<Nccl>>,
        most: usize,
    ) -> tandem_fabric::Result<Self> {
        let size = team.size();
        let topology = topology(&devices, size)?;
        let gpus: Vec<usize> = (0..size).collect();
        let links = HostLinks::planned(&team, &topology, &gpus).unwrap_or_else(|_| HostLinks::new(&team));
        let (links, pattern) = (Arc::new(links), Arc::new(Pattern::new(most, size)));
        Ok(Self { pattern, team, devices, job, links, topology, nccl, most })
    }

    /// Which of the team does not reach which other's memory, and why, if there are such PEs: the first of them.
    pub(crate) fn apart(&self) -> Option<String> {
        self.team.all_reach().err().map(|why| why.to_string())
    }

    /// Names of the PEs, for titles and rows.
    pub(crate) fn names(&self) -> String {
        let name = |pe: usize| match self.devices.get(pe).map(|d| d.properties()) {
            Some(Ok(properties)) => format!("{} ({})", properties.name, self.team.name(pe)),
            _ => self.team.name(pe),
        };
        (0..self.team.size()).map(name).collect::<Vec<_>>().join(", ")
    }
}

/// The PEs of a job that was named by their places in a team of `size`; all where none is.
fn chosen(among: &[usize], size: usize) -> Result<Vec<usize>, String> {
    if among.is_empty() {
        return Ok((0..size).collect());
    }
    for (i, pe) in among.iter().enumerate() {
        if *pe >= size {
            return Err(format!("--among {pe}: there are PEs 0 to {}", size - 1));
        }
        if among[..i].contains(pe) {
            return Err(format!("--among {pe}: this PE is named twice"));
        }
    }
    if among.len() < 2 {
        return Err(format!("--among {}: a job needs two PEs at least", among[0]));
    }
    Ok(among.to_vec())
}

/// What was found of the team's GPUs, in its order; a box with a switch for pretend PEs.
fn topology(devices: &[Device], pes: usize) -> tandem_fabric::Result<Topology> {
    if devices.is_empty() {
        return pretend(pes);
    }
    probe::topology(devices)
}

fn pretend(pes: usize) -> tandem_fabric::Result<Topology> {
    let rate = |gbs| Rate::from_gbs(gbs).ok_or_else(|| tandem_fabric::Error::Job("a rate".into()));
    let (nvlink, pcie) = (rate(370.8)?, rate(48.0)?);
    let device = |name: String, kind| tandem_fabric::topology::Device { name, kind, attributes: Default::default() };
    let mut devices: Vec<_> = (0..pes).map(|pe| device(format!("GPU{pe}"), DeviceKind::Gpu)).collect();
    devices.push(device("CPU0".into(), DeviceKind::Cpu));
    devices.push(device("NVSwitch0".into(), DeviceKind::NvSwitch));
    let link = |a, b, kind, count, rate| Link { a, b, kind, count, forth: rate, back: rate };
    let links = (0..pes)
        .flat_map(|pe| [link(pe, pes, LinkKind::Pcie, 1, pcie), link(pe, pes + 1, LinkKind::NvLink, 18, nvlink)]);
    Ok(Topology::new("pretend PEs", devices, links.collect())?)
}

/// The devices of the PEs `among` and of those of the others that nobody uses, where the PEs `among` are now, and what is to be said of the
/// others. No PEs `among` are all.
fn with_idle<D: Copy>(
    all: &[D],
    among: &[usize],
    idle: impl Fn(&[D]) -> tandem_fabric::Result<Vec<probe::Idle>>,
) -> (Vec<D>, Vec<usize>, Vec<String>) {
    let others: Vec<usize> = (0..all.len()).filter(|pe| !among.contains(pe)).collect();
    // What names no PE is refused later.
    if among.is_empty() || others.is_empty() || among.iter().any(|&pe| pe >= all.len()) {
        return (all.to_vec(), among.to_vec(), Vec::new());
    }
    let found = idle(&others.iter().map(|&pe| all[pe]).collect::<Vec<_>>());
    let (mut kept, mut notes) = (among.to_vec(), Vec::new());
    match found {
        Ok(found) => {
            for (&pe, idle) in others.iter().zip(found) {
                match idle {
                    Ok(()) => kept.push(pe),
                    Err(why) => {
                        notes.push(format!("PE {pe} does not help: {why}; --device names those that do in any case"))
                    }
                }
            }
        }
        Err(why) => notes.push(format!("no other GPU helps: {why} with --device")),
    }
    kept.sort_unstable();
    let place = |pe: &usize| kept.iter().filter(|other| *other < pe).count();
    (kept.iter().map(|&pe| all[pe]).collect(), among.iter().map(place).collect(), notes)
}

/// The team that `--device` says, its GPUs, and where the PEs `among` are in it: a GPU that is not named helps only where nobody uses it.
fn open_team(session: &Session, among: &[usize]) -> Outcome<(Team, Vec<Device>, Vec<usize>)> {
    let sim = |pes: usize| {
        let team = Team::sim(pes, tandem_fabric::Options::default()).map_err(failed)?;
        Ok((team, Vec::new(), among.to_vec()))
    };
    let is_named = matches!(&session.device, DeviceChoice::Cuda(list) if !list.is_empty());
    let refused = |why: String| Failure::device(format!("--device {}: {why}; tandem doctor says more", session.device));
    let usable = || -> Result<Vec<Device>, String> {
        let found = tandem_cuda::probe()?;
        let devices: Vec<Device> = found.iter().filter_map(|f| f.usable.clone().ok()).collect();
        if devices.is_empty() {
            return Err(found.into_iter().find_map(|f| f.usable.err()).unwrap_or_else(|| "no GPU".into()));
        }
        Ok(devices)
    };
    let devices = match &session.device {
        DeviceChoice::Sim(pes) => return sim(*pes),
        DeviceChoice::Cpu => {
            let problem = "--device cpu: the fabric joins several PEs; give cuda, or sim:N for N pretend ones";
            return Err(Failure::input(problem));
        }
        DeviceChoice::Auto => match usable() {
            Ok(devices) => devices,
            Err(why) => {
                session.note(&format!("device: sim:2: {why}"));
                return sim(2);
            }
        },
        DeviceChoice::Cuda(list) => {
            let all = usable().map_err(refused)?;
            if list.is_empty() {
                all
            } else {
                let named = |n: &u32| {
                    all.iter()
                        .copied()
                        .find(|d| d.index() == *n)
                        .ok_or_else(|| refused(format!("cuda:{n} is not usable")))
                };
                list.iter().map(named).collect::<Outcome<Vec<_>>>()?
            }
        }
    };
    let (devices, among, notes) = match is_named {
        true => (devices, among.to_vec(), Vec::new()),
        false => with_idle(&devices, among, probe::idle_devices),
    };
    notes.iter().for_each(|note| session.note(note));
    let team = Team::cuda(&devices, tandem_fabric::Options::default()).map_err(failed)?;
    Ok((team, devices, among))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of pretend PEs.
    pub(crate) fn pretend_pes(pes: usize, most: usize) -> Context {
        let team = Team::sim(pes, Default::default()).unwrap();
        Context::of(team, Vec::new(), (0..pes).collect(), None, most).unwrap()
    }

    /// Of pretend PEs, the first two of which do not reach each other.
    pub(crate) fn refused(pes: usize, most: usize) -> Context {
        let options = tandem_fabric::Options { apart: vec![(0, 1)], ..Default::default() };
        Context::of(Team::sim(pes, options).unwrap(), Vec::new(), (0..pes).collect(), None, most).unwrap()
    }

    #[test]
    fn a_refused_pair_is_named_with_the_reason() {
        let why = refused(3, 64).apart().unwrap();
        assert_eq!(why, "PE 0 does not reach the memory of PE 1: the options say so");
        let team = Team::sim(3, Default::default()).unwrap();
        assert_eq!(Context::of(team, Vec::new(), vec![0, 1, 2], None, 64).unwrap().apart(), None);
    }

    #[test]
    fn only_idle_gpus_help_unless_they_are_named() {
        let all = ["a", "b", "c", "d", "e"];
        let busy = |which: &'static str| {
            move |asked: &[&str]| {
                let one = |gpu: &&str| if *gpu == which { Err("process 7 uses it".to_string()) } else { Ok(()) };
                Ok(asked.iter().map(one).collect::<Vec<probe::Idle>>())
            }
        };
        // The job is kept in its order, whoever uses its GPUs; places move where one before them goes.
        let (devices, among, notes) = with_idle(&all, &[3, 0], busy("b"));
        assert_eq!((devices, among), (vec!["a", "c", "d", "e"], vec![2, 0]));
        assert!(notes.len() == 1 && notes[0].starts_with("PE 1 does not help: process 7 uses it"), "{notes:?}");
        assert_eq!(with_idle(&all, &[3, 0], busy("a")), (all.to_vec(), vec![3, 0], vec![]));
        let unknown = |_: &[&str]| Err(tandem_fabric::Error::Job("no NVML".into()));
        let (devices, among, notes) = with_idle(&all, &[4, 1], unknown);
        assert_eq!((devices, among, notes.len()), (vec!["b", "e"], vec![1, 0], 1));
        // Where all take part, or a PE is named that there is not, nobody is asked.
        for among in [&[][..], &[0, 1, 2, 3, 4], &[7, 0]] {
            assert_eq!(with_idle(&all, among, unknown), (all.to_vec(), among.to_vec(), vec![]));
        }
    }

    #[test]
    fn a_job_is_two_pes_of_the_team_or_more() {
        assert_eq!(chosen(&[], 3), Ok(vec![0, 1, 2]));
        assert_eq!(chosen(&[2, 0], 3), Ok(vec![2, 0]));
        assert_eq!(chosen(&[0, 3], 3), Err("--among 3: there are PEs 0 to 2".into()));
        assert_eq!(chosen(&[1, 0, 1], 3), Err("--among 1: this PE is named twice".into()));
        assert_eq!(chosen(&[1], 3), Err("--among 1: a job needs two PEs at least".into()));
    }
}
