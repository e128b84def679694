//! Requests of gRPC, as frames of HTTP/2 (RFC 9113). Fields of heads are literals without an index (RFC 7541, 6.2.2), so that no table is
//! needed.

use crate::command_line::case::{change_bytes, Random};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// Its head has the payload's length, which has 24 bits.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let length = (self.payload.len() as u32).to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &self.stream.to_be_bytes(), &self.payload].concat()
    }

    /// Another kind, other flags, another stream, or other content.
    pub(super) fn change(&mut self, random: &mut Random, others: &[(String, Vec<u8>)]) {
        match random.below(8) {
            0 => self.kind = random.below(12) as u8,
            1 => self.flags ^= 1 << random.below(8),
            2 => self.stream = *random.of(&[0, 1, 2, 3, 5, u32::MAX >> 1, u32::MAX]),
            _ => change_bytes(&mut self.payload, random, others),
        }
        // What a frame may have at all.
        self.payload.truncate((1 << 24) - 1);
    }
}

/// A call of `method` with these messages, each of protocol buffers.
pub(super) fn call(method: &str, messages: &[Vec<u8>]) -> Vec<Frame> {
    let field = |name: &str, value: &str| {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        [&[0][..], &text(name), &text(value)].concat()
    };
    let head = [
        field(":method", "POST"),
        field(":scheme", "http"),
        field(":path", method),
        field(":authority", "127.0.0.1"),
        field("content-type", "application/grpc"),
        field("te", "trailers"),
    ];
    let frame = |kind, flags, stream, payload| Frame { kind, flags, stream, payload };
    let mut frames = vec![frame(SETTINGS, 0, 0, Vec::new()), frame(HEADERS, END_HEADERS, 1, head.concat())];
    for (i, message) in messages.iter().enumerate() {
        let flags = if i + 1 == messages.len() { END_STREAM } else { 0 };
        let prefixed = [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat();
        frames.push(frame(DATA, flags, 1, prefixed));
    }
    frames
}

/// A field of protocol buffers that has a length: a text, bytes, or a message. Its number is below 16, its length below 2^14.
pub(super) fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    [&[number << 3 | 2, length as u8 & 0x7f | 0x80, (length >> 7) as u8], content].concat()
}

/// The types of the frames that a reply has, in order; `None` where it is none of HTTP/2.
pub(super) fn types(reply: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut types) = (reply, Vec::new());
    while rest.len() >= HEAD_BYTES {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        types.push(rest[3]);
        rest = rest.get(HEAD_BYTES + length..)?;
        // A server's first frame has its settings.
        if types[0] != SETTINGS {
            return None;
        }
    }
    types.dedup();
    (!types.is_empty()).then_some(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_are_written() {
        let frames = call("/a.B/C", &[vec![7; 300], Vec::new()]);
        let bytes = frames.iter().flat_map(Frame::bytes).collect::<Vec<_>>();
        assert_eq!(types(&bytes), Some(vec![SETTINGS, HEADERS, DATA]));
        assert_eq!(frames[2].payload[..6], [0, 0, 0, 1, 44, 7]);
        assert_eq!(frames.iter().map(|frame| frame.flags & END_STREAM).collect::<Vec<_>>(), [0, 0, 0, 1]);
        assert_eq!(types(&bytes[..bytes.len() - 1]), None);
        assert_eq!((types(b"HTTP/1.1 200 OK\r\n"), types(b"")), (None, None));
        assert_eq!(field(2, &[5; 200])[..4], [0x12, 0xc8, 1, 5]);
    }
}
