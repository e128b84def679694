//! Small files made by hand, and damage done to good ones.
#![allow(dead_code)] // each test program uses its own part

/// r of BN254, little-endian.
pub(crate) const BN254_R: [u8; 32] = [
    0x01, 0x00, 0x00, 0xf0, 0x93, 0xf5, 0xe1, 0x43, 0x91, 0x70, 0xb9, 0x79, 0x48, 0xe8, 0x33, 0x28, 0x5d, 0x58, 0x81,
    0x81, 0xb6, 0x45, 0x50, 0xb8, 0x29, 0xa0, 0x31, 0xe1, 0x72, 0x4e, 0x64, 0x30,
];

/// r of BLS12-381, little-endian.
pub(crate) const BLS12_381_R: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53, 0x05, 0xd8, 0xa1,
    0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];

/// A container of sections, as zkey, wtns, r1cs and ptau files are.
pub(crate) fn container(magic: &[u8; 4], version: u32, sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = magic.to_vec();
    file.extend(version.to_le_bytes());
    file.extend((sections.len() as u32).to_le_bytes());
    for (id, bytes) in sections {
        file.extend(id.to_le_bytes());
        file.extend((bytes.len() as u64).to_le_bytes());
        file.extend(bytes);
    }
    file
}

/// Number, offset of the section's own head, and offset and length of its content.
pub(crate) fn sections(file: &[u8]) -> Vec<(u32, usize, usize, usize)> {
    let mut found = Vec::new();
    let mut at = 12;
    while at < file.len() {
        let id = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let length = u64::from_le_bytes(file[at + 4..at + 12].try_into().unwrap()) as usize;
        found.push((id, at, at + 12, length));
        at += 12 + length;
    }
    found
}

/// A copy with `bytes` at `offset` of section `id`.
pub(crate) fn patched(file: &[u8], id: u32, offset: usize, bytes: &[u8]) -> Vec<u8> {
    let (_, _, start, length) = *sections(file).iter().find(|s| s.0 == id).unwrap();
    assert!(offset + bytes.len() <= length);
    let mut file = file.to_vec();
    file[start + offset..start + offset + bytes.len()].copy_from_slice(bytes);
    file
}

/// 32 little-endian bytes.
pub(crate) fn element(value: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// A witness file.
pub(crate) fn wtns(prime: &[u8; 32], values: &[[u8; 32]]) -> Vec<u8> {
    let header = [&32u32.to_le_bytes()[..], prime, &(values.len() as u32).to_le_bytes()].concat();
    container(b"wtns", 2, &[(1, header), (2, values.concat())])
}

/// A chain of `n` squarings on BN254, x_0 = 1 and public, with its witness: every wire is 1.
pub(crate) fn squarings(n: u32) -> (Vec<u8>, Vec<u8>) {
    squarings_of(n, n + 2)
}

/// A chain of `n` squarings ([`squarings`]) with so many wires, of which those behind the chain are in no constraint.
pub(crate) fn squarings_of(n: u32, wires: u32) -> (Vec<u8>, Vec<u8>) {
    squarings_with(n, wires, 1)
}

/// A chain of `n` squarings ([`squarings_of`]) whose first so many wires are public.
pub(crate) fn squarings_with(n: u32, wires: u32, publics: u32) -> (Vec<u8>, Vec<u8>) {
    let mut header = 32u32.to_le_bytes().to_vec();
    header.extend(BN254_R);
    for count in [wires, 0, publics, 0] {
        header.extend(count.to_le_bytes());
    }
    header.extend(u64::from(wires).to_le_bytes());
    header.extend(n.to_le_bytes());
    let mut constraints = Vec::with_capacity(n as usize * 120);
    for i in 0..n {
        for wire in [i + 1, i + 1, i + 2] {
            constraints.extend(1u32.to_le_bytes());
            constraints.extend(wire.to_le_bytes());
            constraints.extend(element(1));
        }
    }
    let labels = (0..u64::from(wires)).flat_map(u64::to_le_bytes).collect();
    let r1cs = container(b"r1cs", 1, &[(1, header), (2, constraints), (3, labels)]);
    (r1cs, wtns(&BN254_R, &vec![element(1); wires as usize]))
}
