//! Which device to use, as a user writes it.

use crate::{Error, Result};
use std::str::FromStr;

/// The most lanes that `sim:N` may ask for.
pub const MAX_SIM_LANES: usize = 64;

/// The most GPUs that may be listed: as many PEs as a team of the fabric has.
const MAX_CUDA_LANES: usize = 32;

/// A user's choice of device: `auto`, `cpu`, `cuda`, `cuda:0,1` or `sim:N`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// All usable GPUs, or the CPU where there is none.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// GPUs: all usable ones where the list is empty, else those with these numbers, in this order. A number that comes several times is
    /// as many lanes on one GPU, for tests of what is written for several.
    Cuda(Vec<u32>),
    /// This many pretend GPUs in host memory.
    Sim(usize),
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let fail = |why: &str| {
            Err(Error::input(format!("device '{text}': {why}; expected auto, cpu, cuda, cuda:0,1 or sim:N")))
        };
        match text.split_once(':') {
            None => match text {
                "auto" => Ok(DeviceChoice::Auto),
                "cpu" => Ok(DeviceChoice::Cpu),
                "cuda" => Ok(DeviceChoice::Cuda(Vec::new())),
                "sim" => fail("the number of lanes is missing"),
                _ => fail("no such kind"),
            },
            Some(("cuda", list)) => {
                let mut ids: Vec<u32> = Vec::new();
                for part in list.split(',') {
                    match part.parse() {
                        Ok(_) if ids.len() == MAX_CUDA_LANES => {
                            return fail(&format!("more than {MAX_CUDA_LANES} GPUs are listed"))
                        }
                        Ok(id) => ids.push(id),
                        Err(_) => return fail(&format!("'{part}' is not the number of a GPU")),
                    }
                }
                Ok(DeviceChoice::Cuda(ids))
            }
            Some(("sim", lanes)) => match lanes.parse() {
                Ok(n) if (1..=MAX_SIM_LANES).contains(&n) => Ok(DeviceChoice::Sim(n)),
                _ => fail(&format!("the number of lanes must be 1 to {MAX_SIM_LANES}")),
            },
            Some((kind @ ("auto" | "cpu"), _)) => fail(&format!("'{kind}' takes no numbers")),
            Some(_) => fail("no such kind"),
        }
    }
}

impl std::fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(ids) if ids.is_empty() => f.write_str("cuda"),
            DeviceChoice::Cuda(ids) => {
                write!(f, "cuda:{}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
            }
            DeviceChoice::Sim(n) => write!(f, "sim:{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_and_written() {
        for (text, choice) in [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda(vec![])),
            ("cuda:0", DeviceChoice::Cuda(vec![0])),
            ("cuda:2,0", DeviceChoice::Cuda(vec![2, 0])),
            ("cuda:1,1", DeviceChoice::Cuda(vec![1, 1])),
            ("sim:1", DeviceChoice::Sim(1)),
            ("sim:64", DeviceChoice::Sim(64)),
        ] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap(), choice);
            assert_eq!(choice.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "no such kind"),
            ("gpu", "no such kind"),
            ("gpu:1", "no such kind"),
            ("cpu:1", "takes no numbers"),
            ("cuda:", "'' is not the number"),
            ("cuda:0,", "'' is not the number"),
            ("cuda:-1", "'-1' is not the number"),
            ("sim", "number of lanes is missing"),
            ("sim:0", "must be 1 to 64"),
            ("sim:65", "must be 1 to 64"),
            ("sim:x", "must be 1 to 64"),
        ] {
            let error = text.parse::<DeviceChoice>().unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
            assert_eq!(error.exit_status(), 2);
        }
        let list = |gpus: usize| format!("cuda:{}", vec!["0"; gpus].join(",")).parse::<DeviceChoice>();
        assert!(list(32).is_ok());
        assert!(list(33).unwrap_err().to_string().contains("more than 32 GPUs are listed"));
    }
}
