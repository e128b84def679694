//! The wire format of protocol buffers, as far as a graph needs it: fields of numbers and of bytes, in any order.

use crate::{Error, Result};

/// The error of a damaged graph; `at` is the byte in its file.
pub(super) fn damaged(at: usize, what: &str) -> Error {
    Error::circuit(format!("not a graph of circom-witnesscalc that is whole: at byte {at}: {what}"))
}

/// What is left of a message, and where in the file that is.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    rest: &'a [u8],
    at: usize,
}

/// What a field holds.
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(Message<'a>),
    /// Eight or four bytes, which no field that a graph has holds.
    Fixed,
}

impl<'a> Message<'a> {
    pub(super) fn new(rest: &'a [u8], at: usize) -> Self {
        Self { rest, at }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A number of seven bits a byte, the lowest first.
    pub(super) fn number(&mut self) -> Result<u64> {
        // Most have one byte.
        if let [first @ 0..=0x7f, rest @ ..] = self.rest {
            (self.rest, self.at) = (rest, self.at + 1);
            return Ok(u64::from(*first));
        }
        let mut number = 0u64;
        for (i, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                return Err(damaged(self.at, "a number has more than 64 bits"));
            }
            number |= bits << (7 * i);
            if byte < 0x80 {
                self.take(i + 1)?;
                return Ok(number);
            }
        }
        Err(damaged(self.at, "a number does not end"))
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<Message<'a>> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let left = self.rest.len();
            return Err(damaged(self.at, &format!("expected {count} bytes more, found {left}")));
        };
        let taken = Message { rest: taken, at: self.at };
        (self.rest, self.at) = (rest, self.at + count);
        Ok(taken)
    }

    /// A message behind its length.
    pub(super) fn counted(&mut self) -> Result<Message<'a>> {
        let count = self.number()?;
        self.take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The next field and its number; `None` at the end.
    pub(super) fn field(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        if self.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => Value::Bytes(self.counted()?),
            5 => self.take(4).map(|_| Value::Fixed)?,
            kind => return Err(damaged(at, &format!("a field has the type {kind}, expected 0, 1, 2 or 5"))),
        };
        Ok(Some((tag >> 3, value)))
    }

    /// A little-endian number of 32 bits.
    pub(super) fn word(&mut self) -> Result<u32> {
        let bytes = self.take(4)?.rest;
        Ok(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
    }

    /// A text behind its length in 32 bits.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let count = self.word()?;
        self.take(count as usize)?.as_text()
    }

    pub(super) fn as_text(&self) -> Result<&'a str> {
        std::str::from_utf8(self.rest).map_err(|_| damaged(self.at, "a name is not UTF-8"))
    }
}

impl<'a> Value<'a> {
    /// The number, of at most 32 bits; `at` is near it.
    pub(super) fn small(&self, at: usize) -> Result<u32> {
        match self {
            Value::Number(number) => u32::try_from(*number)
                .map_err(|_| damaged(at, &format!("expected a number below 2^32, found {number}"))),
            _ => Err(damaged(at, "expected a number, found bytes")),
        }
    }

    pub(super) fn message(&self, at: usize) -> Result<Message<'a>> {
        match self {
            Value::Bytes(message) => Ok(*message),
            _ => Err(damaged(at, "expected bytes, found a number")),
        }
    }
}

/// One operation of a graph. Operands are numbers of earlier operations.
pub(super) enum Node<'a> {
    /// A value of the inputs, by its place.
    Input(u32),
    /// A number, little-endian.
    Constant(&'a [u8]),
    Unary(u32, u32),
    Binary(u32, [u32; 2]),
    /// The second where the first is not zero, else the third.
    Select([u32; 3]),
}

impl<'a> Node<'a> {
    pub(super) fn read(mut message: Message<'a>) -> Result<Self> {
        let at = message.at();
        let mut node = None;
        while let Some((field, value)) = message.field()? {
            if !(1..=5).contains(&field) {
                return Err(damaged(at, &format!("unknown kind of operation {field}, expected 1 to 5")));
            }
            let message = value.message(at)?;
            node = Some(match field {
                1 => Node::Input(numbers::<1>(message)?[0]),
                2 => Node::Constant(constant(message)?),
                3 => {
                    let [op, a] = numbers(message)?;
                    Node::Unary(op, a)
                }
                4 => {
                    let [op, a, b] = numbers(message)?;
                    Node::Binary(op, [a, b])
                }
                _ => {
                    let [op, a, b, c] = numbers(message)?;
                    if op != 0 {
                        return Err(damaged(at, &format!("unknown operation {op} of three values, expected 0")));
                    }
                    Node::Select([a, b, c])
                }
            });
        }
        node.ok_or_else(|| damaged(at, "an operation is empty"))
    }
}

/// The numbers in the fields 1 to N; 0 where one is not there.
fn numbers<const N: usize>(mut message: Message<'_>) -> Result<[u32; N]> {
    let mut found = [0; N];
    while let Some((field, value)) = message.field()? {
        let known = usize::try_from(field).ok().and_then(|field| found.get_mut(field.checked_sub(1)?));
        let known = known.ok_or_else(|| damaged(message.at(), &format!("unknown field {field} of an operation")))?;
        *known = value.small(message.at())?;
    }
    Ok(found)
}

/// The bytes in field 1 of the message in field 1.
fn constant(mut message: Message<'_>) -> Result<&[u8]> {
    let mut found = Message::new(&[], message.at());
    while let Some((field, value)) = message.field()? {
        if field == 1 {
            found = value.message(message.at())?;
        }
    }
    big_number(found)
}

/// The bytes of a number, little-endian, without zeros at the end.
pub(super) fn big_number(mut message: Message<'_>) -> Result<&[u8]> {
    let mut bytes: &[u8] = &[];
    while let Some((field, value)) = message.field()? {
        if field == 1 {
            bytes = value.message(message.at())?.bytes();
        }
    }
    Ok(&bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)])
}
