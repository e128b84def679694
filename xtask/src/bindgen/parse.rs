//! Reads the subset of C that the native headers are written in, once their macros are expanded ([`super::macros`]).
//!
//! ```text
//! header   = { "#pragma once" | "#include" name | "#define" NAME integer | macro | guard | handle | struct | function }
//! guard    = "#ifdef __cplusplus" ( 'extern "C" {' | "}" ) "#endif"
//! handle   = "typedef struct" tag "*" name ";"
//! struct   = "typedef struct" name "{" { type name [ "[" integer "]" ] ";" } "}" name ";"
//! function = ( "int32_t" | "const char*" ) name "(" type name { "," type name } ")" ";"
//! type     = [ "const" ] word { "*" }
//! ```
//!
//! `///` before an item documents it; other comments are skipped. Anything else is an error with its line.

use std::collections::BTreeMap;

/// A C type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) word: String,
    pub(super) is_const: bool,
    /// Number of stars.
    pub(super) pointers: usize,
}

/// A member of a struct or a parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) doc: Vec<String>,
    pub(super) name: String,
    pub(super) ty: Type,
    /// Number of elements, for a member that is an array.
    pub(super) array: Option<u64>,
    pub(super) offset: u64,
}

/// What a header declares.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Constant { doc: Vec<String>, name: String, value: i64 },
    Handle { doc: Vec<String>, name: String, tag: String },
    Struct { doc: Vec<String>, name: String, fields: Vec<Named>, size: u64 },
    Function { doc: Vec<String>, name: String, parameters: Vec<Named>, returns_text: bool },
}

/// Types that a header may use beside C's own.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// Size, alignment, and for a type of another header its path in Rust.
    map: BTreeMap<String, (u64, u64, Option<String>)>,
    /// Headers that may be included.
    headers: Vec<String>,
}

impl Types {
    /// Takes the types of `items`, which `header` declares and Rust finds in `path`.
    pub(super) fn add(&mut self, items: &[Item], path: &str, header: &str) {
        self.headers.push(header.into());
        for item in items {
            self.insert(item, Some(path));
        }
    }

    /// Lets `header` be included, whose types are not used.
    pub(super) fn allow(&mut self, header: &str) {
        self.headers.push(header.into());
    }

    /// Where Rust finds the type, if another header declares it.
    pub(super) fn path(&self, word: &str) -> Option<&str> {
        self.map.get(word)?.2.as_deref()
    }

    fn insert(&mut self, item: &Item, path: Option<&str>) {
        let path = path.map(String::from);
        match item {
            Item::Handle { name, .. } => self.map.insert(name.clone(), (8, 8, path)),
            Item::Struct { name, fields, size, .. } => {
                let align = fields.iter().map(|f| self.layout(&f.ty).map_or(1, |l| l.1)).max();
                self.map.insert(name.clone(), (*size, align.unwrap_or(1), path))
            }
            _ => None,
        };
    }

    /// Size and alignment on a 64-bit machine; `None` for what cannot be held by value.
    fn layout(&self, ty: &Type) -> Option<(u64, u64)> {
        if ty.pointers > 0 {
            return Some((8, 8));
        }
        let size = match ty.word.as_str() {
            "char" | "int8_t" | "uint8_t" => 1,
            "int16_t" | "uint16_t" => 2,
            "int32_t" | "uint32_t" | "float" => 4,
            "int64_t" | "uint64_t" | "size_t" | "double" => 8,
            word => return self.map.get(word).map(|&(size, align, _)| (size, align)),
        };
        Some((size, size))
    }
}

/// Reads a header that may use the types `known`; an error begins with its line.
pub(super) fn header(text: &str, known: &Types) -> Result<Vec<Item>, String> {
    let tokens = tokens(&super::macros::expand(text)?)?;
    let mut types = Types { map: known.map.clone(), headers: known.headers.clone() };
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut items: Vec<Item> = Vec::new();
    let mut open = false;
    while let Some(item) = parser.item(&mut types, &mut open)? {
        types.insert(&item, None);
        items.push(item);
    }
    Ok(items)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Doc(String),
    /// A preprocessor line.
    Line(String),
    Word(String),
    Symbol(char),
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut out = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let trimmed = line.trim();
        if let Some(doc) = trimmed.strip_prefix("///") {
            out.push((number, Token::Doc(doc.strip_prefix(' ').unwrap_or(doc).into())));
            continue;
        }
        if trimmed.starts_with('#') || trimmed == "extern \"C\" {" {
            out.push((number, Token::Line(trimmed.into())));
            continue;
        }
        let code = trimmed.split("//").next().unwrap_or("");
        if code.contains("/*") {
            return Err(format!("{number}: only // comments are read"));
        }
        let mut rest = code;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if length > 0 {
                out.push((number, Token::Word(rest[..length].into())));
                rest = &rest[length..];
            } else if first.is_whitespace() {
                rest = rest.trim_start();
            } else if "*;,(){}[]".contains(first) {
                out.push((number, Token::Symbol(first)));
                rest = &rest[1..];
            } else {
                return Err(format!("{number}: {first:?} is not expected in a header"));
            }
        }
    }
    Ok(out)
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
}

impl Parser<'_> {
    fn error<T>(&self, what: &str) -> Result<T, String> {
        let last = self.tokens.len().saturating_sub(1);
        let line = self.tokens.get(self.at.saturating_sub(1).min(last)).map_or(1, |t| t.0);
        Err(format!("{line}: {what}"))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.1)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => self.error(&format!("expected {what}")),
        }
    }

    fn symbol(&mut self, symbol: char) -> Result<(), String> {
        match self.next() {
            Some(Token::Symbol(s)) if s == symbol => Ok(()),
            _ => self.error(&format!("expected {symbol:?}")),
        }
    }

    fn takes(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn doc(&mut self) -> Vec<String> {
        let mut doc = Vec::new();
        while let Some(Token::Doc(line)) = self.peek().cloned() {
            doc.push(line);
            self.at += 1;
        }
        doc
    }

    /// The next declaration; `open` is whether `extern "C" {` has been read and not closed.
    fn item(&mut self, types: &mut Types, open: &mut bool) -> Result<Option<Item>, String> {
        loop {
            let doc = self.doc();
            match self.next() {
                None if *open => return self.error("extern \"C\" { is not closed"),
                None => return Ok(None),
                Some(Token::Line(line)) => {
                    if let Some(item) = self.line(&line, doc, types, open)? {
                        return Ok(Some(item));
                    }
                }
                Some(Token::Symbol('}')) if *open => *open = false,
                Some(Token::Word(word)) if !*open => {
                    return self.error(&format!("{word:?} stands outside extern \"C\""));
                }
                Some(Token::Word(word)) if word == "typedef" => return self.typedef(doc, types).map(Some),
                Some(Token::Word(_)) => {
                    self.at -= 1;
                    return self.function(doc, types).map(Some);
                }
                Some(_) => return self.error("expected a declaration"),
            }
        }
    }

    fn line(&mut self, line: &str, doc: Vec<String>, types: &Types, open: &mut bool) -> Result<Option<Item>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["#pragma", "once"] | ["#ifdef", "__cplusplus"] | ["#endif"] => Ok(None),
            ["#include", "<stdint.h>" | "<stddef.h>"] => Ok(None),
            ["#include", name] if types.headers.iter().any(|known| *known == name.trim_matches('"')) => Ok(None),
            ["extern", ..] => {
                *open = true;
                Ok(None)
            }
            ["#define", name, value] if is_name(name) => match value.parse() {
                Ok(value) => Ok(Some(Item::Constant { doc, name: name.into(), value })),
                Err(_) => self.error(&format!("{value:?} is not a decimal integer")),
            },
            _ => self.error(&format!("{line:?} is not read")),
        }
    }

    fn typedef(&mut self, doc: Vec<String>, types: &Types) -> Result<Item, String> {
        if self.word("struct")? != "struct" {
            return self.error("expected struct after typedef");
        }
        let tag = self.word("the struct's name")?;
        if self.takes('*') {
            let name = self.word("the handle's name")?;
            self.symbol(';')?;
            return Ok(Item::Handle { doc, name, tag });
        }
        self.symbol('{')?;
        let (mut fields, mut size, mut largest) = (Vec::new(), 0u64, 1);
        loop {
            let doc = self.doc();
            if self.takes('}') {
                break;
            }
            let mut field = self.named(doc, types)?;
            let Some((one, align)) = types.layout(&field.ty) else {
                return self.error(&format!("{} cannot be held by value", field.ty.word));
            };
            field.offset = size.next_multiple_of(align);
            size = field.offset + one * field.array.unwrap_or(1);
            largest = largest.max(align);
            fields.push(field);
            self.symbol(';')?;
        }
        let name = self.word("the type's name")?;
        if name != tag || fields.is_empty() {
            return self.error(&format!("struct {tag} needs members and the same name after them, not {name}"));
        }
        self.symbol(';')?;
        Ok(Item::Struct { doc, name, fields, size: size.next_multiple_of(largest) })
    }

    fn function(&mut self, doc: Vec<String>, types: &Types) -> Result<Item, String> {
        let ty = self.ty()?;
        let returns_text = match (ty.word.as_str(), ty.is_const, ty.pointers) {
            ("int32_t", false, 0) => false,
            ("char", true, 1) => true,
            _ => return self.error("a function returns int32_t or const char*"),
        };
        let name = self.word("the function's name")?;
        self.symbol('(')?;
        let mut parameters = Vec::new();
        loop {
            let parameter = self.named(Vec::new(), types)?;
            if parameter.array.is_some() {
                return self.error("a parameter is no array");
            }
            if parameter.ty.word == "void" && parameter.name != "scratch" {
                return self.error("void* is for scratch memory alone");
            }
            parameters.push(parameter);
            if !self.takes(',') {
                break;
            }
        }
        self.symbol(')')?;
        self.symbol(';')?;
        Ok(Item::Function { doc, name, parameters, returns_text })
    }

    fn named(&mut self, doc: Vec<String>, types: &Types) -> Result<Named, String> {
        let ty = self.ty()?;
        let is_scratch = ty.word == "void" && ty.pointers == 1 && !ty.is_const;
        let plain = Type { word: ty.word.clone(), is_const: false, pointers: 0 };
        if !is_scratch && types.layout(&plain).is_none() {
            return self.error(&format!("{} is not a type that is known", ty.word));
        }
        let name = self.word("a name")?;
        let mut array = None;
        if self.takes('[') {
            match self.word("a number of elements")?.parse() {
                Ok(count) if count > 0 => array = Some(count),
                _ => return self.error("expected a number of elements above 0"),
            }
            self.symbol(']')?;
        }
        Ok(Named { doc, name, ty, array, offset: 0 })
    }

    fn ty(&mut self) -> Result<Type, String> {
        let mut word = self.word("a type")?;
        let is_const = word == "const";
        if is_const {
            word = self.word("a type")?;
        }
        let mut pointers = 0;
        while self.takes('*') {
            pointers += 1;
        }
        if is_const && pointers == 0 {
            return self.error("const is for what a pointer points to");
        }
        Ok(Type { word, is_const, pointers })
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<Item>, String> {
        header(&format!("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{body}\n}}\n"), &Types::default())
    }

    #[test]
    fn lays_structs_out_as_c_does() {
        let items = read(
            "typedef struct inner { uint8_t a[3]; uint16_t b; } inner;\n\
             typedef struct outer { uint8_t a; inner b; const inner* c; int32_t d; } outer;",
        )
        .unwrap();
        let layout = |item: &Item| match item {
            Item::Struct { fields, size, .. } => (fields.iter().map(|f| f.offset).collect::<Vec<_>>(), *size),
            other => panic!("{other:?}"),
        };
        assert_eq!(layout(&items[0]), (vec![0, 4], 6));
        assert_eq!(layout(&items[1]), (vec![0, 2, 8, 16], 24));
    }

    #[test]
    fn reads_functions_handles_and_constants() {
        let items = read(
            "#define MINUS -3\ntypedef struct tag* handle;\n/// Does.\n/// More.\n\
             int32_t f(const handle* a, // why\n uint8_t** b, void* scratch);\nconst char* g(int32_t code);",
        )
        .unwrap();
        assert_eq!(items[0], Item::Constant { doc: vec![], name: "MINUS".into(), value: -3 });
        let Item::Function { doc, parameters, returns_text: false, .. } = &items[2] else { panic!("{items:?}") };
        assert_eq!(doc, &["Does.", "More."]);
        assert_eq!(parameters.iter().map(|p| p.ty.pointers).collect::<Vec<_>>(), [1, 2, 1]);
        assert!(matches!(&items[3], Item::Function { returns_text: true, .. }));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let cases = [
            ("int f(int32_t a);", "int32_t or const char*"),
            ("int32_t f(long a);", "long is not a type"),
            ("int32_t f(void* data);", "scratch memory alone"),
            ("int32_t f();", "expected a type"),
            ("int32_t f(int32_t a)", "expected ';'"),
            ("#define TWICE(x) 2", "is not read"),
            ("#define HEX 0x10", "decimal"),
            ("typedef struct a { int32_t x; } b;", "same name"),
            ("typedef struct a { } a;", "needs members"),
            ("typedef struct a { void x; } a;", "void is not a type"),
            ("typedef struct a { int32_t x[0]; } a;", "above 0"),
            ("typedef struct a { const int32_t x; } a;", "const is for"),
            ("#include \"other.h\"", "is not read"),
            ("/* old */", "only // comments"),
            ("int32_t f(int32_t a) = 0;", "not expected"),
        ];
        for (text, expected) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected) && error.starts_with(['3', '4', '5', '6']), "{text}: {error}");
        }
        assert!(header("int32_t f(int32_t a);", &Types::default()).unwrap_err().contains("outside"));
        assert!(header("extern \"C\" {\n", &Types::default()).unwrap_err().contains("not closed"));
    }
}
