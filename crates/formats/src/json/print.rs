//! JSON text laid out as the snarkjs program prints it: one space for each level, no newline at the end, and an empty
//! list over two lines.

use std::fmt::Write;

/// A value to print.
pub(super) enum Tree {
    Text(String),
    Int(u64),
    List(Vec<Tree>),
    Map(Vec<(&'static str, Tree)>),
}

impl Tree {
    pub(super) fn text(text: &str) -> Self {
        Tree::Text(text.into())
    }
}

impl std::fmt::Display for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.print(f, 0)
    }
}

impl Tree {
    fn print(&self, f: &mut std::fmt::Formatter<'_>, level: usize) -> std::fmt::Result {
        let (brackets, len) = match self {
            // Only digits and fixed names are printed, which need no escapes.
            Tree::Text(text) => return write!(f, "\"{text}\""),
            Tree::Int(value) => return write!(f, "{value}"),
            Tree::List(items) => (['[', ']'], items.len()),
            Tree::Map(members) => (['{', '}'], members.len()),
        };
        f.write_char(brackets[0])?;
        for i in 0..len {
            f.write_str(if i == 0 { "\n" } else { ",\n" })?;
            write!(f, "{:1$}", "", level + 1)?;
            match self {
                Tree::List(items) => items[i].print(f, level + 1)?,
                Tree::Map(members) => {
                    write!(f, "\"{}\": ", members[i].0)?;
                    members[i].1.print(f, level + 1)?;
                }
                Tree::Text(_) | Tree::Int(_) => {}
            }
        }
        write!(f, "\n{:1$}{2}", "", level, brackets[1])
    }
}
