//! Writes the bindings.

use super::parse::{Item, Named, Type, Types};
use std::fmt::Write;

/// The columns that rustfmt allows here.
const WIDTH: usize = 120;

/// The Rust file for a header. It is as rustfmt would write it.
pub(super) fn rust(header: &str, items: &[Item], known: &Types) -> String {
    let mut out = format!(
        "//! The declarations of {header}, made by `cargo xtask bindgen`. Not to be edited.\n\
         #![allow(missing_docs, non_camel_case_types, dead_code, unreachable_pub, clippy::missing_safety_doc)]\n\n",
    );
    for path in imports(items, known) {
        let _ = writeln!(out, "pub use {path};");
    }
    if !imports(items, known).is_empty() {
        out.push('\n');
    }
    for item in items {
        declaration(&mut out, item);
    }
    functions(&mut out, items, if imports(items, known).is_empty() { "crate" } else { "tandem_cuda" });
    asserts(&mut out, items);
    out
}

/// A CUDA source where nvcc checks the layout.
pub(super) fn layout(header: &str, items: &[Item]) -> String {
    let mut out = format!(
        "// The layout that src/ffi.rs asserts too, made by `cargo xtask bindgen`. Not to be edited.\n\
         #include \"{header}\"\n"
    );
    for item in items {
        let Item::Struct { name, fields, size, .. } = item else { continue };
        let _ = writeln!(out, "\nstatic_assert(sizeof({name}) == {size}, \"size of {name}\");");
        for Named { name: field, offset, .. } in fields {
            let _ = writeln!(out, "static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");");
        }
    }
    out
}

/// Types of other headers, as `path::name`, in order.
fn imports(items: &[Item], known: &Types) -> Vec<String> {
    let named = items.iter().flat_map(|item| match item {
        Item::Struct { fields, .. } => fields.as_slice(),
        Item::Function { parameters, .. } => parameters.as_slice(),
        _ => &[],
    });
    let mut out: Vec<String> =
        named.filter_map(|n| known.path(&n.ty.word).map(|path| format!("{path}::{}", n.ty.word))).collect();
    out.sort();
    out.dedup();
    out
}

fn docs(out: &mut String, indent: &str, doc: &[String]) {
    for line in doc {
        let _ = writeln!(out, "{}", format!("{indent}/// {line}").trim_end());
    }
}

fn declaration(out: &mut String, item: &Item) {
    match item {
        Item::Constant { doc, name, value } => {
            docs(out, "", doc);
            // Negative values are status codes; the others are used as such or as a u32 of an argument.
            let _ = writeln!(out, "pub const {name}: i32 = {value};\n");
        }
        Item::Handle { doc, name, tag } => {
            let _ = writeln!(out, "#[repr(C)]\npub struct {tag} {{\n    _opaque: [u8; 0],\n}}");
            docs(out, "", doc);
            let _ = writeln!(out, "pub type {name} = *mut {tag};\n");
        }
        Item::Struct { doc, name, fields, .. } => {
            docs(out, "", doc);
            let _ = writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {name} {{");
            for field in fields {
                docs(out, "    ", &field.doc);
                let ty = match field.array {
                    Some(count) => format!("[{}; {count}]", rust_type(&field.ty)),
                    None => rust_type(&field.ty),
                };
                let _ = writeln!(out, "    pub {}: {ty},", rust_name(&field.name));
            }
            out.push_str("}\n\n");
        }
        Item::Function { .. } => {}
    }
}

/// `krate` is where the macro is that also makes what stands for the functions of a build without nvcc.
fn functions(out: &mut String, items: &[Item], krate: &str) {
    let _ = writeln!(out, "{krate}::native! {{");
    for item in items {
        let Item::Function { doc, name, parameters, returns_text } = item else { continue };
        let returns = if *returns_text { "*const core::ffi::c_char" } else { "i32" };
        docs(out, "    ", doc);
        let list: Vec<String> =
            parameters.iter().map(|p| format!("{}: {}", rust_name(&p.name), rust_type(&p.ty))).collect();
        let line = format!("    pub fn {name}({}) -> {returns};", list.join(", "));
        if line.len() <= WIDTH {
            let _ = writeln!(out, "{line}");
        } else {
            let _ = writeln!(out, "    pub fn {name}(");
            for one in list {
                let _ = writeln!(out, "        {one},");
            }
            let _ = writeln!(out, "    ) -> {returns};");
        }
    }
    out.push_str("}\n");
}

fn asserts(out: &mut String, items: &[Item]) {
    for item in items {
        let Item::Struct { name, fields, size, .. } = item else { continue };
        let _ = writeln!(out, "\nconst _: () = {{");
        let _ = writeln!(out, "    assert!(size_of::<{name}>() == {size});");
        for Named { name: field, offset, .. } in fields {
            let _ = writeln!(out, "    assert!(core::mem::offset_of!({name}, {}) == {offset});", rust_name(field));
        }
        out.push_str("};\n");
    }
}

/// A name that C allows and Rust keeps for itself gets an underscore.
fn rust_name(name: &str) -> String {
    let taken = ["as", "fn", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "self", "type"];
    let more =
        ["crate", "dyn", "trait", "unsafe", "use", "where", "yield", "box", "final", "override", "priv", "async"];
    let end = if taken.contains(&name) || more.contains(&name) { "_" } else { "" };
    format!("{name}{end}")
}

fn rust_type(ty: &Type) -> String {
    let word = match ty.word.as_str() {
        "int8_t" => "i8",
        "uint8_t" => "u8",
        "int16_t" => "i16",
        "uint16_t" => "u16",
        "int32_t" => "i32",
        "uint32_t" => "u32",
        "int64_t" => "i64",
        "uint64_t" => "u64",
        "size_t" => "usize",
        "float" => "f32",
        "double" => "f64",
        "char" => "core::ffi::c_char",
        "void" => "core::ffi::c_void",
        other => other,
    };
    // The innermost pointer of `const T**` is the const one.
    let inner = if ty.is_const { "*const " } else { "*mut " };
    match ty.pointers {
        0 => word.into(),
        n => format!("{}{inner}{word}", "*mut ".repeat(n - 1)),
    }
}
