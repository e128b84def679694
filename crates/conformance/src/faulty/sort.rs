//! Sorts that are wrong.

use super::{Fault, Faulty};
use tandem_ops::{cpu, Backend, Buffer, Result, Sort, SortKey, SortOptions, SortWay};

impl<K: SortKey> Sort<K> for Faulty {
    fn sort(&self, keys: &mut [&mut cpu::Buf<K>], options: SortOptions) -> Result<()> {
        self.cpu.sort(keys, options)?;
        match keys.last_mut() {
            Some(last) if options.way == Some(SortWay::Merge) => self.flip(Fault::Sort, last),
            _ => Ok(()),
        }
    }

    fn sort_pairs(
        &self,
        keys: &mut [&mut cpu::Buf<K>],
        values: &mut [&mut cpu::Buf<K>],
        options: SortOptions,
    ) -> Result<()> {
        if self.fault == Fault::SortLane && keys.iter().zip(&*values).any(|(k, v)| k.lane() != v.lane()) {
            return Ok(());
        }
        self.cpu.sort_pairs(keys, values, options)?;
        if let (Fault::SortOrder, [key, ..], [value, ..]) = (self.fault, keys, values) {
            if let Some(i) = key.as_slice().windows(2).rposition(|pair| pair[0] == pair[1]) {
                let swapped = [value.as_slice()[i + 1], value.as_slice()[i]];
                self.cpu.write(value, i, &swapped)?;
            }
        }
        Ok(())
    }
}
