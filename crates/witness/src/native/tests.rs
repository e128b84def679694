//! circom's own code is the measure: each function on every kind of operand, byte by byte.

use super::recognise::{put, put_name, Parts};
use super::{inline, recognise, Field, Function, Import, Native, IMPORT_MODULE};
use crate::machine::{Machine, Mode};
use crate::{Error, Limit, Limits};
use std::collections::HashMap;
use std::ops::Range;
use wasmi::{Engine, Instance, Linker, Memory, Module, Store, TrapCode, Val};
use wasmparser::{BinaryReader, KnownCustom, Name, Parser, Payload};

/// The multiplier, compiled by circom 2.2.3 for both primes.
pub(super) const MODULES: [&[u8]; 2] =
    [include_bytes!("../../tests/data/multiplier.wasm"), include_bytes!("../../tests/data/multiplier_bls12381.wasm")];

/// Numbers of the functions by name, as circom writes them at the module's end.
pub(super) fn names(wasm: &[u8]) -> HashMap<String, u32> {
    let mut found = HashMap::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CustomSection(custom) = payload.unwrap() else { continue };
        let KnownCustom::Name(names) = custom.as_known() else { continue };
        for name in names {
            if let Name::Function(names) = name.unwrap() {
                found.extend(names.into_iter().map(Result::unwrap).map(|name| (name.name.to_string(), name.index)));
            }
        }
    }
    found
}

/// The module with other sections: `change` gives the contents of the section of a number in place of the old.
fn changed(wasm: &[u8], change: impl Fn(u8, &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let parts = Parts::read(wasm).unwrap();
    let mut out = wasm[..8].to_vec();
    for (id, range) in &parts.sections {
        let contents = &wasm[range.clone()];
        let contents = change(*id, contents).unwrap_or_else(|| contents.to_vec());
        out.push(*id);
        put(&mut out, contents.len() as u32);
        out.extend(contents);
    }
    out
}

/// The module with one page of memory that exports all of its functions under their names.
fn open(wasm: &[u8]) -> Vec<u8> {
    let names = names(wasm);
    changed(wasm, |id, _| {
        let mut contents = Vec::new();
        match id {
            5 => contents.extend([1, 0, 1]),
            7 => {
                put(&mut contents, 1 + names.len() as u32);
                put_name(&mut contents, "memory");
                contents.extend([2, 0]);
                for (name, &index) in &names {
                    put_name(&mut contents, name);
                    contents.push(0);
                    put(&mut contents, index);
                }
            }
            _ => return None,
        }
        Some(contents)
    })
}

/// The field functions among a module's imports.
fn functions(native: &Native) -> Vec<Function> {
    let of = |import: &Import| if let Import::Field(function) = import { Some(*function) } else { None };
    native.functions.iter().filter_map(of).collect()
}

/// A module's code, interpreted.
struct Model {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
}

impl Model {
    /// circom's own.
    fn new(wasm: &[u8]) -> Self {
        Self::load(&open(wasm), None)
    }

    /// With code in place of functions, and of the calls in two more.
    fn inlined(wasm: &[u8]) -> Self {
        let (names, parts) = (names(wasm), Parts::read(wasm).unwrap());
        let ty = |name: &str| parts.functions[(names[name] - parts.imports) as usize];
        let mut calls = open(wasm);
        for (name, prologue, epilogue) in [
            ("Fr_toInt", &b"\0\x20\0\x10"[..], &b"\x0b"[..]),
            // A loop that does not go round.
            ("Fr_copy", b"\0\x03\x40\x20\0\x20\x01\x10", b"\x0b\x0b"),
        ] {
            let mut body = prologue.to_vec();
            put(&mut body, names[name]);
            body.extend(epilogue);
            calls = with_function(&calls, &format!("{name} here"), ty(name), &body);
        }
        let native = recognise(&calls).unwrap();
        Self::load(&native.wasm, Some(&native))
    }

    fn load(wasm: &[u8], native: Option<&Native>) -> Self {
        let engine = Engine::default();
        let module = Module::new(&engine, wasm).unwrap();
        let mut linker = Linker::new(&engine);
        linker.func_wrap("runtime", "exceptionHandler", |_: i32| ()).unwrap();
        for name in ["printErrorMessage", "writeBufferMessage", "showSharedRWMemory"] {
            linker.func_wrap("runtime", name, || ()).unwrap();
        }
        for (import, function) in module.imports().skip(4).zip(native.map_or_else(Vec::new, functions)) {
            let (field, ty) = (native.unwrap().field, import.ty().func().unwrap().clone());
            let call = move |mut caller: wasmi::Caller<()>, given: &[Val], results: &mut [Val]| {
                let memory = caller.get_export("memory").and_then(wasmi::Extern::into_memory).unwrap();
                let mut arguments = [0; 3];
                arguments.iter_mut().zip(given).for_each(|(to, from)| *to = from.i32().unwrap() as u32);
                let result = function.run(&field, memory.data_mut(&mut caller), arguments)?;
                results.iter_mut().for_each(|to| *to = Val::I32(result as i32));
                Ok(())
            };
            linker.func_new(IMPORT_MODULE, import.name(), ty, call).unwrap();
        }
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate_and_start(&mut store, &module).unwrap();
        let memory = instance.get_memory(&store, "memory").unwrap();
        Self { store, instance, memory }
    }

    fn run(&mut self, name: &str, arguments: [u32; 3]) -> Result<u32, TrapCode> {
        let called = self.instance.get_func(&self.store, name).unwrap();
        let ty = called.ty(&self.store);
        let arguments: Vec<_> = arguments[..ty.params().len()].iter().map(|&a| Val::I32(a as i32)).collect();
        let mut results = vec![Val::I32(0); ty.results().len()];
        called.call(&mut self.store, &arguments, &mut results).map_err(|e| e.as_trap_code().unwrap())?;
        Ok(results.first().map_or(0, |result| result.i32().unwrap() as u32))
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.memory.data_mut(&mut self.store)
    }
}

/// An element: its number, its flags and its limbs.
type Element = (i32, u32, [u64; 4]);

fn bytes(element: Element) -> Vec<u8> {
    let (short, flags, limbs) = element;
    let mut bytes = short.to_le_bytes().to_vec();
    bytes.extend(flags.to_le_bytes());
    bytes.extend(limbs.map(u64::to_le_bytes).concat());
    bytes
}

/// Random limbs, always the same.
fn random(state: &mut u64) -> [u64; 4] {
    std::array::from_fn(|_| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state ^ *state >> 29
    })
}

/// Operands of every kind, at the edges and between. The last `odd` ones are not below the prime, which circom's never are.
fn elements(field: &Field) -> (Vec<Element>, usize) {
    let junk = [0x1111, 0x2222, 0x3333, 0x4444];
    let mut elements = Vec::new();
    for short in [0, 1, -1, 2, -5, 30, 31, 32, 63, 64, 200, 253, 254, 255, -64, -254, 1 << 30, i32::MAX, i32::MIN] {
        elements.push((short, 0, junk));
        // Short, and its long form at hand too.
        let long =
            if short < 0 { field.neg([u64::from(short.unsigned_abs()), 0, 0, 0]) } else { [short as u64, 0, 0, 0] };
        elements.push((short, 0x4000_0000, field.mul(long, field.r2)));
    }
    let mut state = 1;
    let below = |limbs: [u64; 4]| field.reduced([limbs[0], limbs[1], limbs[2], limbs[3] >> 3], false);
    let mut longs: Vec<[u64; 4]> =
        [0, 1, 2, 31, 64, 253, 254, 255, 1 << 31, (1 << 31) - 1, u64::MAX].map(|low| [low, 0, 0, 0]).to_vec();
    longs.extend(longs.clone().into_iter().map(|long| field.neg(long)));
    longs.extend([field.half(), field.add(field.half(), [1, 0, 0, 0]), [0, 1, 0, 0], field.one]);
    longs.extend((0..3).map(|_| below(random(&mut state))));
    for long in longs {
        elements.extend([(7, 0x8000_0000, long), (-7, 0xc000_0000, long)]);
    }
    let regular = elements.len();
    let (beyond, _) = super::field::add(field.prime, [5, 0, 0, 0]);
    for long in [field.prime, beyond, [u64::MAX; 4]] {
        elements.extend([(7, 0x8000_0000, long), (-7, 0xc000_0000, long)]);
    }
    let odd = elements.len() - regular;
    (elements, odd)
}

/// A function here, the code in its place, and circom's own, on the same memory. Left out is the scratch space of the model's long
/// numbers.
struct Pair {
    model: Model,
    inlined: Model,
    field: Field,
    memory: Vec<u8>,
}

impl Pair {
    fn new(wasm: &[u8]) -> Self {
        let mut model = Model::new(wasm);
        let memory = model.bytes().to_vec();
        Self { model, inlined: Model::inlined(wasm), field: recognise(wasm).unwrap().field, memory }
    }

    fn put(&mut self, at: u32, bytes: &[u8]) {
        let at = at as usize;
        let end = self.memory.len().min(at + bytes.len());
        if at < end {
            for memory in [&mut self.memory, self.model.bytes(), self.inlined.bytes()] {
                memory[at..end].copy_from_slice(&bytes[..end - at]);
            }
        }
    }

    /// Runs all and compares what they return and leave behind.
    fn compare(&mut self, function: Function, arguments: [u32; 3], what: &dyn std::fmt::Debug) {
        let name = function.name();
        let before: Vec<_> = self.used().map(|used| self.memory[used].to_vec()).collect();
        let expected = self.model.run(name, arguments);
        let found = function.run(&self.field, &mut self.memory, arguments);
        assert_eq!(found, expected, "{name} {arguments:?} {what:x?}");
        let what = &format!("{name} {arguments:?} {what:x?}");
        self.same(&expected, 0, &|pair| pair.memory.as_mut_slice(), what);
        if inline::code(function, 0).is_some() {
            self.compare_inlined(name, arguments, &expected, &before, what);
        }
        if function == Function::ToInt {
            self.compare_inlined("Fr_toInt here", arguments, &expected, &before, what);
        }
        self.follow();
    }

    /// `before`: what was there.
    fn compare_inlined(
        &mut self,
        name: &str,
        arguments: [u32; 3],
        expected: &Result<u32, TrapCode>,
        before: &[Vec<u8>],
        what: &str,
    ) {
        for (used, before) in self.used().zip(before) {
            self.inlined.bytes()[used].copy_from_slice(before);
        }
        let found = self.inlined.run(name, arguments);
        assert_eq!(&found, expected, "{name} inlined, {what}");
        // The model negates short numbers in its scratch space.
        self.same(expected, 48, &|pair| pair.inlined.bytes(), &format!("{name} inlined, {what}"));
    }

    /// What was not run in the place of functions has the model's memory too.
    fn follow(&mut self) {
        for used in self.used() {
            let model = self.model.bytes()[used.clone()].to_vec();
            self.inlined.bytes()[used].copy_from_slice(&model);
        }
    }

    /// Where operands and results lie.
    fn used(&self) -> impl Iterator<Item = Range<usize>> {
        let end = self.memory.len();
        [0..6000, end - 300..end].into_iter()
    }

    /// Compares a memory with the model's, from `start` on, and makes it equal for what comes next: scratch space, and what was written
    /// before a trap.
    fn same(
        &mut self,
        expected: &Result<u32, TrapCode>,
        start: usize,
        of: &dyn Fn(&mut Self) -> &mut [u8],
        what: &str,
    ) {
        let end = self.memory.len();
        for watched in [start..160, 608..992, 1920..6000, end - 300..end].into_iter().filter(|_| expected.is_ok()) {
            let model = self.model.bytes()[watched.clone()].to_vec();
            let ours = &of(self)[watched.clone()];
            if ours != model {
                let at = watched.start + ours.iter().zip(&model).position(|(a, b)| a != b).unwrap();
                panic!("{what}: memory differs at {at}");
            }
        }
        for used in self.used() {
            let model = self.model.bytes()[used.clone()].to_vec();
            of(self)[used].copy_from_slice(&model);
        }
    }
}

/// Nothing was written elsewhere.
impl Drop for Pair {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.memory == self.model.bytes());
            assert!(self.memory == self.inlined.bytes());
        }
    }
}

#[test]
fn all_functions_of_circom_are_known() {
    for wasm in MODULES {
        let native = recognise(wasm).unwrap();
        let found = functions(&native);
        let missing: Vec<_> = Function::ALL.iter().filter(|function| !found.contains(function)).collect();
        assert!(missing.is_empty() && found.len() == Function::ALL.len(), "{missing:?}");
        assert!(native.shared.is_some());
    }
}

#[test]
fn every_function_does_what_circoms_code_does() {
    let (r, a, b) = (4000, 4080, 4160);
    for wasm in MODULES {
        let mut pair = Pair::new(wasm);
        let (elements, odd) = elements(&pair.field);
        let fresh = pair.memory.clone();
        for &function in Function::ALL {
            if matches!(function, Function::IntZero | Function::IntCopy | Function::CopyN) {
                continue;
            }
            let is_slow = matches!(function, Function::Inv | Function::Div | Function::Pow);
            // The inverse and the power of what is no element of the field are not circom's.
            let count = elements.len() - if is_slow { odd } else { 0 };
            for i in 0..count {
                for j in 0..count {
                    if is_slow && (i * 5 + j * 3) % 29 != 0 {
                        continue;
                    }
                    // Operands apart, and the same as the result and each other.
                    let places: &[[u32; 3]] = match (i * 7 + j) % 11 {
                        0 => &[[a, a, b], [b, a, b], [r, a, a], [a, a, a], [r, a, b]],
                        _ => &[[r, a, b]],
                    };
                    for arguments in places {
                        // Half of the time on what the calls before left, such as the long form of the shift's limit.
                        if j % 2 == 0 {
                            pair.put(0, &fresh[..160]);
                        }
                        pair.put(r, &[0x55; 40]);
                        pair.put(a, &bytes(elements[i]));
                        pair.put(b, &bytes(elements[j]));
                        let own = if matches!(function, Function::IsTrue | Function::ToInt | Function::ToLongNormal) {
                            [a, 0, 0]
                        } else if function == Function::EqR {
                            [arguments[1], arguments[2], 0]
                        } else {
                            *arguments
                        };
                        pair.compare(function, own, &(elements[i], elements[j]));
                    }
                }
            }
        }
    }
}

#[test]
fn words_are_copied_as_circom_copies_them() {
    let mut pair = Pair::new(MODULES[0]);
    let text: Vec<u8> = (0..240).collect();
    for (r, a) in [(4000, 4400), (4000, 4000), (4000, 4008), (4008, 4000), (4044, 4000), (4400, 4000), (65296, 4000)] {
        for n in [0, 1, 2, 6, 1639, 0x0666_6667, 0x1999_999a, u32::MAX] {
            pair.put(4000, &text);
            pair.put(4400, &text);
            pair.compare(Function::CopyN, [r, a, n], &n);
            if r > 65000 {
                continue;
            }
            pair.compare(Function::IntCopy, [a, r, 0], &n);
            pair.compare(Function::IntZero, [r, 0, 0], &n);
        }
    }
    // A long copy goes further than operands lie, before it traps.
    pair.inlined.bytes().copy_from_slice(&pair.memory);
}

/// In loops, where it is called.
#[test]
fn elements_are_copied_as_circom_copies_them() {
    for wasm in MODULES {
        let mut pair = Pair::new(wasm);
        let end = pair.memory.len() as u32;
        let text: Vec<u8> = (0..240).collect();
        for (r, a) in
            [(4000, 4400), (4000, 4000), (4000, 4008), (4008, 4000), (4400, 4039), (end - 40, 4000), (end - 39, 4000)]
        {
            pair.put(4000, &text);
            pair.put(4400, &text);
            let before: Vec<_> = pair.used().map(|used| pair.memory[used].to_vec()).collect();
            let expected = pair.model.run("Fr_copy", [r, a, 0]);
            assert_eq!(expected.is_ok(), r != end - 39);
            pair.compare_inlined("Fr_copy here", [r, a, 0], &expected, &before, &format!("{r} {a}"));
            pair.memory = pair.model.bytes().to_vec();
        }
    }
}

/// Each operand at the memory's end and beyond: who reaches out of it traps, and no other.
#[test]
fn pointers_end_where_the_memory_ends() {
    for wasm in MODULES {
        let mut pair = Pair::new(wasm);
        let (elements, _) = elements(&pair.field);
        let end = pair.memory.len() as u32;
        let mut edges: Vec<u32> = (end - 41..=end).collect();
        edges.extend([u32::MAX, u32::MAX - 7, u32::MAX - 8, u32::MAX - 39, 1 << 31]);
        for &function in Function::ALL.iter().filter(|&&f| f != Function::CopyN) {
            for &edge in &edges {
                for place in 0..3 {
                    for i in [0, 4, 38, 39, 60, 61] {
                        let mut arguments = [4000, 4080, 4160];
                        arguments[place] = edge;
                        for at in arguments {
                            pair.put(at, &bytes(elements[i]));
                        }
                        pair.compare(function, arguments, &elements[i]);
                    }
                }
            }
        }
    }
}

/// A change of any byte of a function, or of one that it calls, is another function.
#[test]
fn other_code_stays_interpreted() {
    for wasm in MODULES {
        let (names, parts) = (names(wasm), Parts::read(wasm).unwrap());
        let known = |wasm: &[u8]| recognise(wasm).map_or_else(Vec::new, |native| functions(&native));
        for (own, users) in [
            ("Fr_add", &[Function::Add][..]),
            ("Fr_F1m_add", &[Function::Add]),
            ("Fr_int_gte", &[Function::Add, Function::Mul, Function::Div, Function::Shl, Function::Band]),
            ("Fr_F1m_mul", &[Function::Mul, Function::Add, Function::Div, Function::Pow]),
            ("Fr_rawCopyS2L", &[Function::Mul, Function::Neg, Function::Idiv, Function::ToLongNormal]),
            ("Fr_isTrue", &[Function::IsTrue, Function::Land, Function::Lor, Function::Lnot]),
        ] {
            let range = parts.bodies[(names[own] - parts.imports) as usize].range();
            for at in range.clone().step_by(range.len() / 40 + 1).chain([range.end - 2]) {
                for bit in [0, 3, 6] {
                    let mut other = wasm.to_vec();
                    other[at] ^= 1 << bit;
                    let known = known(&other);
                    assert!(users.iter().all(|user| !known.contains(user)), "{own}, byte {at}");
                }
            }
        }
        // Names play no part.
        let unnamed = changed(wasm, |id, _| (id == 0).then(|| b"\x01x".to_vec()));
        assert_eq!(known(&unnamed).len(), Function::ALL.len());
    }
}

#[test]
fn other_constants_stay_interpreted() {
    for wasm in MODULES {
        let field = recognise(wasm).unwrap().field;
        let limbs = [field.prime, field.r2, field.r3, field.one, field.half()];
        let mut places = vec![u64::from(field.bits).to_le_bytes().to_vec()];
        places.extend(limbs.map(|limbs| limbs.map(u64::to_le_bytes).concat()));
        let mut changes = 0;
        for constant in places {
            let starts = (0..wasm.len() - constant.len()).filter(|&at| wasm[at..].starts_with(&constant));
            // Some constants stand in the module twice; what counts is where the functions read.
            let mut refused = 0;
            for start in starts.collect::<Vec<_>>() {
                let is_read = (0..constant.len()).all(|i| {
                    let mut other = wasm.to_vec();
                    other[start + i] ^= 1;
                    recognise(&other).is_none()
                });
                refused += usize::from(is_read);
            }
            assert_eq!(refused, 1, "{constant:x?}");
            changes += 1;
        }
        assert_eq!(changes, 6);
    }
}

/// The module with one more function, which nothing else calls.
fn with_function(wasm: &[u8], name: &str, ty: u32, body: &[u8]) -> Vec<u8> {
    let parts = Parts::read(wasm).unwrap();
    changed(wasm, |id, contents| {
        let mut item = Vec::new();
        match id {
            3 => put(&mut item, ty),
            7 => {
                put_name(&mut item, name);
                item.push(0);
                put(&mut item, parts.imports + parts.functions.len() as u32);
            }
            10 => {
                put(&mut item, body.len() as u32);
                item.extend(body);
            }
            _ => return None,
        }
        let mut reader = BinaryReader::new(contents, 0);
        let mut out = Vec::new();
        put(&mut out, reader.read_var_u32().unwrap() + 1);
        out.extend(&contents[reader.original_position()..]);
        out.extend(item);
        Some(out)
    })
}

/// The module with one more function, exported as `extra`: `count` times `call`, whose code follows.
fn looping(wasm: &[u8], count: u32, call: &[u8]) -> Vec<u8> {
    let parts = Parts::read(wasm).unwrap();
    let ty = parts.types.iter().position(|ty| ty.params().is_empty() && ty.results().len() == 1).unwrap();
    // Two locals: what is left to do, and a sum of results.
    let mut body = b"\x01\x02\x7f\x41".to_vec();
    let mut number = count as i32;
    loop {
        let (low, rest) = (number as u8 & 0x7f, number >> 7);
        if rest == 0 && low & 0x40 == 0 {
            body.push(low);
            break;
        }
        body.push(low | 0x80);
        number = rest;
    }
    body.extend(b"\x21\0\x03\x40");
    body.extend(call);
    body.extend(b"\x20\x01\x6a\x21\x01\x20\0\x41\x01\x6b\x22\0\x0d\0\x0b\x20\x01\x0b");
    with_function(wasm, "extra", ty as u32, &body)
}

/// The module with a function of `locals` locals that calls `Fr_toInt` `count` times.
fn calling(wasm: &[u8], name: &str, locals: u32, count: usize) -> Vec<u8> {
    let (names, parts) = (names(wasm), Parts::read(wasm).unwrap());
    let mut body = vec![1];
    put(&mut body, locals);
    body.extend(b"\x7f\x20\0");
    let mut call = vec![0x10];
    put(&mut call, names["Fr_toInt"]);
    (0..count).for_each(|_| body.extend(&call));
    body.push(0x0b);
    with_function(wasm, name, parts.functions[(names["Fr_toInt"] - parts.imports) as usize], &body)
}

/// What is put in place of calls neither blows a module up nor makes it one that is refused.
#[test]
fn hostile_modules_stay_small_and_valid() {
    let wasm = MODULES[0];
    let rest = recognise(wasm).unwrap().wasm.len();
    let few = |count| recognise(&calling(wasm, "few", 1, count)).unwrap().wasm.len();
    assert!(few(101) - few(100) > 10, "calls are replaced where there are few");
    let module = calling(wasm, "many", 1, 100_000);
    let size = recognise(&module).unwrap().wasm.len();
    assert!(size < 2 * module.len() + rest, "{size} of {}", module.len());
    // Long, and with as many locals as there may be.
    for module in [module, calling(wasm, "wide", 49_999, 1000)] {
        let loaded = Machine::load(&module, Mode::Native, Limits::default(), &|| false).map(drop);
        assert!(loaded.is_ok(), "{loaded:?}");
    }
}

/// Steps are paid for what the host does, also where a slice ends on the way, and results come back then.
#[test]
fn native_calls_cost_steps() {
    let caller = || false;
    for wasm in MODULES {
        let names = names(wasm);
        for (function, arguments) in [(Function::EqR, 2), (Function::ToInt, 1), (Function::Pow, 3), (Function::Mul, 3)]
        {
            let mut call = Vec::new();
            // Elements of zeros at 4000 and further on.
            (0..arguments).for_each(|i| call.extend([0x41, 0xa0 + 0x28 * (i & 1), 0x1f]));
            call.push(0x10);
            put(&mut call, names[function.name()]);
            if !function.has_result() {
                call.extend(b"\x41\x01");
            }
            let count = if function == Function::Pow { 100 } else { 3000 };
            let module = looping(wasm, count, &call);
            let run = |mode, steps| {
                let limits = Limits { steps, memory_bytes: 1 << 30, time: None };
                Machine::load(&module, mode, limits, &caller)?.call::<(), i32>("extra", ())
            };
            let own = run(Mode::Own, u64::MAX).unwrap();
            assert_eq!(run(Mode::Native, u64::MAX).unwrap(), own, "{}", function.name());
            let is_wrapped = inline::code(function, 0).is_some();
            let paid = if is_wrapped { 0 } else { u64::from(count) * function.steps([0; 3]) };
            let ended = run(Mode::Native, paid.max(1000) - 1);
            assert!(matches!(ended, Err(Error::Limit(Limit::Steps, _))), "{}: {ended:?}", function.name());
            assert_eq!(run(Mode::Native, paid + u64::from(count) * 60).unwrap(), own);
        }
        // A long copy is paid by its length.
        let least = Function::CopyN.steps([0, 0, 1]);
        assert!(Function::CopyN.steps([0, 0, 100_000]) > least + 200_000);
    }
}

/// What is added is told from a module's own imports by its place.
#[test]
fn a_module_cannot_import_field_functions() {
    let own = "(module (import \"tandem\" \"0\" (func (param i32))) (memory (export \"memory\") 1))";
    let module = wat::parse_str(own).unwrap();
    let ended = Machine::load(&module, Mode::Native, Limits::default(), &|| false).map(drop);
    assert!(ended.unwrap_err().to_string().contains("it imports tandem.0"));
    let renamed = |name: &[u8]| {
        let at = MODULES[0].windows(7).position(|bytes| bytes == b"runtime").unwrap();
        let mut wasm = MODULES[0].to_vec();
        wasm[at..at + 7].copy_from_slice(name);
        wasm
    };
    let ended = Machine::load(&renamed(b"tandem0"), Mode::Native, Limits::default(), &|| false).map(drop);
    assert!(ended.unwrap_err().to_string().contains("it imports tandem0."));
}
