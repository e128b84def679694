//! Finds circom's field functions in a module, and has them called as imports.
//!
//! A function is recognised by a hash of all of its code: its type, its locals, its operators, and the code of each function that it
//! calls, in place of that function's number. Names play no part. The constants that this code reads in the memory must be those of
//! the prime that the code belongs to.
//!
//! The module that comes out has the recognised functions as further imports. They keep their code, for exports and tables may name
//! them. All other code is as it was but for the numbers of functions.

use super::templates::TEMPLATES;
use super::{Field, Function};
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{
    BinaryReader, DataKind, ElementItems, ElementKind, Encoding, ExternalKind, FuncType, FunctionBody, Operator,
    Parser, Payload, TypeRef, ValType,
};

/// Bytes of the longest function that can be one of circom's.
const BODY_BYTES_MAX: usize = 1 << 13;

/// How deep circom's functions call each other, with some to spare.
const DEPTH_MAX: usize = 12;

/// Bytes of memory in which circom keeps the prime's constants.
const CONSTANTS_END: usize = 1952;

/// The module of the added imports. Only their place tells them from a module's own.
pub(crate) const IMPORT_MODULE: &str = "tandem";

const IMPORT_SECTION: u8 = 2;
const EXPORT_SECTION: u8 = 7;
const ELEMENT_SECTION: u8 = 9;
const CODE_SECTION: u8 = 10;

const CALL: u8 = 0x10;

/// A module whose field functions are imports.
pub(crate) struct Native {
    pub(crate) wasm: Vec<u8>,
    pub(crate) field: Field,
    /// How many imports there are before the added ones.
    pub(crate) imports: usize,
    /// The added imports, in order.
    pub(crate) functions: Vec<Function>,
    /// Where the limbs lie that `readSharedRWMemory` reads.
    pub(crate) shared: Option<u32>,
}

/// `None` where nothing is recognised, or the module has parts that circom's have not. Whether it is valid is not seen here: what
/// comes out is as valid as what went in.
pub(crate) fn recognise(wasm: &[u8]) -> Option<Native> {
    let parts = Parts::read(wasm)?;
    let hashes = parts.hashes();
    let (field, templates) = TEMPLATES.iter().find_map(|(prime, templates)| {
        let field = Field::new(*prime);
        has_constants(&field, &parts.constants).then_some((field, templates))
    })?;
    let known: HashMap<_, _> = templates.iter().map(|&(function, hash)| (hash, function)).collect();
    let mut functions: Vec<Function> = Vec::new();
    let mut types = Vec::new();
    let mut targets = vec![None; hashes.len()];
    let mut wrapped = vec![None; hashes.len()];
    for (index, hash) in hashes.iter().enumerate() {
        let function = hash.and_then(|hash| known.get(hash.to_hex().as_str()).copied());
        let Some(function) = function else { continue };
        let place = functions.iter().position(|&f| f == function).unwrap_or_else(|| {
            functions.push(function);
            types.push(parts.functions[index]);
            functions.len() - 1
        });
        let target = parts.imports + place as u32;
        match super::inline::code(function, target) {
            Some(body) => wrapped[index] = Some(body),
            None => targets[index] = Some(target),
        }
    }
    if functions.is_empty() {
        return None;
    }
    let wasm = parts.rewrite(&Numbers { imports: parts.imports, added: types, targets, wrapped })?;
    Some(Native { wasm, field, imports: parts.imports as usize, functions, shared: parts.shared() })
}

/// Whether the memory begins with what circom's code for this prime reads there.
fn has_constants(field: &Field, memory: &[u8]) -> bool {
    let limbs =
        [(608, field.prime), (672, field.r2), (704, field.r3), (736, field.one), (768, [0; 4]), (1920, field.half())];
    memory[88..96] == u64::from(field.bits).to_le_bytes()
        && limbs.iter().all(|&(at, limbs)| memory[at..at + 32] == limbs.map(u64::to_le_bytes).concat())
}

/// What becomes of the functions' numbers.
struct Numbers {
    pub(super) imports: u32,
    /// Types of the added imports.
    added: Vec<u32>,
    /// For each function of the module's own, the import that is called in its place.
    targets: Vec<Option<u32>>,
    /// Or other code, which does what is short and calls the import for the rest.
    wrapped: Vec<Option<Vec<u8>>>,
}

impl Numbers {
    /// Of a function's own code.
    fn moved(&self, index: u32) -> u32 {
        if index < self.imports {
            index
        } else {
            index.saturating_add(self.added.len() as u32)
        }
    }

    /// Of what is called in its place.
    fn called(&self, index: u32) -> u32 {
        let own = index.checked_sub(self.imports).and_then(|own| self.targets.get(own as usize).copied().flatten());
        own.unwrap_or_else(|| self.moved(index))
    }
}

/// The parts of a module that matter here.
pub(super) struct Parts<'a> {
    wasm: &'a [u8],
    /// Numbers and contents of the sections.
    pub(super) sections: Vec<(u8, Range<usize>)>,
    pub(super) types: Vec<FuncType>,
    /// How many functions are imports.
    pub(super) imports: u32,
    /// Types of the other functions.
    pub(super) functions: Vec<u32>,
    pub(super) bodies: Vec<FunctionBody<'a>>,
    /// The number of `readSharedRWMemory`.
    read_shared: Option<u32>,
    /// The memory's first bytes, as they are when the module begins.
    constants: Vec<u8>,
}

impl<'a> Parts<'a> {
    pub(super) fn read(wasm: &'a [u8]) -> Option<Self> {
        let mut parts = Self {
            wasm,
            sections: Vec::new(),
            types: Vec::new(),
            imports: 0,
            functions: Vec::new(),
            bodies: Vec::new(),
            read_shared: None,
            constants: vec![0; CONSTANTS_END],
        };
        let mut has_memory = false;
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload.ok()?;
            if let Some((id, range)) = payload.as_section() {
                // A second one of a kind is an error that wasmi reports.
                if id != 0 && parts.sections.iter().any(|(other, _)| *other == id) {
                    return None;
                }
                parts.sections.push((id, range));
            }
            match payload {
                Payload::Version { encoding: Encoding::Module, .. } => {}
                Payload::TypeSection(types) => {
                    for ty in types.into_iter_err_on_gc_types() {
                        parts.types.push(ty.ok()?);
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports {
                        let TypeRef::Func(_) = import.ok()?.ty else { return None };
                        parts.imports += 1;
                    }
                }
                Payload::FunctionSection(functions) => {
                    for ty in functions {
                        parts.functions.push(ty.ok()?);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export.ok()?;
                        has_memory |= export.kind == ExternalKind::Memory;
                        if export.kind == ExternalKind::Func && export.name == "readSharedRWMemory" {
                            parts.read_shared = Some(export.index);
                        }
                    }
                }
                Payload::DataSection(data) => {
                    for data in data {
                        let data = data.ok()?;
                        let DataKind::Active { memory_index: 0, offset_expr } = data.kind else { return None };
                        let mut offset = offset_expr.get_operators_reader();
                        let Operator::I32Const { value } = offset.read().ok()? else { return None };
                        let start = value as u32 as usize;
                        for (to, from) in parts.constants.iter_mut().skip(start).zip(data.data) {
                            *to = *from;
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => parts.bodies.push(body),
                Payload::TableSection(_)
                | Payload::MemorySection(_)
                | Payload::GlobalSection(_)
                | Payload::ElementSection(_)
                | Payload::CodeSectionStart { .. }
                | Payload::CustomSection(_)
                | Payload::End(_) => {}
                _ => return None,
            }
        }
        let has_imports = parts.sections.iter().any(|(id, _)| *id == IMPORT_SECTION);
        (has_memory && has_imports && parts.bodies.len() == parts.functions.len()).then_some(parts)
    }

    /// The address from which `readSharedRWMemory` reads, if it does no more than that.
    fn shared(&self) -> Option<u32> {
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
                Piece::Bytes(bytes) => hasher.update(bytes),
                Piece::Call(callee) => {
                    let callee = callee.checked_sub(self.imports)?;
                    hasher.update(&[CALL]).update(hashes.get(callee as usize)?.as_ref()?.as_bytes())
                }
            };
            Some(())
        })?;
        Some(hasher.finalize())
    }

    /// A function's code in order, its calls apart.
    fn walk(&self, index: usize, mut each: impl FnMut(Piece) -> Option<()>) -> Option<()> {
        let body = &self.bodies[index];
        let (start, bytes) = (body.range().start, body.as_bytes());
        let mut operators = body.get_operators_reader().ok()?;
        let mut done = 0;
        while !operators.eof() {
            let (operator, at) = operators.read_with_offset().ok()?;
            match operator {
                Operator::Call { function_index } => {
                    each(Piece::Bytes(bytes.get(done..at - start)?))?;
                    each(Piece::Call(function_index))?;
                    done = operators.original_position() - start;
                }
                Operator::RefFunc { .. } | Operator::ReturnCall { .. } => return None,
                _ => {}
            }
        }
        each(Piece::Bytes(bytes.get(done..)?))
    }

    /// The module with other numbers of functions.
    fn rewrite(&self, numbers: &Numbers) -> Option<Vec<u8>> {
        let mut out = self.wasm.get(..8)?.to_vec();
        let mut section = Vec::new();
        for (id, range) in &self.sections {
            let contents = self.wasm.get(range.clone())?;
            section.clear();
            match *id {
                0 => continue,
                IMPORT_SECTION => {
                    let mut reader = BinaryReader::new(contents, 0);
                    let count = reader.read_var_u32().ok()?;
                    put(&mut section, count.checked_add(numbers.added.len() as u32)?);
                    section.extend(contents.get(reader.original_position()..)?);
                    for (i, &ty) in numbers.added.iter().enumerate() {
                        put_name(&mut section, IMPORT_MODULE);
                        put_name(&mut section, &i.to_string());
                        section.push(0);
                        put(&mut section, ty);
                    }
                }
                EXPORT_SECTION => {
                    let reader = wasmparser::ExportSectionReader::new(BinaryReader::new(contents, 0)).ok()?;
                    put(&mut section, reader.count());
                    for export in reader {
                        let export = export.ok()?;
                        put_name(&mut section, export.name);
                        let (kind, index) = match export.kind {
                            ExternalKind::Func => (0, numbers.moved(export.index)),
                            ExternalKind::Table => (1, export.index),
                            ExternalKind::Memory => (2, export.index),
                            ExternalKind::Global => (3, export.index),
                            ExternalKind::Tag => return None,
                        };
                        section.push(kind);
                        put(&mut section, index);
                    }
                }
                ELEMENT_SECTION => {
                    let reader = wasmparser::ElementSectionReader::new(BinaryReader::new(contents, 0)).ok()?;
                    put(&mut section, reader.count());
                    for element in reader {
                        let element = element.ok()?;
                        let ElementKind::Active { table_index: None, offset_expr } = element.kind else { return None };
                        let ElementItems::Functions(functions) = element.items else { return None };
                        section.push(0);
                        let offset = offset_expr.get_binary_reader();
                        section.extend(contents.get(offset.range())?);
                        put(&mut section, functions.count());
                        for function in functions {
                            put(&mut section, numbers.moved(function.ok()?));
                        }
                    }
                }
                CODE_SECTION => {
                    put(&mut section, self.bodies.len() as u32);
                    let mut body = Vec::new();
                    for index in 0..self.bodies.len() {
                        body.clear();
                        if let Some(other) = &numbers.wrapped[index] {
                            put(&mut section, other.len() as u32);
                            section.extend(other);
                            continue;
                        }
                        self.walk(index, |piece| {
                            match piece {
                                Piece::Bytes(bytes) => body.extend(bytes),
                                Piece::Call(callee) => {
                                    body.push(CALL);
                                    put(&mut body, numbers.called(callee));
                                }
                            }
                            Some(())
                        })?;
                        put(&mut section, u32::try_from(body.len()).ok()?);
                        section.extend(&body);
                    }
                }
                _ => section.extend(contents),
            }
            out.push(*id);
            put(&mut out, u32::try_from(section.len()).ok()?);
            out.extend(&section);
        }
        Some(out)
    }
}

enum Piece<'a> {
    Bytes(&'a [u8]),
    Call(u32),
}

/// Appends a number in LEB128.
pub(super) fn put(out: &mut Vec<u8>, mut number: u32) {
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
