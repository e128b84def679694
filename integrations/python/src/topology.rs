//! Topologies and plans.

use crate::errors;
use pyo3::prelude::*;
use std::time::Duration;
use tandem_fabric::plan::{check, plan_within, Budget, Gain, Operation, Request};
use tandem_fabric::topology::{self, DeviceKind, PRESETS};

/// What joins the GPUs of a machine.
#[pyclass(frozen, module = "tandem", name = "Topology")]
pub(crate) struct Topology(pub(crate) topology::Topology);

#[pymethods]
impl Topology {
    /// This machine, as the CUDA runtime, NVML and sysfs know it.
    #[staticmethod]
    fn here(py: Python<'_>) -> PyResult<Topology> {
        let facts = py.detach(tandem_fabric::probe::look);
        if let Some(reason) = &facts.no_gpu {
            return Err(errors::plain("DeviceError", format!("the topology of this machine: {reason}")));
        }
        facts.topology(None).map(Topology).map_err(errors::bare)
    }

    /// A machine that is known by name; see `presets`.
    #[staticmethod]
    fn preset(name: &str) -> PyResult<Topology> {
        topology::Topology::preset(name).map(Topology).map_err(errors::bare)
    }

    /// The names of known machines, and what each is.
    #[staticmethod]
    fn presets() -> Vec<(&'static str, &'static str)> {
        PRESETS.to_vec()
    }

    /// From text: Tandem's JSON, NCCL's XML, or the matrix of `nvidia-smi topo -m`.
    #[staticmethod]
    fn read(text: &str) -> PyResult<Topology> {
        topology::Topology::read(text.as_bytes()).map(Topology).map_err(errors::bare)
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The names of its GPUs.
    #[getter]
    fn gpus(&self) -> Vec<&str> {
        let gpus = self.0.devices().iter().filter(|device| device.kind == DeviceKind::Gpu);
        gpus.map(|device| device.name.as_str()).collect()
    }

    /// Its links: the names of both ends, the kind, and GB/s forth and back.
    #[getter]
    fn links(&self) -> Vec<(&str, &str, &'static str, f64, f64)> {
        let name = |device: usize| self.0.devices()[device].name.as_str();
        let links = self.0.links().iter();
        links.map(|link| (name(link.a), name(link.b), link.kind.name(), link.forth.gbs(), link.back.gbs())).collect()
    }

    /// Text that `read` takes, in which rates can be edited.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The best way to move data between `gpus`, with `helpers` that only forward, and the bound that proves it.
    #[pyo3(signature = (operation, gpus, helpers = Vec::new(), *, root = None, pcie = false, max_seconds = 10.0))]
    #[allow(clippy::too_many_arguments)] // each is one thing, and Python names them
    fn plan(
        &self,
        py: Python<'_>,
        operation: &str,
        gpus: Vec<usize>,
        helpers: Vec<usize>,
        root: Option<usize>,
        pcie: bool,
        max_seconds: f64,
    ) -> PyResult<Plan> {
        let names: Vec<&str> = Operation::ALL.iter().map(|(_, name)| *name).collect();
        let operation = Operation::from_name(operation)
            .ok_or_else(|| errors::bare(format!("operation {operation:?}: expected one of {}", names.join(", "))))?;
        let time = Duration::try_from_secs_f64(max_seconds)
            .map_err(|_| errors::bare(format!("max_seconds {max_seconds}: expected a number from 0 on")))?;
        let request = Request { operation, gpus, helpers, root, pcie };
        let (topology, budget) = (&self.0, Budget::of_time(time));
        let plan = py.detach(|| {
            let plan = plan_within(topology, &request, &budget)?;
            check(topology, &plan).map(|()| plan)
        });
        Ok(Plan { plan: plan.map_err(errors::bare)?, topology: self.0.clone() })
    }

    fn _repr_svg_(&self) -> String {
        self.0.to_svg()
    }

    /// The matrix of `nvidia-smi topo -m`, and GB/s.
    fn __str__(&self) -> String {
        self.0.to_matrix()
    }

    fn __repr__(&self) -> String {
        format!("<tandem.Topology {}: {} GPUs>", self.0.name(), self.gpus().len())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// A plan of transfers, checked.
#[pyclass(frozen, module = "tandem", name = "Plan")]
pub(crate) struct Plan {
    plan: tandem_fabric::plan::Plan,
    topology: topology::Topology,
}

#[pymethods]
impl Plan {
    /// GB/s, as nccl-tests count algbw.
    #[getter]
    fn rate(&self) -> f64 {
        self.plan.gbs()
    }

    /// GB/s that no plan exceeds.
    #[getter]
    fn bound(&self) -> f64 {
        self.plan.bound.to_f64() / 1000.0
    }

    /// Whether the rate reaches the bound.
    #[getter]
    fn is_best(&self) -> bool {
        self.plan.is_best()
    }

    /// GB/s without helpers; None where there are none, or they bring nothing.
    #[getter]
    fn without_helpers(&self) -> Option<f64> {
        match &self.plan.gain {
            Gain::Over(rate) => Some(rate.to_f64() / 1000.0),
            Gain::NotAsked | Gain::None(_) => None,
        }
    }

    /// Trees, loads and the bound's witness, exact, as `tandem plan --json` prints them.
    fn to_json(&self) -> String {
        self.plan.to_json(&self.topology).to_string()
    }

    fn _repr_svg_(&self) -> String {
        self.plan.to_svg(&self.topology)
    }

    fn __str__(&self) -> String {
        self.plan.to_text(&self.topology)
    }

    fn __repr__(&self) -> String {
        let name = self.plan.request.operation.name();
        format!("<tandem.Plan of {name} on {}: {} GB/s>", self.topology.name(), self.plan.gbs())
    }
}
