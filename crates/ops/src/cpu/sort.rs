//! Sorting by rayon; on several lanes, as GPUs do it.

use super::{Buf, Cpu};
use crate::sort::partition::{bucket, owner, sample_at, splitters, Places, ATTEMPTS, SAMPLES};
use crate::sort::{borders, check, comparable, merge, Sort, SortKey, SortOptions, SortWay};
use crate::{memory, Result, Wire};
use rayon::prelude::*;

/// A lane's keys with what goes along with them.
type Piece<K, V> = Vec<(K, V)>;

/// Where the parts begin that lanes received, and the parts.
type Received<K, V> = (Vec<u64>, Vec<Piece<K, V>>);

impl<K: SortKey> Sort<K> for Cpu {
    fn sort(&self, keys: &mut [&mut Buf<K>], options: SortOptions) -> Result<()> {
        check(keys, None)?;
        if let [only] = keys {
            only.data.par_sort_unstable_by_key(|&key| comparable(key, options.descending));
            return Ok(());
        }
        let pieces = keys.iter().map(|buf| piece(buf.data.iter().map(|&key| (key, ())))).collect::<Result<_>>()?;
        for (buf, piece) in keys.iter_mut().zip(sorted(pieces, options)?) {
            write(buf, piece.into_iter().map(|(key, ())| key));
        }
        Ok(())
    }

    fn sort_pairs(&self, keys: &mut [&mut Buf<K>], values: &mut [&mut Buf<K>], options: SortOptions) -> Result<()> {
        check(keys, Some(values))?;
        let zipped = keys.iter().zip(values.iter());
        let pieces = zipped.map(|(k, v)| piece(k.data.iter().copied().zip(v.data.iter().copied())));
        let pieces = pieces.collect::<Result<_>>()?;
        for ((k, v), piece) in keys.iter_mut().zip(values).zip(sorted(pieces, options)?) {
            write(k, piece.iter().map(|pair| pair.0));
            write(v, piece.iter().map(|pair| pair.1));
        }
        Ok(())
    }
}

fn piece<K, V>(pairs: impl ExactSizeIterator<Item = (K, V)>) -> Result<Piece<K, V>> {
    let mut piece = memory::reserve("sort", pairs.len())?;
    piece.extend(pairs);
    Ok(piece)
}

fn write<T: Wire>(to: &mut Buf<T>, from: impl Iterator<Item = T>) {
    to.data.iter_mut().zip(from).for_each(|(to, from)| *to = from);
}

fn sorted<K: SortKey, V: Copy + Send>(mut pieces: Vec<Piece<K, V>>, options: SortOptions) -> Result<Vec<Piece<K, V>>> {
    let descending = options.descending;
    let in_order = |piece: &mut Piece<K, V>| piece.par_sort_by_key(|&(key, _)| comparable(key, descending));
    let borders = borders(pieces.iter().map(Vec::len));
    if borders[pieces.len()] == 0 {
        return Ok(pieces);
    }
    // As much again for what is sorted, and half of it for the sort itself.
    memory::check("sort", (borders[pieces.len()].saturating_mul(size_of::<(K, V)>() as u64)).saturating_mul(3) / 2)?;
    if options.way == Some(SortWay::Merge) {
        pieces.iter_mut().for_each(in_order);
        return Ok(merged(&pieces, &borders, descending));
    }
    let (cuts, mut received) = exchange(&pieces, &borders, descending)?;
    received.iter_mut().for_each(in_order);
    // The parts are of about the size of the shares; what is beyond goes to where it belongs.
    let all = received.into_iter().zip(cuts).flat_map(|(part, cut)| (cut..).zip(part));
    pieces.iter_mut().for_each(Vec::clear);
    all.for_each(|(at, element)| pieces[owner(&borders, at)].push(element));
    Ok(pieces)
}

/// Every element goes to the lane that sorts it.
fn exchange<K: SortKey, V: Copy>(pieces: &[Piece<K, V>], borders: &[u64], descending: bool) -> Result<Received<K, V>> {
    let lanes = pieces.len();
    let key = |pair: &(K, V)| comparable(pair.0, descending);
    let attempt = |seed| {
        let sample = |i| {
            let at = sample_at(seed, i, borders[lanes]);
            let lane = owner(borders, at);
            key(&pieces[lane][(at - borders[lane]) as usize])
        };
        let mut samples: Vec<K> = (0..SAMPLES).map(sample).collect();
        samples.sort_unstable();
        let splitters = splitters(&samples, borders);
        let mut counts = vec![vec![0u64; 2 * lanes - 1]; lanes];
        for (piece, counts) in pieces.iter().zip(&mut counts) {
            piece.iter().for_each(|pair| counts[bucket(key(pair), &splitters)] += 1);
        }
        Places::new(&counts, &splitters, borders).map(|places| (places, splitters))
    };
    let (Places { cuts, first }, splitters) =
        (1..ATTEMPTS).find_map(|seed| attempt(seed).ok()).map_or_else(|| attempt(ATTEMPTS), Ok)?;
    let placeholder = pieces.iter().find_map(|piece| piece.first().copied());
    let part = |lane: usize| match placeholder {
        Some(pair) => memory::filled("sort", (cuts[lane + 1] - cuts[lane]) as usize, pair),
        None => Ok(Vec::new()),
    };
    let mut received: Vec<Piece<K, V>> = (0..lanes).map(part).collect::<Result<_>>()?;
    for (piece, mut next) in pieces.iter().zip(first) {
        for pair in piece {
            let place = &mut next[bucket(key(pair), &splitters)];
            let lane = owner(&cuts, *place);
            received[lane][(*place - cuts[lane]) as usize] = *pair;
            *place += 1;
        }
    }
    Ok((cuts, received))
}

/// The textbook's exchange and merge of sorted pieces.
fn merged<K: SortKey, V: Copy>(pieces: &[Piece<K, V>], borders: &[u64], descending: bool) -> Vec<Piece<K, V>> {
    let keys: Vec<Vec<K>> = pieces.iter().map(|piece| piece.iter().map(|pair| pair.0).collect()).collect();
    let keys: Vec<&[K]> = keys.iter().map(Vec::as_slice).collect();
    let cuts: Vec<Vec<usize>> = borders.iter().map(|&border| merge::cut(&keys, border, descending)).collect();
    let part = |lane: usize| {
        let parts = pieces.iter().enumerate().map(|(from, piece)| &piece[cuts[lane][from]..cuts[lane + 1][from]]);
        parts.fold(Vec::new(), |merged, part| merge::merge(&merged, part, descending))
    };
    (0..pieces.len()).map(part).collect()
}
