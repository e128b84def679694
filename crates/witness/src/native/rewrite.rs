//! Writes a module again with what takes the place of its functions: imports, other code, or code where they are called.

use super::inline;
use super::recognise::{put, put_name, Parts, Piece, CALL, IMPORT_MODULE, IMPORT_SECTION};
use wasmparser::{BinaryReader, ElementItems, ElementKind, ElementSectionReader, ExportSectionReader, ExternalKind};

const TYPE_SECTION: u8 = 1;
const FUNCTION_SECTION: u8 = 3;
const EXPORT_SECTION: u8 = 7;
const ELEMENT_SECTION: u8 = 9;
const CODE_SECTION: u8 = 10;

/// What takes a function's place.
#[derive(Clone)]
pub(super) enum Place {
    /// Nothing.
    Own,
    /// The import of this number is called.
    Import(u32),
    /// It gets this code.
    Code(Vec<u8>),
    /// `Fr_toInt`: it gets this code, and the commonest case is done where it is called.
    ToInt(Vec<u8>),
    /// `Fr_copy`: in loops it is done where it is called.
    Copy,
}

pub(super) struct Rewriter<'a> {
    parts: &'a Parts<'a>,
    /// Types of the added imports.
    added: Vec<u32>,
    /// For each function of the module's own.
    places: Vec<Place>,
    /// Bytes by which all bodies together may still grow where calls are replaced: as many as the module has, so that a hostile one is
    /// not blown up.
    room: usize,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(parts: &'a Parts, added: Vec<u32>, places: Vec<Place>) -> Self {
        Self { parts, added, places, room: parts.wasm.len() }
    }

    /// The whole module. Custom sections are left out.
    pub(super) fn module(mut self) -> Option<Vec<u8>> {
        let code = self.code()?;
        self.assemble(&[], &[], &code)
    }

    /// The module with this code, further types, and further functions of these types.
    pub(super) fn assemble(&self, types: &[&[u8]], functions: &[u32], code: &[u8]) -> Option<Vec<u8>> {
        let functions: Vec<Vec<u8>> = functions.iter().map(|&ty| number(ty)).collect();
        let functions: Vec<&[u8]> = functions.iter().map(Vec::as_slice).collect();
        let parts = self.parts;
        let mut out = parts.wasm.get(..8)?.to_vec();
        for (id, range) in &parts.sections {
            let contents = parts.wasm.get(range.clone())?;
            let section = match *id {
                0 => continue,
                IMPORT_SECTION => self.imports(contents)?,
                EXPORT_SECTION => self.exports(contents)?,
                ELEMENT_SECTION => self.elements(contents)?,
                TYPE_SECTION => with_more(contents, types)?,
                FUNCTION_SECTION => with_more(contents, &functions)?,
                CODE_SECTION => code.to_vec(),
                _ => contents.to_vec(),
            };
            out.push(*id);
            put(&mut out, u32::try_from(section.len()).ok()?);
            out.extend(section);
        }
        Some(out)
    }

    /// The number of a function's own code.
    pub(super) fn moved(&self, index: u32) -> u32 {
        if index < self.parts.imports {
            index
        } else {
            index.saturating_add(self.added.len() as u32)
        }
    }

    fn imports(&self, contents: &[u8]) -> Option<Vec<u8>> {
        let mut section = Vec::new();
        let mut reader = BinaryReader::new(contents, 0);
        let count = reader.read_var_u32().ok()?;
        put(&mut section, count.checked_add(self.added.len() as u32)?);
        section.extend(contents.get(reader.original_position()..)?);
        for (i, &ty) in self.added.iter().enumerate() {
            put_name(&mut section, IMPORT_MODULE);
            put_name(&mut section, &i.to_string());
            section.push(0);
            put(&mut section, ty);
        }
        Some(section)
    }

    fn exports(&self, contents: &[u8]) -> Option<Vec<u8>> {
        let mut section = Vec::new();
        let reader = ExportSectionReader::new(BinaryReader::new(contents, 0)).ok()?;
        put(&mut section, reader.count());
        for export in reader {
            let export = export.ok()?;
            put_name(&mut section, export.name);
            let (kind, index) = match export.kind {
                ExternalKind::Func => (0, self.moved(export.index)),
                ExternalKind::Table => (1, export.index),
                ExternalKind::Memory => (2, export.index),
                ExternalKind::Global => (3, export.index),
                ExternalKind::Tag => return None,
            };
            section.push(kind);
            put(&mut section, index);
        }
        Some(section)
    }

    fn elements(&self, contents: &[u8]) -> Option<Vec<u8>> {
        let mut section = Vec::new();
        let reader = ElementSectionReader::new(BinaryReader::new(contents, 0)).ok()?;
        put(&mut section, reader.count());
        for element in reader {
            let element = element.ok()?;
            let ElementKind::Active { table_index: None, offset_expr } = element.kind else { return None };
            let ElementItems::Functions(functions) = element.items else { return None };
            section.push(0);
            section.extend(contents.get(offset_expr.get_binary_reader().range())?);
            put(&mut section, functions.count());
            for function in functions {
                put(&mut section, self.moved(function.ok()?));
            }
        }
        Some(section)
    }

    fn code(&mut self) -> Option<Vec<u8>> {
        let mut section = Vec::new();
        put(&mut section, self.places.len() as u32);
        for index in 0..self.places.len() {
            if let Place::Code(code) | Place::ToInt(code) = &self.places[index] {
                put(&mut section, code.len() as u32);
                section.extend(code);
                continue;
            }
            let body = self.body(index)?;
            put(&mut section, u32::try_from(body.len()).ok()?);
            section.extend(body);
        }
        Some(section)
    }

    fn body(&mut self, index: usize) -> Option<Vec<u8>> {
        let parts = self.parts;
        let spare = parts.spare_locals(index);
        let (mut locals, mut code) = (Vec::new(), Vec::new());
        let mut is_spare_used = false;
        parts.walk(index, |piece| {
            match piece {
                Piece::Locals(bytes) => locals.extend(bytes),
                Piece::Bytes(bytes) => code.extend(bytes),
                Piece::Call(callee, is_in_loop) => {
                    match spare.and_then(|spare| self.inlined(callee, is_in_loop, spare)) {
                        Some(inlined) => {
                            is_spare_used = true;
                            code.extend(inlined);
                        }
                        None => {
                            code.push(CALL);
                            put(&mut code, self.called(callee));
                        }
                    }
                }
            }
            Some(())
        })?;
        if is_spare_used {
            locals = with_spare_locals(&locals)?;
        }
        locals.extend(code);
        Some(locals)
    }

    fn place(&self, callee: u32) -> Option<&Place> {
        self.places.get(callee.checked_sub(self.parts.imports)? as usize)
    }

    /// The number of what is called in a function's place.
    fn called(&self, callee: u32) -> u32 {
        match self.place(callee) {
            Some(Place::Import(import)) => *import,
            _ => self.moved(callee),
        }
    }

    /// The code that does what a call does, with two locals of its own from number `spare` on.
    fn inlined(&mut self, callee: u32, is_in_loop: bool, spare: u32) -> Option<Vec<u8>> {
        let code = match self.place(callee)? {
            Place::ToInt(_) => inline::to_int_here(spare, self.moved(callee)),
            Place::Copy if is_in_loop => inline::copy_here(spare),
            _ => return None,
        };
        self.room = self.room.checked_sub(code.len())?;
        Some(code)
    }
}

impl Parts<'_> {
    /// The number that the first of further locals of a function has; `None` where there are so many that none is added.
    fn spare_locals(&self, index: usize) -> Option<u32> {
        const MOST: usize = 10_000;
        let ty = self.types.get(*self.functions.get(index)? as usize)?;
        let mut count = ty.params().len();
        for group in self.bodies[index].get_locals_reader().ok()? {
            count = count.checked_add(group.ok()?.0 as usize).filter(|&count| count < MOST)?;
        }
        Some(count as u32)
    }
}

/// A function's list of locals with two more of 32 bits.
fn with_spare_locals(locals: &[u8]) -> Option<Vec<u8>> {
    with_more(locals, &[&[2, inline::I32]])
}

/// A number in LEB128.
fn number(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, number);
    out
}

/// A list behind its length, with more items.
fn with_more(list: &[u8], items: &[&[u8]]) -> Option<Vec<u8>> {
    let mut reader = BinaryReader::new(list, 0);
    let count = reader.read_var_u32().ok()?;
    let mut out = Vec::new();
    put(&mut out, count.checked_add(u32::try_from(items.len()).ok()?)?);
    out.extend(list.get(reader.original_position()..)?);
    out.extend(items.concat());
    Some(out)
}
