//! Elements picked by a map of indices.

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use tandem_cuda::DeviceBuffer;
use tandem_ops::gather::{check_gather, check_map};
use tandem_ops::{Buffer, Gather, Lane, Result, Wire};

const OP: &str = "gather";

/// A map of indices in a GPU's memory. It belongs to a circuit: nothing secret.
pub struct CudaMap {
    lane: Lane,
    indices: DeviceBuffer<u32>,
    bound: usize,
}

impl Gather for Cuda {
    type Map = CudaMap;

    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<CudaMap> {
        check_map(map, bound)?;
        let ctx = self.lane(OP, lane)?;
        let mut indices = ctx.alloc_public(OP, map.len())?;
        ctx.upload(OP, &mut indices, 0, map.into())?;
        Ok(CudaMap { lane, indices, bound })
    }

    fn gather<T: Wire>(&self, map: &CudaMap, from: &CudaBuf<T>, to: &mut CudaBuf<T>) -> Result<()> {
        const { assert!(size_of::<T>().is_multiple_of(4), "the kernel moves words of 4 bytes") };
        let (n, length) = (map.indices.len(), to.len());
        check_gather((map.lane, n), map.bound, (from.lane(), from.len()), (to.lane(), length))?;
        let ctx = self.lane(OP, map.lane)?;
        if n < length {
            to.memory().zero(n..length).map_err(|e| ctx.error(OP, e))?;
        }
        let args = ffi::tandem_gather_args {
            from: from.ptr().cast().raw(),
            to: to.ptr().cast().raw(),
            map: map.indices.ptr().raw(),
            n: n as u64,
            element_bytes: size_of::<T>() as u32,
        };
        // SAFETY: the indices were checked when the map was loaded, `from` has as many elements as they may reach, `to` has room for
        // one each; all of it lies on the lane whose stream this is.
        ctx.launch(OP, |stream| unsafe { ffi::tandem_gather(&args, stream) })
    }
}
