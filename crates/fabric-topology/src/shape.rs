//! What XML may look like, checked in one pass before a parser sees it: its stack is limited, and some of its work is quadratic.

use super::{MAX_DEPTH, MAX_ELEMENT_ATTRIBUTES, MAX_NODES};
use crate::{Error, Result};

/// Refuses what nests too deep, and too many elements or attributes of one. What is not XML passes: the parser refuses it, and comes
/// no further than this has looked.
pub(super) fn check(text: &str) -> Result<()> {
    let mut rest = text;
    let (mut depth, mut elements) = (0usize, 0u32);
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let line = || format!("line {}", text[..text.len() - rest.len()].matches('\n').count() + 1);
        let refused = |what: String| Err(Error::at(line(), format!("expected at most {what}")));
        let end = match rest.as_bytes().get(1) {
            Some(b'!') if rest.starts_with("<!--") => "-->",
            Some(b'!') if rest.starts_with("<![CDATA[") => "]]>",
            Some(b'?') => "?>",
            Some(b'!' | b'/') => ">",
            _ => "",
        };
        if end.is_empty() {
            let tag = Tag::of(&rest[1..]);
            (depth, elements) = (depth + 1, elements + 1);
            if depth > MAX_DEPTH {
                return refused(format!("{MAX_DEPTH} levels of elements"));
            }
            if elements > MAX_NODES {
                return refused(format!("{MAX_NODES} elements"));
            }
            if tag.attributes > MAX_ELEMENT_ATTRIBUTES {
                return refused(format!("{MAX_ELEMENT_ATTRIBUTES} attributes of an element"));
            }
            if tag.has_namespace {
                return Err(Error::at(line(), "expected no namespaces (xmlns)"));
            }
            depth -= usize::from(tag.is_closed);
            rest = &rest[1 + tag.len..];
        } else {
            depth = depth.saturating_sub(usize::from(rest.starts_with("</")));
            let Some(after) = rest.find(end) else { return Ok(()) };
            rest = &rest[after + end.len()..];
        }
    }
    Ok(())
}

/// An element's opening, without the first `<`.
struct Tag {
    len: usize,
    attributes: usize,
    has_namespace: bool,
    is_closed: bool,
}

impl Tag {
    fn of(text: &str) -> Self {
        let (mut quote, mut attributes, mut has_namespace, mut last) = (None, 0, false, b' ');
        let is_namespace = |before: &str| {
            let name = before.trim_end().rsplit(|c: char| c.is_ascii_whitespace() || c == '"' || c == '\'').next();
            name.is_some_and(|name| name.starts_with("xmlns"))
        };
        for (i, b) in text.bytes().enumerate() {
            match (quote, b) {
                (Some(q), b) => quote = (q != b).then_some(q),
                (None, b'"' | b'\'') => quote = Some(b),
                (None, b'=') => {
                    attributes += 1;
                    has_namespace |= is_namespace(&text[..i]);
                    // Names are looked for no oftener.
                    if attributes > MAX_ELEMENT_ATTRIBUTES {
                        break;
                    }
                }
                (None, b'>') => return Self { len: i + 1, attributes, has_namespace, is_closed: last == b'/' },
                _ => {}
            }
            last = b;
        }
        Self { len: text.len(), attributes, has_namespace, is_closed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_quotes_comments_and_data_does_not_count() {
        let nested = "<a>".repeat(100);
        let many = "x=y ".repeat(1000);
        for inner in [
            format!("<!-- {nested} {many} -->"),
            format!("<![CDATA[{nested} <b {many}>]]>"),
            format!("<?pi {nested} {many}?>"),
            format!("<b c=\"{nested} {many}\" d='\" {many}/>'/>"),
        ] {
            assert_eq!(check(&format!("<r>{}</r>", inner.repeat(3))), Ok(()), "{inner}");
            // What stands behind it counts.
            let error = check(&format!("<r>\n{inner}<b {many}/></r>")).unwrap_err().to_string();
            assert_eq!(error, "line 2: expected at most 64 attributes of an element");
        }
    }

    #[test]
    fn as_much_as_is_allowed_and_one_more() {
        let attributes = |n: usize| format!("<r {}/>", (0..n).map(|i| format!("a{i}='' ")).collect::<String>());
        assert_eq!(check(&attributes(MAX_ELEMENT_ATTRIBUTES)), Ok(()));
        assert!(check(&attributes(MAX_ELEMENT_ATTRIBUTES + 1)).is_err());
        let deep = |n: usize| format!("{}{}", "<a b='/'>".repeat(n), "</a>".repeat(n));
        assert_eq!(check(&deep(MAX_DEPTH).repeat(2)), Ok(()));
        assert!(check(&deep(MAX_DEPTH + 1)).is_err());
        let wide = |n: u32| "<a/>".repeat(n as usize);
        assert_eq!(check(&wide(MAX_NODES)), Ok(()));
        assert!(check(&wide(MAX_NODES + 1)).is_err());
        for name in ["xmlns", "xmlns:x", "xmlns \n"] {
            assert!(check(&format!("<r a=\"xmlns=''\"><b a=''{name}=''/></r>")).is_err(), "{name}");
        }
        assert_eq!(check("<r a=\"xmlns=''\" xml=''/>"), Ok(()));
        // Ends early, somewhere.
        for text in ["<", "<a", "<a b", "<a b='", "<!--", "<![CDATA[", "<?", "</", "<!"] {
            assert_eq!(check(text), Ok(()));
        }
    }
}
