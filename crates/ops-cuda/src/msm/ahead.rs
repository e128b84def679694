//! Kernels that are loaded before the first sum.
//!
//! The runtime loads a kernel when something asks for it first, and those of a group's sums are large. So they are asked for as soon as a plan
//! says that there will be sums, on a thread beside whatever comes next: points are still on their way then.

use super::plan::Shape;
use super::{is_g2, lock, Launchers};
use crate::ffi;
use crate::lane::LaneCtx;
use crate::tuning::msm::GroupId;
use std::sync::Mutex;
use std::thread::{Builder, JoinHandle};
use tandem_ops::{Curve, Group, Lane, MsmSet};

/// Threads that load kernels, and what they load.
#[derive(Default)]
pub(crate) struct Ahead(Mutex<Vec<(Lane, GroupId, JoinHandle<()>)>>);

impl Ahead {
    /// Has the kernels of sums over these sets loaded, once for each lane and group.
    pub(super) fn expect<C: Curve>(&self, ctx: &LaneCtx, shape: &Shape, sets: &[MsmSet]) {
        for set in sets.iter().filter(|set| set.points > 0) {
            if set.g2 {
                self.load::<C::G2>(ctx, shape, set);
            } else {
                self.load::<C::G1>(ctx, shape, set);
            }
        }
    }

    fn load<G: Group>(&self, ctx: &LaneCtx, shape: &Shape, set: &MsmSet) {
        let (lane, group) = (ctx.lane, GroupId { curve: G::Curve::ID, g2: is_g2::<G>() });
        let mut begun = lock(&self.0);
        if begun.iter().any(|(of, which, _)| (*of, *which) == (lane, group)) {
            return;
        }
        let (stream, shape, set) = (ctx.stream().clone(), shape.raw(), *set);
        let ask = move || {
            let args = ffi::tandem_msm_sum_args {
                shape,
                first: set.first as u64,
                points: set.points as u64,
                table: std::ptr::null_mut(),
                entries: std::ptr::null_mut(),
                offsets: std::ptr::null_mut(),
                sums: std::ptr::null_mut(),
                rounds: 0,
                chunk: 0,
            };
            let mut bytes = 0;
            // To ask how much memory a sum takes asks for all its kernels. What fails here fails again, and is told, with the first sum.
            // SAFETY: `bytes` is valid to write to; the query reads nothing else than the arguments' numbers.
            _ = stream.call("load kernels", |_| unsafe { (Launchers::of::<G>().sum_scratch)(&args, &mut bytes) });
        };
        // Where there are no threads left, the first sum does it.
        if let Ok(thread) = Builder::new().name("load kernels".into()).spawn(ask) {
            begun.push((lane, group, thread));
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        lock(&self.0).drain(..).for_each(|(.., thread)| _ = thread.join());
    }
}
