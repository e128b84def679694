//! Teams that are regular parts of others, as OpenSHMEM has them.

use crate::{Error, Result, Team};

impl Team {
    /// The team of `size` PEs of this one: `start`, and each of the others `stride` after the one before. A negative stride goes down.
    ///
    /// # Errors
    /// A PE that the team does not have, or one twice; as for [`Team::split`].
    pub fn split_strided(&self, start: usize, stride: isize, size: usize) -> Result<Team> {
        let op = "split a team by strides";
        let n = self.size();
        let problem = || {
            let problem = format!("{size} PEs from PE {start} on, {stride} apart; the team has PEs 0 to {}", n - 1);
            Error::invalid(op, problem)
        };
        if !(1..=n).contains(&size) || size > 1 && stride == 0 {
            return Err(problem());
        }
        let pe = |i: usize| stride.checked_mul(i as isize)?.checked_add_unsigned(start)?.try_into().ok();
        let pes = (0..size).map(|i| pe(i).filter(|&pe: &usize| pe < n).ok_or_else(problem));
        self.split(&pes.collect::<Result<Vec<usize>>>()?)
    }

    /// The PEs in rows of `columns`, the last of which may be shorter: a team for each row, and one for each column. PE `p` is PE `p % columns` of
    /// row `p / columns`, and PE `p / columns` of column `p % columns`. (OpenSHMEM's `team_split_2d` gives each PE the two that it is in.)
    ///
    /// # Errors
    /// No columns; as for [`Team::split`].
    pub fn split_2d(&self, columns: usize) -> Result<(Vec<Team>, Vec<Team>)> {
        if columns == 0 {
            return Err(Error::invalid("split a team in rows", "a row has at least one PE"));
        }
        let (n, columns) = (self.size(), columns.min(self.size()));
        let row = |y: usize| self.split(&(y * columns..n.min((y + 1) * columns)).collect::<Vec<_>>());
        let column = |x: usize| self.split(&(x..n).step_by(columns).collect::<Vec<_>>());
        Ok((
            (0..n.div_ceil(columns)).map(row).collect::<Result<_>>()?,
            (0..columns).map(column).collect::<Result<_>>()?,
        ))
    }

    /// The team of the PEs on the same host as PE `pe`: all, as a team is of one host. (OpenSHMEM's `TEAM_NODE`.)
    ///
    /// # Errors
    /// The team does not have the PE; as for [`Team::split`].
    pub fn node(&self, pe: usize) -> Result<Team> {
        self.core().member("split a team by nodes", pe)?;
        self.split(&(0..self.size()).collect::<Vec<_>>())
    }

    /// The team of PE `pe` and of those that share memory with it and with each other ([`Team::reaches`]), in their order; of two that do not
    /// reach each other, the first one. Kernels of such a team may access all its memory. (OpenSHMEM's `TEAM_SHARED`.)
    ///
    /// # Errors
    /// The team does not have the PE; as for [`Team::split`].
    pub fn sharing_memory(&self, pe: usize) -> Result<Team> {
        self.core().member("split a team by shared memory", pe)?;
        let reach = |a: usize, b: usize| self.reaches(a, b).is_ok() && self.reaches(b, a).is_ok();
        let mut members = vec![pe];
        for other in (0..self.size()).filter(|&other| other != pe) {
            if members.iter().all(|&member| reach(member, other)) {
                members.push(other);
            }
        }
        members.sort_unstable();
        self.split(&members)
    }
}
