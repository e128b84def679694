//! The tests of keys, proofs and verdicts, in one program: each would compile arkworks' prover, and what else is generic here, once more.

#[path = "groth16/blueprint.rs"]
mod blueprint;
#[path = "groth16/copies.rs"]
mod copies;
#[path = "groth16/keys.rs"]
mod keys;
#[path = "groth16/memory.rs"]
mod memory;
#[path = "groth16/partition.rs"]
mod partition;
#[path = "groth16/powers.rs"]
mod powers;
#[path = "groth16/proofs.rs"]
mod proofs;
#[path = "groth16/requests.rs"]
mod requests;
mod support;
#[path = "groth16/verdicts.rs"]
mod verdicts;
