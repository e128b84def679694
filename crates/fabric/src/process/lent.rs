//! Bytes that the system sends from, and receives into, where they lie.

use rustix::io::{readv, retry_on_intr};
use rustix::net::{sendmsg, SendAncillaryBuffer, SendFlags};
use std::io::{IoSlice, IoSliceMut, Result};
use std::marker::PhantomData;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Some bytes of words that others may change meanwhile: what comes of them, or stays, is then as after a race of bytes.
pub(crate) struct Lent<'a> {
    at: *mut u8,
    bytes: usize,
    words: PhantomData<&'a [AtomicU64]>,
}

/// `struct iovec`
#[repr(C)]
struct Vector {
    at: *mut u8,
    bytes: usize,
}

impl<'a> Lent<'a> {
    /// These bytes of the words; `None` where they have no such bytes.
    pub(crate) fn new(words: &'a [AtomicU64], bytes: Range<usize>) -> Option<Self> {
        let is_inside = bytes.start <= bytes.end && bytes.end <= size_of_val(words);
        let at = words.as_ptr().cast_mut().cast::<u8>().wrapping_add(bytes.start);
        is_inside.then_some(Lent { at, bytes: bytes.len(), words: PhantomData })
    }

    /// Sends `head` and then these bytes, or a part of that: how much.
    pub(crate) fn send(&self, head: &[u8], to: &TcpStream) -> Result<usize> {
        // SAFETY: std documents its vectors to be those of the system's calls, which alone looks at this one: while `self` borrows the words, they
        // are there. A slice would promise that nobody changes the bytes.
        let bytes = unsafe { std::mem::transmute::<Vector, IoSlice<'_>>(self.vector()) };
        let both = [IoSlice::new(head), bytes];
        let send = || sendmsg(to, &both, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        Ok(retry_on_intr(send)?)
    }

    /// Receives into these bytes what there is, and waits for the first of it: how much; 0 where nothing will come any more.
    pub(crate) fn receive(&self, from: &TcpStream) -> Result<usize> {
        // SAFETY: as in `send`. The words are atomic, so that the system may write to them as another process may; every bit pattern is a word.
        let bytes = unsafe { std::mem::transmute::<Vector, IoSliceMut<'_>>(self.vector()) };
        let mut one = [bytes];
        Ok(retry_on_intr(|| readv(from, &mut one))?)
    }

    fn vector(&self) -> Vector {
        Vector { at: self.at, bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::Ordering;

    #[test]
    fn bytes_go_from_where_they_lie_to_where_they_belong() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut other = listener.accept().unwrap().0;
        let words: Vec<AtomicU64> = (0..100).map(|i| AtomicU64::new(i * 0x0101_0101_0101_0101)).collect();
        let bytes = || words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect::<Vec<u8>>();
        let mut model = bytes();
        for range in [0..800, 3..4, 5..5, 13..797, 799..800] {
            let lent = Lent::new(&words, range.clone()).unwrap();
            assert_eq!(lent.send(b"head", &one).unwrap(), 4 + range.len());
            let mut all = vec![0; 4 + range.len()];
            other.read_exact(&mut all).unwrap();
            assert_eq!((&all[..4], &all[4..]), (&b"head"[..], &model[range.clone()]));
            if range.is_empty() {
                continue;
            }
            let data: Vec<u8> = range.clone().map(|i| (i * 7 + 1) as u8).collect();
            other.write_all(&data).unwrap();
            let got = lent.receive(&one).unwrap();
            one.read_exact(&mut vec![0; range.len() - got]).unwrap();
            model[range.start..range.start + got].copy_from_slice(&data[..got]);
            assert!(got > 0 && bytes() == model, "{range:?}");
        }
        for range in [0..801, 800..801, 7..usize::MAX] {
            assert!(Lent::new(&words, range).is_none());
        }
        drop(other);
        assert_eq!(Lent::new(&words, 0..8).unwrap().receive(&one).unwrap(), 0);
    }
}
