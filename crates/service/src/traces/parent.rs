//! The caller's span, as the header `traceparent` names it (W3C Trace Context).

/// Bytes of a header of the version that is known.
const LENGTH: usize = 55;

/// A span of the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    /// Whether the caller's trace is kept.
    pub(crate) is_sampled: bool,
}

/// So many bytes in lower hexadecimal digits, not all of them 0.
fn id<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = hex(text)?;
    (bytes != [0; N]).then_some(bytes)
}

/// So many bytes in lower hexadecimal digits.
pub(super) fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

impl Parent {
    /// Reads the header. What is none is left aside, as the standard wants it: the job then begins a trace of its own.
    pub(crate) fn read(text: &str) -> Option<Parent> {
        let mut parts = text.splitn(5, '-');
        let [version, trace, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let [version] = hex::<1>(version)?;
        // A later version may have more behind; the version that is known has not.
        let is_known = version != 0xff && (version > 0 || text.len() == LENGTH);
        let [flags] = hex::<1>(flags)?;
        is_known.then_some(())?;
        Some(Parent { trace: id(trace)?, span: id(span)?, is_sampled: flags & 1 == 1 })
    }
}

impl std::fmt::Display for Parent {
    /// As a header.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        write!(f, "00-{}-{}-{:02x}", hex(&self.trace), hex(&self.span), u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_standard() {
        // The example of the standard.
        let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = Parent::read(header).unwrap();
        assert_eq!((parent.trace[..2].to_vec(), parent.span[7], parent.is_sampled), (vec![0x0a, 0xf7], 0x31, true));
        assert_eq!(parent.to_string(), header);
        assert!(!Parent::read(&header.replace("-01", "-02")).unwrap().is_sampled);
        // A later version, with more behind.
        assert_eq!(Parent::read(&(header.replacen("00", "cc", 1) + "-what-comes")), Some(parent));
        assert_eq!(Parent::read(&header.replacen("00", "cc", 1)), Some(parent));
        for wrong in [
            "",
            "00",
            "00---",
            &header.replacen("00", "ff", 1),
            &(header.to_string() + "-more"),
            &header.to_uppercase(),
            &header.replace("b7ad6b7169203331", "0000000000000000"),
            &header.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            &header.replace("0a", "0g"),
            &header.replace("-01", "-1"),
            &header.replace("-01", "-é"),
            &header[1..],
            &header[..54],
        ] {
            assert_eq!(Parent::read(wrong), None, "{wrong}");
        }
    }
}
