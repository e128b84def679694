//! Finds circom's field functions in a module, and has them called as imports.
//!
//! A function is recognised by a hash of all of its code: its type, its locals, its operators, and the code of each function that it
//! calls, in place of that function's number. Names play no part. The constants that this code reads in the memory must be those of
//! the prime that the code belongs to.
//!
//! The module that comes out has the recognised functions as further imports. They keep their code, for exports and tables may name
//! them. All other code is as it was but for the numbers of functions.

use super::rewrite::{Place, Rewriter};
use super::templates::TEMPLATES;
use super::{inline, Field, Function, Hook};
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{
    Data, DataKind, Encoding, ExternalKind, FuncType, FunctionBody, Operator, Parser, Payload, TypeRef, ValType,
};

/// Bytes of the longest function that can be one of circom's.
const BODY_BYTES_MAX: usize = 1 << 13;

/// How deep circom's functions call each other, with some to spare.
const DEPTH_MAX: usize = 12;

/// Bytes of memory in which circom keeps the prime's constants.
const CONSTANTS_END: usize = 1952;

/// The module of the added imports. Only their place tells them from a module's own.
pub(crate) const IMPORT_MODULE: &str = "tandem";

pub(super) const IMPORT_SECTION: u8 = 2;
pub(super) const CALL: u8 = 0x10;

/// What an added import does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Import {
    Field(Function),
    Hook(Hook),
}

/// A module whose field functions are imports.
pub(crate) struct Native {
    pub(crate) wasm: Vec<u8>,
    pub(crate) field: Field,
    /// How many imports there are before the added ones.
    pub(crate) imports: usize,
    /// The added imports, in order.
    pub(crate) functions: Vec<Import>,
    /// Where the limbs lie that `readSharedRWMemory` reads.
    pub(crate) shared: Option<u32>,
    /// Where `getWitness` finds a wire.
    pub(crate) wires: Option<Wires>,
}

/// Where wires lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wires {
    /// The address of the number of each wire's signal.
    pub(crate) numbers: u32,
    /// The address of the signals.
    pub(crate) signals: u32,
    /// The address of the element to which a signal is copied.
    pub(crate) shared: u32,
}

/// `None` where nothing is recognised, or the module has parts that circom's have not. Whether it is valid is not seen here: what
/// comes out is as valid as what went in.
pub(crate) fn recognise(wasm: &[u8]) -> Option<Native> {
    let parts = Parts::read(wasm)?;
    let (field, found) = parts.field_functions()?;
    let wires = parts.wires(&found);
    let mut functions: Vec<Function> = Vec::new();
    let mut types = Vec::new();
    let mut places = vec![Place::Own; found.len()];
    for (index, function) in found.into_iter().enumerate() {
        let Some(function) = function else {
            if parts.is_copy(index) {
                places[index] = Place::Copy;
            }
            continue;
        };
        let place = functions.iter().position(|&f| f == function).unwrap_or_else(|| {
            functions.push(function);
            types.push(parts.functions[index]);
            functions.len() - 1
        });
        let import = parts.imports + place as u32;
        places[index] = match inline::code(function, import) {
            Some(code) if function == Function::ToInt => Place::ToInt(code),
            Some(code) => Place::Code(code),
            None => Place::Import(import),
        };
    }
    if functions.is_empty() {
        return None;
    }
    let wasm = Rewriter::new(&parts, types, places).module()?;
    let functions = functions.into_iter().map(Import::Field).collect();
    Some(Native { wasm, field, imports: parts.imports as usize, functions, shared: parts.shared(), wires })
}

/// Whether the memory begins with what circom's code for this prime reads there.
fn has_constants(field: &Field, memory: &[u8]) -> bool {
    let limbs =
        [(608, field.prime), (672, field.r2), (704, field.r3), (736, field.one), (768, [0; 4]), (1920, field.half())];
    memory[88..96] == u64::from(field.bits).to_le_bytes()
        && limbs.iter().all(|&(at, limbs)| memory[at..at + 32] == limbs.map(u64::to_le_bytes).concat())
}

/// The parts of a module that matter here.
pub(crate) struct Parts<'a> {
    pub(super) wasm: &'a [u8],
    /// Numbers and contents of the sections.
    pub(crate) sections: Vec<(u8, Range<usize>)>,
    pub(crate) types: Vec<FuncType>,
    /// How many functions are imports.
    pub(crate) imports: u32,
    /// Types of the other functions.
    pub(crate) functions: Vec<u32>,
    pub(crate) bodies: Vec<FunctionBody<'a>>,
    /// The number of `readSharedRWMemory`.
    read_shared: Option<u32>,
    write_shared: Option<u32>,
    get_witness: Option<u32>,
    /// The memory's first bytes, as they are when the module begins.
    constants: Vec<u8>,
    /// It exports one.
    has_memory: bool,
}

impl<'a> Parts<'a> {
    pub(crate) fn read(wasm: &'a [u8]) -> Option<Self> {
        let mut parts = Self {
            wasm,
            sections: Vec::new(),
            types: Vec::new(),
            imports: 0,
            functions: Vec::new(),
            bodies: Vec::new(),
            read_shared: None,
            write_shared: None,
            get_witness: None,
            constants: vec![0; CONSTANTS_END],
            has_memory: false,
        };
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload.ok()?;
            if let Some((id, range)) = payload.as_section() {
                // A second one of a kind is an error that wasmi reports.
                if id != 0 && parts.sections.iter().any(|(other, _)| *other == id) {
                    return None;
                }
                parts.sections.push((id, range));
            }
            parts.take(payload)?;
        }
        let has_imports = parts.sections.iter().any(|(id, _)| *id == IMPORT_SECTION);
        (parts.has_memory && has_imports && parts.bodies.len() == parts.functions.len()).then_some(parts)
    }

    fn take(&mut self, payload: Payload<'a>) -> Option<()> {
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => {}
            Payload::TypeSection(types) => {
                for ty in types.into_iter_err_on_gc_types() {
                    self.types.push(ty.ok()?);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports {
                    let TypeRef::Func(_) = import.ok()?.ty else { return None };
                    self.imports += 1;
                }
            }
            Payload::FunctionSection(functions) => {
                for ty in functions {
                    self.functions.push(ty.ok()?);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export.ok()?;
                    self.has_memory |= export.kind == ExternalKind::Memory;
                    match export.name {
                        "readSharedRWMemory" if export.kind == ExternalKind::Func => {
                            self.read_shared = Some(export.index)
                        }
                        "writeSharedRWMemory" if export.kind == ExternalKind::Func => {
                            self.write_shared = Some(export.index);
                        }
                        "getWitness" if export.kind == ExternalKind::Func => self.get_witness = Some(export.index),
                        _ => {}
                    }
                }
            }
            Payload::DataSection(data) => {
                for data in data {
                    self.take_data(&data.ok()?)?;
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::TableSection(_)
            | Payload::MemorySection(_)
            | Payload::GlobalSection(_)
            | Payload::ElementSection(_)
            | Payload::CodeSectionStart { .. }
            | Payload::CustomSection(_)
            | Payload::End(_) => {}
            _ => return None,
        }
        Some(())
    }

    /// What of it lies where the constants are.
    fn take_data(&mut self, data: &Data) -> Option<()> {
        let DataKind::Active { memory_index: 0, offset_expr } = &data.kind else { return None };
        let Operator::I32Const { value } = offset_expr.get_operators_reader().read().ok()? else { return None };
        for (to, from) in self.constants.iter_mut().skip(value as u32 as usize).zip(data.data) {
            *to = *from;
        }
        Some(())
    }

    /// The field of a module of circom's, and which of its functions are which of the field's.
    pub(crate) fn field_functions(&self) -> Option<(Field, Vec<Option<Function>>)> {
        let (field, templates) = TEMPLATES.iter().find_map(|(prime, templates)| {
            let field = Field::new(*prime);
            has_constants(&field, &self.constants).then_some((field, templates))
        })?;
        let known: HashMap<_, _> = templates.iter().map(|&(function, hash)| (hash, function)).collect();
        let of = |hash: &Option<blake3::Hash>| known.get(hash.as_ref()?.to_hex().as_str()).copied();
        Some((field, self.hashes().iter().map(of).collect()))
    }

    /// The address from which `readSharedRWMemory` reads, if it does no more than that.
    pub(super) fn shared(&self) -> Option<u32> {
        use Operator::{End, I32Add, I32Const, I32Load, I32Mul, LocalGet};
        let body = self.bodies.get(self.read_shared?.checked_sub(self.imports)? as usize)?;
        let operators: Result<Vec<_>, _> = body.get_operators_reader().ok()?.into_iter().take(8).collect();
        match operators.ok()?[..] {
            [I32Const { value }, LocalGet { local_index: 0 }, I32Const { value: 4 }, I32Mul, I32Add, I32Load { memarg }, End]
                if memarg.offset == 0 =>
            {
                Some(value as u32)
            }
            _ => None,
        }
    }

    /// Where `getWitness` finds a wire, if it does no more than copy it to where `readSharedRWMemory` reads, as a long number.
    fn wires(&self, found: &[Option<Function>]) -> Option<Wires> {
        use Operator::{Call, End, I32Add, I32Const, I32Load, I32Mul, I32Shl, LocalGet, LocalSet};
        let body = self.bodies.get(self.get_witness?.checked_sub(self.imports)? as usize)?;
        let operators: Result<Vec<_>, _> = body.get_operators_reader().ok()?.into_iter().take(18).collect();
        let own =
            |callee: u32| callee.checked_sub(self.imports).map(|own| own as usize).filter(|&own| own < found.len());
        let is_copy = |callee| own(callee).is_some_and(|own| self.is_copy(own));
        let is_to_normal = |callee| own(callee).is_some_and(|own| found[own] == Some(Function::ToLongNormal));
        match operators.ok()?[..] {
            [I32Const { value: numbers }, LocalGet { local_index: 0 }, I32Const { value: 2 }, I32Shl, I32Add, I32Load { memarg }, I32Const { value: 40 }, I32Mul, I32Const { value: signals }, I32Add, LocalSet { local_index: 1 }, I32Const { value: shared }, LocalGet { local_index: 1 }, Call { function_index: copy }, I32Const { value: again }, Call { function_index: to_normal }, End]
                if memarg.offset == 0
                    && shared == again
                    && is_copy(copy)
                    && is_to_normal(to_normal)
                    && self.shared() == Some(shared.wrapping_add(8) as u32) =>
            {
                Some(Wires { numbers: numbers as u32, signals: signals as u32, shared: shared as u32 })
            }
            _ => None,
        }
    }

    /// Whether `writeSharedRWMemory` writes one limb at this address, and does no more than that.
    pub(super) fn writes_at(&self, shared: u32) -> Option<bool> {
        use Operator::{End, I32Add, I32Const, I32Mul, I32Store, LocalGet};
        let body = self.bodies.get(self.write_shared?.checked_sub(self.imports)? as usize)?;
        let operators: Result<Vec<_>, _> = body.get_operators_reader().ok()?.into_iter().take(9).collect();
        Some(matches!(operators.ok()?[..],
            [I32Const { value }, LocalGet { local_index: 0 }, I32Const { value: 4 }, I32Mul, I32Add, LocalGet { local_index: 1 },
                I32Store { memarg }, End]
                if memarg.offset == 0 && value as u32 == shared))
    }

    /// Whether a function is circom's `Fr_copy`.
    pub(crate) fn is_copy(&self, index: usize) -> bool {
        let ty = self.types.get(self.functions[index] as usize);
        ty.is_some_and(|ty| ty.params() == [ValType::I32; 2] && ty.results().is_empty())
            && self.bodies[index].as_bytes() == inline::COPY
    }

    /// For each function the hash of all of its code, where it is short and calls only such.
    pub(super) fn hashes(&self) -> Vec<Option<blake3::Hash>> {
        let mut hashes = vec![None; self.bodies.len()];
        let mut waiting: Vec<_> = (0..self.bodies.len()).filter_map(|i| Some((i, self.callees(i)?))).collect();
        for _ in 0..DEPTH_MAX {
            let before = waiting.len();
            waiting.retain(|(index, callees)| {
                let is_ready = callees.iter().all(|&callee| hashes[callee].is_some());
                if is_ready {
                    hashes[*index] = self.hash(*index, &hashes);
                }
                !is_ready
            });
            if waiting.len() == before {
                break;
            }
        }
        hashes
    }

    /// The functions of its own that a function calls; `None` if it cannot be circom's.
    fn callees(&self, index: usize) -> Option<Vec<usize>> {
        let body = &self.bodies[index];
        if body.as_bytes().len() > BODY_BYTES_MAX {
            return None;
        }
        let mut callees = Vec::new();
        for operator in body.get_operators_reader().ok()? {
            if let Operator::Call { function_index } = operator.ok()? {
                let callee = function_index.checked_sub(self.imports)? as usize;
                if callee >= self.bodies.len() {
                    return None;
                }
                callees.push(callee);
            }
        }
        Some(callees)
    }

    fn hash(&self, index: usize, hashes: &[Option<blake3::Hash>]) -> Option<blake3::Hash> {
        let ty = self.types.get(self.functions[index] as usize)?;
        let mut hasher = blake3::Hasher::new();
        for types in [ty.params(), ty.results()] {
            hasher.update(&[types.len() as u8]);
            for ty in types {
                hasher.update(&[match ty {
                    ValType::I32 => 0x7f,
                    ValType::I64 => 0x7e,
                    _ => return None,
                }]);
            }
        }
        self.walk(index, |piece| {
            match piece {
                Piece::Locals(bytes) | Piece::Bytes(bytes) => hasher.update(bytes),
                Piece::Call(callee, _) => {
                    let callee = callee.checked_sub(self.imports)?;
                    hasher.update(&[CALL]).update(hashes.get(callee as usize)?.as_ref()?.as_bytes())
                }
            };
            Some(())
        })?;
        Some(hasher.finalize())
    }

    /// A function's code in order, its calls apart.
    pub(super) fn walk(&self, index: usize, mut each: impl FnMut(Piece) -> Option<()>) -> Option<()> {
        let body = &self.bodies[index];
        let (start, bytes) = (body.range().start, body.as_bytes());
        let mut operators = body.get_operators_reader().ok()?;
        let mut done = operators.original_position() - start;
        each(Piece::Locals(bytes.get(..done)?))?;
        // Whether each block that is open is a loop, or in one.
        let mut blocks = vec![false];
        while !operators.eof() {
            let (operator, at) = operators.read_with_offset().ok()?;
            let is_in_loop = blocks.last().copied()?;
            match operator {
                Operator::Loop { .. } => blocks.push(true),
                Operator::Block { .. } | Operator::If { .. } => blocks.push(is_in_loop),
                Operator::End if blocks.len() > 1 => drop(blocks.pop()),
                Operator::Call { function_index } => {
                    each(Piece::Bytes(bytes.get(done..at - start)?))?;
                    each(Piece::Call(function_index, is_in_loop))?;
                    done = operators.original_position() - start;
                }
                Operator::RefFunc { .. } | Operator::ReturnCall { .. } => return None,
                _ => {}
            }
        }
        each(Piece::Bytes(bytes.get(done..)?))
    }
}

pub(super) enum Piece<'a> {
    /// What comes before the first operator.
    Locals(&'a [u8]),
    Bytes(&'a [u8]),
    /// Of a function, by its number, and whether that is in a loop.
    Call(u32, bool),
}

/// Appends a number in LEB128.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn put_name(out: &mut Vec<u8>, name: &str) {
    put(out, name.len() as u32);
    out.extend(name.as_bytes());
}
