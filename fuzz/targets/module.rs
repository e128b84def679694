//! Generated modules with the imports and exports of a circuit: bounded whatever they do, and refused or right.
//!
//! Of two kinds. Those of `wasm-smith` hold any code at all, and mostly end in the first function that the host calls. The others
//! answer the host's first questions as a circuit does, and then do what hurts: grow, recurse, print, loop, trap.
#![no_main]

#[path = "support/calculate.rs"]
mod support;

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::fmt::Write;
use std::sync::LazyLock;
use wasm_smith::{Config, Module};

/// Imports and exports.
static SHAPE: LazyLock<Vec<u8>> = LazyLock::new(|| wat::parse_str(text(&mut |_, end| end.to_string())).expect("our own text"));

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    let Ok(wasm) = module(&mut bytes) else { return };
    let inputs = ["{}", r#"{"a": 1}"#, r#"{"a": [1, -1], "b": "0x10"}"#];
    support::calculate(&wasm, inputs[bytes.choose_index(inputs.len()).unwrap_or(0)].as_bytes());
});

fn module(bytes: &mut Unstructured) -> Result<Vec<u8>> {
    if bytes.ratio(1, 4)? {
        let config = Config {
            module_shape: Some(SHAPE.clone()),
            bulk_memory_enabled: false,
            reference_types_enabled: false,
            multi_value_enabled: false,
            sign_extension_ops_enabled: false,
            saturating_float_to_int_enabled: false,
            simd_enabled: false,
            relaxed_simd_enabled: false,
            tail_call_enabled: false,
            exceptions_enabled: false,
            extended_const_enabled: false,
            gc_enabled: false,
            threads_enabled: false,
            memory64_enabled: false,
            custom_page_sizes_enabled: false,
            wide_arithmetic_enabled: false,
            allow_floats: false,
            allow_start_export: false,
            max_memories: 1,
            max_tables: 1,
            max_memory32_bytes: 1 << 26,
            ..Config::default()
        };
        return Ok(Module::new(config, bytes)?.to_bytes());
    }
    let mut failed = None;
    let text = text(&mut |locals, end| {
        let mut code = String::new();
        let written = statements(bytes, &mut code, locals, 0);
        failed = failed.take().or(written.err());
        format!("(block {code}) {end}")
    });
    failed.map_or(Ok(()), Err)?;
    Ok(wat::parse_str(text).expect("our own text"))
}

/// A circuit of one to three wires whose functions begin with what `code` gives for a number of locals and the answer that follows.
fn text(code: &mut dyn FnMut(u8, &str) -> String) -> String {
    let mut text = String::from(
        r#"(module
        (import "runtime" "exceptionHandler" (func $exception (param i32)))
        (import "runtime" "printErrorMessage" (func $print))
        (import "runtime" "writeBufferMessage" (func $write))
        (import "runtime" "showSharedRWMemory" (func $show))
        (memory (export "memory") 1 300)
        (table 8 funcref)
        (elem (i32.const 0) $print $write $show $f0 $f1 $f2)
        (global $g (mut i32) (i32.const 0))
        "#,
    );
    for (export, params, answer) in [
        ("getVersion", "", "(i32.const 2)"),
        ("getFieldNumLen32", "", "(i32.const 1)"),
        ("getWitnessSize", "", "(i32.const 3)"),
        ("getInputSize", "", "(i32.const 1)"),
        ("getInputSignalSize", "i32 i32", "(i32.const 1)"),
        ("getMessageChar", "", "(i32.and (global.get $g) (i32.const 127))"),
        ("readSharedRWMemory", "i32", "(i32.load (i32.const 0))"),
    ] {
        let code = code(if params.is_empty() { 0 } else { 1 }, answer);
        // Writing to a string does not fail.
        let _ = writeln!(text, r#"(func (export "{export}") (param {params}) (result i32) (local i32 i32) {code})"#);
    }
    for (head, answer) in [
        (r#"(func (export "getRawPrime") (param i32)"#, "(i32.store (i32.const 0) (i32.const 97))"),
        (r#"(func (export "writeSharedRWMemory") (param i32 i32)"#, ""),
        (r#"(func (export "init") (param i32)"#, ""),
        (r#"(func (export "setInputSignal") (param i32 i32 i32)"#, ""),
        (r#"(func (export "getWitness") (param i32)"#, "(i32.store (i32.const 0) (i32.const 1))"),
        ("(func $f0 (param i32)", ""),
        ("(func $f1", ""),
        ("(func $f2", ""),
    ] {
        let head = head.replace(r#""getRawPrime") (param i32)"#, r#""getRawPrime")"#);
        let code = code(u8::from(head.contains("param")), answer);
        let _ = writeln!(text, "{head} (local i32 i32) {code})");
    }
    text + ")"
}

/// Some statements over the first locals.
fn statements(bytes: &mut Unstructured, code: &mut String, locals: u8, depth: u32) -> Result<()> {
    let most = if depth == 0 { 3 } else { 2 };
    for _ in 0..bytes.int_in_range(0..=most)? {
        let _ = match bytes.int_in_range(0..=17)? {
            0 => write!(code, "(drop (memory.grow {}))", value(bytes, locals)?),
            1 => write!(code, "(call $write)"),
            2 => write!(code, "(call $show)"),
            3 => write!(code, "(call $print)"),
            4 => write!(code, "(call $exception {})", value(bytes, locals)?),
            5 => write!(code, "(call $f0 {})", value(bytes, locals)?),
            6 => write!(code, "(call $f{})", bytes.int_in_range(1..=2)?),
            7 => write!(code, "(call_indirect {})", value(bytes, locals)?),
            8 => write!(code, "(i32.store {} {})", value(bytes, locals)?, value(bytes, locals)?),
            9 => write!(code, "(global.set $g {})", value(bytes, locals)?),
            10 => write!(code, "(local.set {} {})", bytes.int_in_range(0..=locals)?, value(bytes, locals)?),
            11 => write!(code, "(br_if 0 {})", value(bytes, locals)?),
            12 => write!(code, "(drop (i32.div_s {} {}))", value(bytes, locals)?, value(bytes, locals)?),
            13 => write!(code, "(unreachable)"),
            kind if depth < 4 => {
                let open = match kind {
                    14 => "(loop ".to_string(),
                    15 => "(block ".to_string(),
                    16 => format!("(if {} (then ", value(bytes, locals)?),
                    _ => format!("(block (br_table 0 1 0 {}) ", value(bytes, locals)?),
                };
                let _ = write!(code, "{open}");
                statements(bytes, code, locals, depth + 1)?;
                if kind == 14 {
                    let _ = write!(code, "(br_if 0 {})", value(bytes, locals)?);
                }
                write!(code, "{}", if kind == 16 { "))" } else { ")" })
            }
            _ => Ok(()),
        };
    }
    Ok(())
}

fn value(bytes: &mut Unstructured, locals: u8) -> Result<String> {
    Ok(match bytes.int_in_range(0..=7)? {
        0 => format!("(i32.const {})", bytes.arbitrary::<i32>()?),
        1 => format!("(i32.const {})", bytes.arbitrary::<u8>()?),
        2 => "(i32.const -1)".into(),
        3 => "(global.get $g)".into(),
        4 => format!("(local.get {})", bytes.int_in_range(0..=locals)?),
        5 => "(memory.size)".into(),
        6 => "(i32.load (global.get $g))".into(),
        _ => format!("(i32.add (global.get $g) (i32.const {}))", bytes.arbitrary::<i8>()?),
    })
}
