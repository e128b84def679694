//! A sparse matrix times a vector.

mod plan;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use plan::row_order;
use tandem_cuda::DeviceBuffer;
use tandem_ops::{Buffer, Canonical, Curve, CurveId, Error, Lane, Mont, Mont2, Result, SpMv, SparseRows, Wire};

const OP: &str = "spmv";

/// A sparse matrix in a GPU's memory. It belongs to a circuit: nothing secret.
pub struct CudaMatrix {
    lane: Lane,
    columns: usize,
    starts: DeviceBuffer<u32>,
    column: DeviceBuffer<u32>,
    value: DeviceBuffer<u32>,
    values: DeviceBuffer<Mont2>,
    order: DeviceBuffer<u32>,
    thread_rows: usize,
    warp_rows: usize,
}

fn load<T: Wire>(ctx: &LaneCtx, from: &[T]) -> Result<DeviceBuffer<T>> {
    let mut to = ctx.alloc_public(OP, from.len())?;
    ctx.upload(OP, &mut to, 0, from.into())?;
    Ok(to)
}

impl<C: Curve> SpMv<C> for Cuda {
    type Matrix = CudaMatrix;

    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<CudaMatrix> {
        matrix.check()?;
        let ctx = self.lane(OP, lane)?;
        let order = row_order(&matrix.starts)?;
        Ok(CudaMatrix {
            lane,
            columns: matrix.columns,
            starts: load(ctx, &matrix.starts)?,
            column: load(ctx, &matrix.column)?,
            value: load(ctx, &matrix.value)?,
            values: load(ctx, &matrix.values)?,
            order: load(ctx, &order.rows)?,
            thread_rows: order.thread_rows,
            warp_rows: order.warp_rows,
        })
    }

    fn spmv(&self, matrix: &CudaMatrix, x: &CudaBuf<Canonical>, out: &mut CudaBuf<Mont>) -> Result<()> {
        let rows = matrix.order.len();
        if x.len() != matrix.columns || out.len() < rows {
            let reason = format!(
                "a matrix of {rows} rows and {} columns, a vector of {} elements, room for {}",
                matrix.columns,
                x.len(),
                out.len()
            );
            return Err(Error::invalid(OP, reason));
        }
        if x.lane() != matrix.lane || out.lane() != matrix.lane {
            let (x, out) = (x.lane().0, out.lane().0);
            let reason = format!("a matrix on lane {}, vectors on lanes {x} and {out}", matrix.lane.0);
            return Err(Error::invalid(OP, reason));
        }
        let args = ffi::tandem_spmv_args {
            starts: matrix.starts.ptr().raw(),
            column: matrix.column.ptr().raw(),
            value: matrix.value.ptr().raw(),
            values: matrix.values.ptr().cast().raw(),
            order: matrix.order.ptr().raw(),
            rows: rows as u64,
            thread_rows: matrix.thread_rows as u64,
            warp_rows: matrix.warp_rows as u64,
            x: x.ptr().cast().raw(),
            output: out.ptr().cast().raw(),
            output_length: out.len() as u64,
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_spmv_bn254,
            CurveId::Bls12_381 => ffi::tandem_spmv_bls12_381,
        };
        // SAFETY: the matrix was checked when it was loaded, so that its indices lie within x and the values; x and out
        // have the lengths that it and the arguments say, on the lane whose stream this is.
        self.lane(OP, matrix.lane)?.launch(OP, |stream| unsafe { launcher(&args, stream) })
    }
}
