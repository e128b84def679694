//! A topology is refused, or it can be written, drawn and planned on. Our JSON of it is read as the same, NCCL's XML as one of as many GPUs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_fabric::plan::{check, plan, plan_within, Budget, Operation, Request};
use tandem_fabric::topology::Topology;

/// Planning takes longer than all else; so many GPUs have every kind of plan.
const MOST_PLANNED: usize = 4;

fuzz_target!(|bytes: &[u8]| match Topology::read(bytes) {
    Ok(topology) => all(&topology),
    Err(error) => assert!(!error.to_string().contains(char::is_control)),
});

fn all(t: &Topology) {
    let json = t.to_json();
    assert_eq!(Topology::read(json.as_bytes()).expect("written by itself").to_json(), json);
    // Not every topology is a machine that NCCL can name.
    if let Ok(xml) = t.to_nccl_xml() {
        assert_eq!(Topology::read(xml.as_bytes()).expect("written by itself").gpus().len(), t.gpus().len());
    }
    // Names may say so; numbers are attributes.
    let svg = t.to_svg();
    assert!(!["NaN", "inf", "-inf"].iter().any(|number| svg.contains(&format!("=\"{number}\""))));
    assert!(!t.to_matrix().is_empty());

    let gpus: Vec<usize> = (0..t.gpus().len()).collect();
    if gpus.len() > MOST_PLANNED {
        return;
    }
    for (operation, _) in Operation::ALL {
        let job = if operation == Operation::Send { &gpus[..gpus.len().min(2)] } else { &gpus[..] };
        let helpers = &gpus[job.len()..];
        match plan(t, &Request::new(operation, job).with_helpers(helpers)) {
            Ok(plan) => {
                check(t, &plan).expect("its own plan");
                let _ = (plan.to_text(t), plan.to_json(t), plan.to_svg(t), plan.to_tree_xml(t), plan.to_nccl_graph(t));
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
        // Cut short, early and later.
        for steps in [0, 2000] {
            if let Ok(plan) = plan_within(t, &Request::new(operation, job).with_helpers(helpers), &Budget::of_steps(steps)) {
                check(t, &plan).expect("its own plan");
            }
        }
    }
}
