//! Transforms of points that are wrong.

use super::{Fault, Faulty};
use bytemuck::Zeroable;
use tandem_ops::{cpu, Backend, Curve, Group, PointNtt, Result};

impl<C: Curve> PointNtt<C> for Faulty {
    fn lagrange_points(&self, points: &mut cpu::Buf<<C::G1 as Group>::Point>) -> Result<()> {
        let infinity = <C::G1 as Group>::Point::zeroed();
        let before = points.as_slice().to_vec();
        if self.fault == Fault::PointNttLength && !before.len().is_power_of_two() {
            return Ok(());
        }
        PointNtt::<C>::lagrange_points(&self.cpu, points)?;
        if self.fault == Fault::PointNttInfinity && before.contains(&infinity) {
            self.cpu.write(points, 0, &before)?;
        }
        if self.fault == Fault::PointNttDoubling && before.iter().all(|point| *point == before[0]) {
            self.cpu.write(points, 0, &vec![infinity; before.len()])?;
        }
        self.flip(Fault::PointNtt, points)
    }
}
