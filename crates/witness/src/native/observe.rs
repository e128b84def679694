//! A module of circom's that tells the host of every access to its memory, so that its run can be recorded.
//!
//! It does what the module does. Field functions and `Fr_copy` are imports wherever they are called. Before each load the host is told
//! the address; each store is done by the host; a load with the store of what it loaded right behind it is one *move*, done by the host.
//! So whatever reaches the module's own locals, stack and globals has been told.
//!
//! One idiom is known as a whole: `setInputSignal` stores an input short where that fits, and branches on whether it does. The value
//! is the same either way.
//!
//! An `if` on `Fr_isTrue` whose ways do no more than calculate is written so that the host may have both run:
//!
//! ```text
//! if Fr_isTrue(x) { A } else { B }   ──►   if Fork(x) { A }  if Turn() { B }  Join()
//! ```
//!
//! A function of the circuit's is called so that the host may have it called again. It takes two numbers and returns one; all else is in the
//! memory:
//!
//! ```text
//! f(a, b)   ──►   Enter()  do { r = f(a, b) } while Leave(r)  r
//! ```
//!
//! An entry of an array of variables is copied so that the host knows of its indices:
//!
//! ```text
//! Fr_copy(to, variables + 40 (size * Fr_toInt(x) + ... + start))
//!   ──►   Select(to, variables + 40 (Scale(size, Index(x)) + ... + start), end)
//! ```

use super::recognise::{put, Import, Native, Parts, CALL};
use super::rewrite::{Place, Rewriter};
use super::Function;
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{MemArg, Operator, ValType};

/// What the host is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    /// `(address, offset, bytes) -> address`: it will be read.
    Load,
    /// `(address, value, offset, bytes)`: store an `i32`, or its lowest bytes.
    Store32,
    /// The same of an `i64`.
    Store64,
    /// `(to, from, offset of from, offset of to, bytes)`.
    Move,
    /// `Fr_copy(to, from)`.
    Copy,
    /// `(to, from)`: the idiom of `setInputSignal`.
    Assign,
    /// `Fr_isTrue` of what is asserted.
    Assert,
    /// `Fr_isTrue` of what chooses between two ways: whether the first is to be run.
    Fork,
    /// Between them: whether the second is to be run.
    Turn,
    /// Behind them.
    Join,
    /// `Fr_isTrue` of what a loop repeats for.
    Repeats,
    /// A function of the circuit's is called.
    Enter,
    /// It has returned this: whether it is to be called again.
    Leave,
    /// `Fr_toInt` of what is a part of an index.
    Index,
    /// `(a, b, indices of a, indices of b)`: a product with indices.
    Scale,
    /// `(to, from, end)`: `Fr_copy` of the entry that indices have led to. Its array ends before `end`.
    Select,
}

impl Hook {
    const ALL: [Self; 16] = [
        Self::Load,
        Self::Store32,
        Self::Store64,
        Self::Move,
        Self::Copy,
        Self::Assign,
        Self::Assert,
        Self::Fork,
        Self::Turn,
        Self::Join,
        Self::Repeats,
        Self::Enter,
        Self::Leave,
        Self::Index,
        Self::Scale,
        Self::Select,
    ];
}

/// The types of the hooks, in order: parameters and results.
const TYPES: [&[u8]; 16] = [
    b"\x60\x03\x7f\x7f\x7f\x01\x7f",
    b"\x60\x04\x7f\x7f\x7f\x7f\0",
    b"\x60\x04\x7f\x7e\x7f\x7f\0",
    b"\x60\x05\x7f\x7f\x7f\x7f\x7f\0",
    b"\x60\x02\x7f\x7f\0",
    b"\x60\x02\x7f\x7f\0",
    b"\x60\x01\x7f\x01\x7f",
    b"\x60\x01\x7f\x01\x7f",
    b"\x60\0\x01\x7f",
    b"\x60\0\0",
    b"\x60\x01\x7f\x01\x7f",
    b"\x60\0\0",
    b"\x60\x01\x7f\x01\x7f",
    b"\x60\x01\x7f\x01\x7f",
    b"\x60\x04\x7f\x7f\x7f\x7f\x01\x7f",
    b"\x60\x03\x7f\x7f\x7f\0",
];

/// `None` where it is no module of circom's, or has not the parts that a recording needs. Whether functions may be called again is said by
/// `explores`.
pub(crate) fn observe(wasm: &[u8], explores: bool) -> Option<Native> {
    let parts = Parts::read(wasm)?;
    let shared = parts.shared()?;
    if !parts.writes_at(shared)? {
        return None;
    }
    let (field, found) = parts.field_functions()?;
    let mut functions: Vec<Import> = Vec::new();
    let mut types = Vec::new();
    for (index, function) in found.iter().enumerate() {
        if let Some(function) = function.map(Import::Field).filter(|function| !functions.contains(function)) {
            functions.push(function);
            types.push(parts.functions[index]);
        }
    }
    let hooks = functions.len();
    functions.extend(Hook::ALL.map(Import::Hook));
    types.extend((0..TYPES.len()).map(|i| (parts.types.len() + i) as u32));
    let place = |import: Import| {
        let index = functions.iter().position(|&other| other == import)?;
        Some(parts.imports + index as u32)
    };
    let mut calls = Vec::new();
    for (index, function) in found.iter().enumerate() {
        calls.push(match function {
            Some(function) => place(Import::Field(*function)),
            None if parts.is_copy(index) => place(Import::Hook(Hook::Copy)),
            None => None,
        });
    }
    let rewriter = Rewriter::new(&parts, types, vec![Place::Own; found.len()]);
    let known = Known { parts: &parts, found: &found, shared: shared.checked_sub(8)? as i32 };
    let repeated: Vec<usize> = (0..found.len()).filter(|&index| explores && known.is_repeatable(index)).collect();
    for (i, &index) in repeated.iter().enumerate() {
        calls[index] = Some(rewriter.moved(parts.imports + (found.len() + i) as u32));
    }
    let mut observer =
        Observer { known, rewriter: &rewriter, calls, hooks: parts.imports + hooks as u32, assigns: 0, sets: false };
    let mut code = Vec::new();
    put(&mut code, (parts.bodies.len() + repeated.len()) as u32);
    for index in 0..parts.bodies.len() {
        let body = observer.body(index)?;
        put(&mut code, u32::try_from(body.len()).ok()?);
        code.extend(body);
    }
    // Without it, inputs would be guarded.
    if observer.assigns != 1 {
        return None;
    }
    for &index in &repeated {
        let body = observer.repeated(rewriter.moved(parts.imports + index as u32));
        put(&mut code, body.len() as u32);
        code.extend(body);
    }
    let repeated: Vec<u32> = repeated.iter().map(|&index| parts.functions[index]).collect();
    let wasm = rewriter.assemble(&TYPES, &repeated, &code)?;
    Some(Native { wasm, field, imports: parts.imports as usize, functions, shared: Some(shared), wires: None })
}

/// What is known of a module.
struct Known<'a> {
    parts: &'a Parts<'a>,
    found: &'a [Option<Function>],
    /// The address of the shared element.
    shared: i32,
}

struct Observer<'a> {
    known: Known<'a>,
    rewriter: &'a Rewriter<'a>,
    /// For each function the import that is called in its place.
    calls: Vec<Option<u32>>,
    /// The number of the first hook.
    hooks: u32,
    /// How often the idiom was found.
    assigns: usize,
    /// Whether a global is set: a call would not begin again with all that it began with.
    sets: bool,
}

impl Observer<'_> {
    fn body(&mut self, index: usize) -> Option<Vec<u8>> {
        let body = self.known.parts.bodies.get(index)?;
        let (start, bytes) = (body.range().start, body.as_bytes());
        let mut reader = body.get_operators_reader().ok()?;
        let mut out = bytes.get(..reader.original_position() - start)?.to_vec();
        let mut operators: Vec<(Operator, Range<usize>)> = Vec::new();
        while !reader.eof() {
            let (operator, at) = reader.read_with_offset().ok()?;
            operators.push((operator, at - start..reader.original_position() - start));
        }
        let mut i = 0;
        let mut ways: Option<Ways> = None;
        let variables = variables(&operators);
        let mut lookup: Option<Lookup> = None;
        while i < operators.len() {
            let (operator, range) = &operators[i];
            if let Some(Ways { other, end }) = ways.filter(|ways| [ways.other, ways.end].contains(&i)) {
                out.push(END);
                if i == other {
                    self.hook(&mut out, Hook::Turn);
                    out.extend(IF);
                }
                if i == end {
                    if other == end {
                        out.push(END);
                    }
                    self.hook(&mut out, Hook::Join);
                    ways = None;
                }
                i += 1;
                continue;
            }
            if let Some(Assignment { to, integer, length }) = self.known.assignment(&operators, i) {
                // The local that is left out is set all the same, so that a module where it has another type is as invalid as it was.
                number(&mut out, 0);
                out.push(0x21);
                put(&mut out, integer);
                out.push(0x20);
                put(&mut out, to);
                number(&mut out, self.known.shared);
                self.hook(&mut out, Hook::Assign);
                self.assigns += 1;
                i += length;
                continue;
            }
            match access(operator) {
                Some(Access::Load(from, width)) => match operators.get(i + 1).map(|(next, _)| access(next)) {
                    Some(Some(Access::Store(to, hook, stored))) if moved(operator) == Some(hook) && stored == width => {
                        number(&mut out, from as i32);
                        number(&mut out, to as i32);
                        number(&mut out, width);
                        self.hook(&mut out, Hook::Move);
                        i += 1;
                    }
                    _ => {
                        number(&mut out, from as i32);
                        number(&mut out, width);
                        self.hook(&mut out, Hook::Load);
                        out.extend(bytes.get(range.clone())?);
                    }
                },
                Some(Access::Store(to, hook, width)) => {
                    number(&mut out, to as i32);
                    number(&mut out, width);
                    self.hook(&mut out, hook);
                }
                None => match operator {
                    Operator::Call { function_index } if self.known.asserts(*function_index, &operators[i..]) => {
                        self.hook(&mut out, Hook::Assert);
                    }
                    Operator::Call { function_index } if self.known.repeats(*function_index, &operators[i..]) => {
                        self.hook(&mut out, Hook::Repeats);
                    }
                    Operator::Call { function_index } if self.known.is(*function_index, Function::IsTrue) => {
                        match self.known.ways(&operators, i + 1) {
                            Some(found) => {
                                self.hook(&mut out, Hook::Fork);
                                ways = Some(found);
                            }
                            None => self.call(&mut out, *function_index),
                        }
                    }
                    Operator::Call { function_index } if self.known.is(*function_index, Function::ToInt) => {
                        lookup = lookup.or_else(|| self.known.lookup(&operators, i, variables.as_ref()?));
                        match &lookup {
                            Some(_) => self.hook(&mut out, Hook::Index),
                            None => self.call(&mut out, *function_index),
                        }
                    }
                    Operator::I32Mul if lookup.as_ref().is_some_and(|lookup| lookup.products.contains_key(&i)) => {
                        let indices = lookup.as_ref().and_then(|lookup| lookup.products.get(&i)).into_iter().flatten();
                        indices.for_each(|&indices| number(&mut out, indices));
                        self.hook(&mut out, Hook::Scale);
                    }
                    Operator::Call { function_index } => match lookup.take_if(|lookup| lookup.copy == i) {
                        Some(Lookup { variables: Variables { local, bytes }, .. }) => {
                            out.push(0x20);
                            put(&mut out, local);
                            number(&mut out, bytes);
                            out.push(0x6a);
                            self.hook(&mut out, Hook::Select);
                        }
                        None => self.call(&mut out, *function_index),
                    },
                    Operator::RefFunc { .. } | Operator::ReturnCall { .. } => return None,
                    other => {
                        self.sets |= matches!(other, Operator::GlobalSet { .. });
                        out.extend(bytes.get(range.clone())?);
                    }
                },
            }
            i += 1;
        }
        Some(out)
    }

    /// The body of what is called in a function's place.
    fn repeated(&self, function: u32) -> Vec<u8> {
        // A local for what it returns.
        let mut out = vec![1, 1, 0x7f];
        if !self.sets {
            self.hook(&mut out, Hook::Enter);
        }
        out.extend(b"\x03\x40\x20\0\x20\x01\x10");
        put(&mut out, function);
        out.extend(b"\x22\x02");
        match self.sets {
            true => out.extend(b"\x1a"),
            false => {
                self.hook(&mut out, Hook::Leave);
                out.extend(b"\x0d\0");
            }
        }
        out.extend(b"\x0b\x20\x02\x0b");
        out
    }

    fn call(&self, out: &mut Vec<u8>, callee: u32) {
        let own = callee.checked_sub(self.known.parts.imports).and_then(|own| *self.calls.get(own as usize)?);
        out.push(CALL);
        put(out, own.unwrap_or_else(|| self.rewriter.moved(callee)));
    }

    fn hook(&self, out: &mut Vec<u8>, hook: Hook) {
        out.push(CALL);
        let place = Hook::ALL.iter().position(|&other| other == hook).unwrap_or(0);
        put(out, self.hooks + place as u32);
    }
}

impl Known<'_> {
    fn is(&self, callee: u32, function: Function) -> bool {
        let own = callee.checked_sub(self.parts.imports).and_then(|own| *self.found.get(own as usize)?);
        own == Some(function)
    }

    /// Whether a function of the module's own is such as circom makes of a circuit's.
    fn is_repeatable(&self, index: usize) -> bool {
        let ty = self.parts.functions.get(index).and_then(|&ty| self.parts.types.get(ty as usize));
        let is_its =
            |ty: &wasmparser::FuncType| (ty.params(), ty.results()) == (&[ValType::I32; 2][..], &[ValType::I32][..]);
        self.found.get(index) == Some(&None) && ty.is_some_and(is_its)
    }

    /// Whether `Fr_isTrue` is called on what a loop repeats for.
    ///
    /// ```text
    /// block { loop { ...; if !Fr_isTrue(x) { leave the block } ...
    /// ```
    fn repeats(&self, callee: u32, all: &[(Operator, Range<usize>)]) -> bool {
        let part: Vec<&Operator> = all.iter().take(3).map(|(operator, _)| operator).collect();
        self.is(callee, Function::IsTrue)
            && matches!(part[..], [_, Operator::I32Eqz, Operator::BrIf { relative_depth: 1 }])
    }

    fn is_copy(&self, callee: u32) -> bool {
        callee.checked_sub(self.parts.imports).is_some_and(|own| self.parts.is_copy(own as usize))
    }

    /// The idiom from operator `i` on.
    ///
    /// ```text
    /// vint = Fr_toInt(shared); short(to, vint)
    /// if Fr_eqR(to, shared) { short(to, vint) } else { Fr_copy(to, shared) }
    /// ```
    fn assignment(&self, all: &[(Operator, Range<usize>)], i: usize) -> Option<Assignment> {
        use Operator::{Else, End, I32Const, If, LocalGet, LocalSet};
        const LENGTH: usize = 28;
        let part: Vec<&Operator> = all.get(i..i + LENGTH)?.iter().map(|(operator, _)| operator).collect();
        let LocalGet { local_index: to } = *part[0] else { return None };
        let is_to = |operator: &Operator| matches!(operator, LocalGet { local_index } if *local_index == to);
        let is_shared = |operator: &Operator| matches!(operator, I32Const { value } if *value == self.shared);
        let is_call = |operator: &Operator, function| matches!(operator, Operator::Call { function_index } if self.is(*function_index, function));
        if !(is_shared(part[1]) && is_call(part[2], Function::ToInt)) {
            return None;
        }
        let LocalSet { local_index: integer } = *part[3] else { return None };
        // to, vint, store; to, 0, store offset=4; to + 8, Fr_int_zero
        let is_short = |part: &[&Operator]| {
            let stores = |operator: &Operator, offset| matches!(operator, Operator::I32Store { memarg } if memarg.offset == offset && memarg.align <= memarg.max_align);
            matches!(part[0], LocalGet { local_index } if *local_index == integer)
                && stores(part[1], 0)
                && is_to(part[2])
                && matches!(part[3], I32Const { value: 0 })
                && stores(part[4], 4)
                && is_to(part[5])
                && matches!(part[6], I32Const { value: 8 })
                && matches!(part[7], Operator::I32Add)
                && is_call(part[8], Function::IntZero)
        };
        let uses = all.iter().filter(|(operator, _)| {
            matches!(operator, LocalGet { local_index } | LocalSet { local_index } | Operator::LocalTee { local_index }
                if *local_index == integer)
        });
        let is_it = to != integer
            && uses.count() == 3
            && is_short(&part[4..13])
            && is_to(part[13])
            && is_shared(part[14])
            && is_call(part[15], Function::EqR)
            && matches!(part[16], If { blockty: wasmparser::BlockType::Empty })
            && is_to(part[17])
            && is_short(&part[18..27])
            && matches!(part[27], Else);
        let rest: Vec<&Operator> = all.get(i + LENGTH..i + LENGTH + 4)?.iter().map(|(operator, _)| operator).collect();
        let is_rest = is_to(rest[0])
            && is_shared(rest[1])
            && matches!(rest[2], Operator::Call { function_index } if self.is_copy(*function_index))
            && matches!(rest[3], End);
        (is_it && is_rest).then_some(Assignment { to, integer, length: LENGTH + 4 })
    }

    /// The entry of an array that is copied, from its first index, an operator that calls `Fr_toInt`, on. Nothing but its address is
    /// calculated in between.
    ///
    /// ```text
    /// [to, size, x,] Fr_toInt, mul, [size, y, Fr_toInt, z, Fr_toInt, add, mul, add,] ... start, add, 40, mul, variables, add, Fr_copy
    /// ```
    fn lookup(&self, all: &[(Operator, Range<usize>)], i: usize, variables: &Variables) -> Option<Lookup> {
        use Operator::{Call, I32Add, I32Const, I32Mul, LocalGet};
        // What is on the stack, by the indices that are parts of it.
        let (mut stack, mut products) = (vec![0, 1], HashMap::new());
        for (at, (operator, _)) in all.iter().enumerate().skip(i + 1).take(LOOKUP_OPERATORS_MAX) {
            if stack.len() == 1 && self.copies_variable(&all[at..], variables) {
                return Some(Lookup { products, copy: at + 4, variables: *variables });
            }
            match operator {
                LocalGet { .. } | I32Const { .. } => stack.push(0),
                I32Add | I32Mul => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    if a + b > 0 && matches!(operator, I32Mul) {
                        products.insert(at, [a, b]);
                    }
                    stack.push(a + b);
                }
                Call { function_index } if self.is(*function_index, Function::ToInt) => {
                    stack.pop().filter(|&indices| indices == 0)?;
                    stack.push(1);
                }
                // An index may be calculated.
                Call { function_index } => {
                    for _ in 0..self.operands(*function_index)? {
                        stack.pop().filter(|&indices| indices == 0)?;
                    }
                }
                _ => return None,
            }
        }
        None
    }

    /// The end of it: `40, mul, variables, add, Fr_copy`.
    fn copies_variable(&self, all: &[(Operator, Range<usize>)], variables: &Variables) -> bool {
        use Operator::{Call, I32Add, I32Const, I32Mul, LocalGet};
        let part: Vec<&Operator> = all.iter().take(5).map(|(operator, _)| operator).collect();
        matches!(part[..], [I32Const { value: 40 }, I32Mul, LocalGet { local_index }, I32Add, Call { function_index }]
            if *local_index == variables.local && self.is_copy(*function_index))
    }

    /// How many elements a field function that calculates takes.
    fn operands(&self, callee: u32) -> Option<usize> {
        let own = callee.checked_sub(self.parts.imports)? as usize;
        let ty = self.parts.types.get(*self.parts.functions.get(own)? as usize)?;
        self.found.get(own)?.filter(|function| function.calculates()).map(|_| ty.params().len())
    }

    /// The two ways of an `if` at operator `i`, where they only calculate.
    fn ways(&self, all: &[(Operator, Range<usize>)], i: usize) -> Option<Ways> {
        if !matches!(all.get(i)?.0, Operator::If { blockty: wasmparser::BlockType::Empty }) {
            return None;
        }
        let behind =
            |from: usize| Some(from + all.get(from..)?.iter().position(|(operator, _)| !self.calculates(operator))?);
        let other = behind(i + 1)?;
        let end = match all.get(other)?.0 {
            Operator::Else => behind(other + 1)?,
            _ => other,
        };
        matches!(all.get(end)?.0, Operator::End).then_some(Ways { other, end })
    }

    /// Whether an operator changes nothing but elements, by field functions.
    fn calculates(&self, operator: &Operator) -> bool {
        use Operator::{Call, I32Add, I32Const, I32Load, I32Mul, I32Sub, LocalGet};
        match operator {
            LocalGet { .. } | I32Const { .. } | I32Add | I32Sub | I32Mul | I32Load { .. } => true,
            Call { function_index } => {
                let own = function_index.checked_sub(self.parts.imports).map(|own| own as usize);
                own.is_some_and(|own| match self.found.get(own) {
                    Some(Some(function)) => function.calculates() || *function == Function::ToInt,
                    _ => self.parts.is_copy(own),
                })
            }
            _ => false,
        }
    }

    /// Whether `Fr_isTrue` is called on what is asserted: where it is not true, an import of the module's is called, and each of them
    /// ends a recording. So no recording says how this went.
    ///
    /// ```text
    /// if !Fr_isTrue(x) { buildBufferMessage(_, _); printErrorMessage(); ...
    /// ```
    fn asserts(&self, callee: u32, all: &[(Operator, Range<usize>)]) -> bool {
        use Operator::{Call, I32Const, I32Eqz, If};
        let part: Vec<&Operator> = all.iter().take(7).map(|(operator, _)| operator).collect();
        self.is(callee, Function::IsTrue)
            && matches!(part[..], [Call { .. }, I32Eqz, If { blockty: wasmparser::BlockType::Empty }, I32Const { .. },
                I32Const { .. }, Call { .. }, Call { function_index }] if *function_index < self.parts.imports)
    }
}

/// The idiom by which an input is stored: locals with the address and with the number, and how many operators it has.
struct Assignment {
    to: u32,
    integer: u32,
    length: usize,
}

/// Operators from an entry's first index to its copy.
const LOOKUP_OPERATORS_MAX: usize = 128;

/// An entry of an array that is copied.
struct Lookup {
    /// Operators that multiply, with how many indices are parts of their operands.
    products: HashMap<usize, [i32; 2]>,
    /// The operator that copies.
    copy: usize,
    variables: Variables,
}

/// Where a function's variables lie: the local with their address, and how many bytes they take.
#[derive(Clone, Copy)]
struct Variables {
    local: u32,
    bytes: i32,
}

/// Where a function begins as circom's do.
///
/// ```text
/// lvar = load(0); expaux = lvar + bytes
/// ```
fn variables(all: &[(Operator, Range<usize>)]) -> Option<Variables> {
    use Operator::{I32Add, I32Const, I32Load, LocalGet, LocalSet};
    let first: Vec<&Operator> = all.get(..7)?.iter().map(|(operator, _)| operator).collect();
    match first[..] {
        [I32Const { value: 0 }, I32Load { .. }, LocalSet { local_index: local }, LocalGet { local_index }, I32Const { value: bytes }, I32Add, LocalSet { .. }]
            if local_index == local =>
        {
            Some(Variables { local: *local, bytes: *bytes })
        }
        _ => None,
    }
}

/// The operators that end the two ways of an `if`: its `else` and its `end`, or twice its `end`.
#[derive(Clone, Copy)]
struct Ways {
    other: usize,
    end: usize,
}

/// `if` without a result, and `end`.
const IF: [u8; 2] = [0x04, 0x40];
const END: u8 = 0x0b;

/// An access to the memory: its offset and how many bytes.
enum Access {
    Load(u32, i32),
    Store(u32, Hook, i32),
}

/// The store of what a load gives, where that are the bytes as they are.
fn moved(operator: &Operator) -> Option<Hook> {
    match operator {
        Operator::I32Load { .. } => Some(Hook::Store32),
        Operator::I64Load { .. } => Some(Hook::Store64),
        _ => None,
    }
}

fn access(operator: &Operator) -> Option<Access> {
    use Operator::*;
    // One that is aligned too far stays as it is: the module is invalid.
    let offset = |memarg: &MemArg| u32::try_from(memarg.offset).ok().filter(|_| memarg.align <= memarg.max_align);
    let load = |memarg: &MemArg, width| Some(Access::Load(offset(memarg)?, width));
    let store = |memarg: &MemArg, hook, width| Some(Access::Store(offset(memarg)?, hook, width));
    match operator {
        I32Load8S { memarg } | I32Load8U { memarg } | I64Load8S { memarg } | I64Load8U { memarg } => load(memarg, 1),
        I32Load16S { memarg } | I32Load16U { memarg } | I64Load16S { memarg } | I64Load16U { memarg } => {
            load(memarg, 2)
        }
        I32Load { memarg } | I64Load32S { memarg } | I64Load32U { memarg } => load(memarg, 4),
        I64Load { memarg } => load(memarg, 8),
        I32Store8 { memarg } => store(memarg, Hook::Store32, 1),
        I32Store16 { memarg } => store(memarg, Hook::Store32, 2),
        I32Store { memarg } => store(memarg, Hook::Store32, 4),
        I64Store8 { memarg } => store(memarg, Hook::Store64, 1),
        I64Store16 { memarg } => store(memarg, Hook::Store64, 2),
        I64Store32 { memarg } => store(memarg, Hook::Store64, 4),
        I64Store { memarg } => store(memarg, Hook::Store64, 8),
        _ => None,
    }
}

/// `i32.const`.
fn number(out: &mut Vec<u8>, number: i32) {
    out.push(0x41);
    let mut rest = number;
    // Signed LEB128.
    loop {
        let (low, more) = (rest as u8 & 0x7f, rest >> 7);
        let is_last = more == -i32::from(low >> 6 & 1);
        out.push(if is_last { low } else { low | 0x80 });
        if is_last {
            return;
        }
        rest = more;
    }
}
