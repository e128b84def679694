//! The service as its callers, its nodes and its disks see it. One program: each would hold the whole service, and take its time to link.

mod ahead;
mod compat;
mod database_tls;
mod drills;
mod grpc;
mod hands;
mod held;
mod http;
mod http2;
mod inputs;
mod many;
mod nodes;
mod objects;
mod overview;
mod small;
mod socket;
mod store;
mod support;
mod tls;
mod tokens;
mod traces;

/// A service, a worker or a calculator, where a test starts this program as one.
#[test]
fn child() {
    support::play();
}
