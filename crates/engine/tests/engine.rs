//! The tests of the engine that need no GPU, in one program: each program with a backend of its own compiles every prover once more.

#[path = "engine/callers.rs"]
mod callers;
#[path = "engine/faults.rs"]
mod faults;
#[path = "engine/fflonk.rs"]
mod fflonk;
#[path = "engine/keys.rs"]
mod keys;
#[path = "engine/params.rs"]
mod params;
#[path = "engine/plonk.rs"]
mod plonk;
#[path = "engine/requests.rs"]
mod requests;
#[path = "engine/store.rs"]
mod store;
mod support;
#[path = "engine/values.rs"]
mod values;
