//! Files as they lie: large ones are looked at and not read, changing ones are refused, and a witness may come out of a pipe.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use tandem_formats::container::Container;
use tandem_formats::*;
use tandem_ops::{Canonical, CurveId, HostBuf};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }

    /// A file that ends within these bytes, for each place where it can.
    fn cut_everywhere(&self, bytes: &[u8], mut check: impl FnMut(&Path)) {
        let path = self.write("cut", bytes);
        let file = File::options().write(true).open(&path).unwrap();
        for len in (0..bytes.len()).rev() {
            file.set_len(len as u64).unwrap();
            check(&path);
        }
    }

    /// A container whose sections are mostly holes: number, first bytes and length of each.
    fn sparse(&self, magic: &[u8; 4], sections: &[(u32, &[u8], u64)]) -> PathBuf {
        use std::os::unix::fs::FileExt;
        let path = self.at("sparse");
        let file = File::create(&path).unwrap();
        file.write_all_at(&[magic, &1u32.to_le_bytes()[..], &(sections.len() as u32).to_le_bytes()].concat(), 0)
            .unwrap();
        let mut at = 12;
        for (id, start, len) in sections {
            file.write_all_at(&[&id.to_le_bytes()[..], &len.to_le_bytes(), start].concat(), at).unwrap();
            at += 12 + len;
        }
        file.set_len(at).unwrap();
        path
    }
}

#[track_caller]
fn refused<T>(result: Result<T>, parts: &[&str]) {
    let Err(error) = result else { panic!("was accepted; expected {parts:?}") };
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 500, "{message}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn section(bytes: &[u8], kind: FileKind, id: u32) -> &[u8] {
    let s = *Container::parse(bytes, kind).unwrap().sections.iter().find(|s| s.id == id).unwrap();
    &bytes[s.offset..s.offset + s.len]
}

fn patched(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn all_bytes_are_read_whatever_the_length() {
    let folder = Folder::new();
    let part = 4 << 20;
    for len in [0, 1, part - 1, part, part + 1, 3 * part + 77] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251 + i / part) as u8).collect();
        let file = RegularFile::open(folder.write("bytes", &bytes)).unwrap();
        assert!(file.len() == len as u64 && *file.read().unwrap() == bytes[..], "{len}");
        let mut tail = vec![0; len / 2];
        file.read_at(&mut tail, (len - len / 2) as u64).unwrap();
        assert!(tail == bytes[len - len / 2..], "{len}");
    }
}

#[test]
fn files_that_change_while_they_are_read_are_refused() {
    let folder = Folder::new();
    for len in [0, 999, 1001, 9 << 20] {
        let path = folder.write("key", &[7; 1000]);
        let file = RegularFile::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        refused(file.read(), &["key: the file changed while it was read; try again when nobody writes to it"]);
        refused(file.unchanged(), &["changed while it was read"]);
    }
    // Longer, with the time of what was opened.
    let path = folder.write("key", &[7; 1000]);
    let file = RegularFile::open(&path).unwrap();
    let opened = file.file().metadata().unwrap().modified().unwrap();
    let longer = File::options().write(true).open(&path).unwrap();
    longer.set_len(1001).unwrap();
    longer.set_modified(opened).unwrap();
    refused(file.read(), &["changed while it was read"]);
    // Other bytes of the same length.
    let path = folder.write("key", &[7; 1000]);
    let file = RegularFile::open(&path).unwrap();
    let other = File::options().write(true).open(&path).unwrap();
    other.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    refused(file.read(), &["changed while it was read"]);
    // A file that takes the other's place is none of what was opened.
    fs::rename(folder.write("new", &[8; 9]), &path).unwrap();
    other.set_modified(file.file().metadata().unwrap().modified().unwrap()).unwrap();
    let before = RegularFile::open(folder.write("stays", &[7; 10])).unwrap();
    fs::rename(folder.write("new", &[8; 9]), folder.at("stays")).unwrap();
    assert_eq!(*before.read().unwrap(), [7; 10]);
}

#[test]
fn what_memory_cannot_hold_is_refused() {
    // No address space has so much, whatever the system promises.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("huge");
    File::create(&path).unwrap().set_len(1 << 60).unwrap();
    refused(RegularFile::open(&path).unwrap().read(), &["huge: the file needs 1152921504606846976 bytes of memory"]);
}

#[test]
fn pipes_are_no_keys() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let says =
        ["pipe: expected a file, this is a pipe, not a regular file; write what comes out of it to a file first"];
    refused(RegularFile::open(&pipe), &says);
    refused(ZkeyFile::open(&pipe), &says);
    refused(R1csFile::open(&pipe), &says);
    refused(PtauHeader::open(&pipe), &says);
    refused(ZkeyFile::open("/dev/zero"), &["/dev/zero: expected a file, this is a device, not a regular file"]);
    refused(json::read_file(folder.0.path()), &["this is a folder"]);
    refused(Wtns::open(folder.0.path()), &["this is a folder"]);
}

#[test]
fn large_files_are_looked_at_in_little_memory() {
    let folder = Folder::new();
    let before = peak();
    let header = section(data!("bn128.ptau"), FileKind::Ptau, 1);
    let header = patched(header, 36, &[28u32.to_le_bytes(), 28u32.to_le_bytes()].concat());
    let n = 1u64 << 28;
    let sections = [
        (1, &header[..], 44),
        (2, &[], (2 * n - 1) * 64),
        (3, &[], n * 128),
        (4, &[], n * 64),
        (5, &[], n * 64),
        (6, &[], 128),
    ];
    let path = folder.sparse(b"ptau", &sections);
    assert!(path.metadata().unwrap().len() > 90 << 30);
    let found = PtauHeader::open(&path).unwrap();
    assert_eq!((found.power, found.n_contributions, found.is_prepared), (28, None, false));

    let (protocol, header) = (1u32.to_le_bytes(), section(data!("mul_bls.zkey"), FileKind::Zkey, 2));
    let (vars, domain) = (1u64 << 31, 1u64 << 30);
    let sizes = [(vars as u32).to_le_bytes(), 2u32.to_le_bytes(), (domain as u32).to_le_bytes()].concat();
    let header = patched(header, 4 + 48 + 4 + 32, &sizes);
    let entry = |matrix: u32| [&matrix.to_le_bytes()[..], &[0; 40]].concat();
    let entries = [&3u32.to_le_bytes()[..], &entry(1), &entry(0), &entry(1)].concat();
    let all: [(u32, &[u8], u64); 9] = [
        (1, &protocol, 4),
        (2, &header, header.len() as u64),
        (3, &[], 3 * 96),
        (4, &entries, entries.len() as u64),
        (5, &[], vars * 96),
        (6, &[], vars * 96),
        (7, &[], vars * 192),
        (8, &[], (vars - 3) * 96),
        (9, &[], domain * 96),
    ];
    let path = folder.sparse(b"zkey", &all);
    assert!(path.metadata().unwrap().len() > 1 << 40);
    let found = ZkeyFile::open(&path).unwrap();
    assert_eq!(
        (found.curve, found.n_vars, found.n_public, found.domain_size),
        (CurveId::Bls12_381, 1 << 31, 2, 1 << 30)
    );
    assert_eq!(found.count_entries().unwrap(), [1, 2]);
    // A length that the header denies, of each section.
    for i in 2..all.len() {
        let mut wrong = all;
        wrong[i].2 += 96 * 44;
        refused(ZkeyFile::open(folder.sparse(b"zkey", &wrong)), &[&format!("section {} (", all[i].0), ", found "]);
    }
    // One that the file denies.
    let path = folder.sparse(b"zkey", &all);
    File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    refused(ZkeyFile::open(&path), &["section ", "the file ends after"]);

    let r1cs = section(data!("mul.r1cs"), FileKind::R1cs, 1);
    let r1cs = patched(r1cs, 36, &u32::MAX.to_le_bytes());
    let path = folder.sparse(b"r1cs", &[(1, &r1cs, 64), (2, &[], 1 << 40), (3, &[], u64::from(u32::MAX) * 8)]);
    assert_eq!(R1csFile::open(&path).unwrap().header.n_vars, u32::MAX);
    let lies = patched(&r1cs, 60, &u32::MAX.to_le_bytes());
    let path = folder.sparse(b"r1cs", &[(1, &lies, 64), (2, &[], 12), (3, &[], u64::from(u32::MAX) * 8)]);
    refused(R1csFile::open(&path), &["section 2 (constraints)", "expected 4294967295 constraints, found 12 bytes"]);
    let wtns = patched(section(data!("mul.wtns"), FileKind::Wtns, 1), 36, &u32::MAX.to_le_bytes());
    let path = folder.sparse(b"wtns", &[(2, &[], u64::from(u32::MAX) * 32), (1, &wtns, 40)]);
    assert_eq!(WtnsHeader::open(&path).unwrap(), WtnsHeader { curve: CurveId::Bn254, count: u32::MAX });
    // Other tests of this program run meanwhile and take some. The system counts pages a thread at a time, so that its greatest
    // number can be a little less later.
    let more = peak().saturating_sub(before);
    assert!(more < 256 << 10, "{more} KiB");
}

#[test]
fn headers_of_small_files_say_what_their_readers_say() {
    let folder = Folder::new();
    for bytes in [data!("mul.zkey"), data!("mul_new.zkey"), data!("nopub.zkey"), data!("mul_bls.zkey")] {
        let file = ZkeyFile::open(folder.write("zkey", bytes)).unwrap();
        assert_eq!(file.curve, zkey::curve(bytes).unwrap());
        assert_eq!(*file.read().unwrap(), *bytes);
        let [a, b] = file.count_entries().unwrap();
        let matrices = match file.curve {
            CurveId::Bn254 => Zkey::<tandem_ops::Bn254>::parse(bytes).unwrap().coefs.matrices(),
            CurveId::Bls12_381 => Zkey::<tandem_ops::Bls12_381>::parse(bytes).unwrap().coefs.matrices(),
        };
        let matrices = matrices.unwrap();
        assert_eq!((a as usize, b as usize), (matrices.a.column.len(), matrices.b.column.len()));
        assert!(file.contributions.is_some());
        folder.cut_everywhere(bytes, |cut| refused(ZkeyFile::open(cut), &["cut: "]));
        let s = section(bytes, FileKind::Zkey, 4).as_ptr().addr() - bytes.as_ptr().addr();
        let bad = folder.write("bad", &patched(bytes, s + 4 + 44, &[2]));
        refused(ZkeyFile::open(bad).unwrap().count_entries(), &["bad: section 4 (coefficients), coefficient 1, byte "]);
    }
    for bytes in [data!("mul.r1cs"), data!("gate.r1cs")] {
        let (file, whole) = (R1csFile::open(folder.write("r1cs", bytes)).unwrap(), R1cs::parse(bytes).unwrap());
        assert_eq!((file.header, file.custom_gate_uses), (whole.header, whole.custom_gate_uses));
        assert_eq!(*file.read().unwrap(), *bytes);
        folder.cut_everywhere(bytes, |cut| refused(R1csFile::open(cut), &["cut: "]));
    }
    for bytes in [data!("bn128.ptau"), data!("bls12381.ptau")] {
        assert_eq!(PtauHeader::open(folder.write("ptau", bytes)).unwrap(), PtauHeader::parse(bytes).unwrap());
        folder.cut_everywhere(bytes, |cut| refused(PtauHeader::open(cut), &["cut: "]));
    }
    let bytes = data!("mul.wtns");
    let header = WtnsHeader { curve: CurveId::Bn254, count: 6 };
    assert_eq!(WtnsHeader::open(folder.write("wtns", bytes)).unwrap(), header);
    folder.cut_everywhere(bytes, |cut| refused(WtnsHeader::open(cut), &["cut: "]));
}

/// What is read of a witness that comes out of a pipe in pieces.
fn piped(folder: &Folder, bytes: &[u8], piece: usize, expected: Option<WtnsHeader>, is_read: bool) -> Result<Wtns> {
    let path = folder.at("witness-pipe");
    let _ = fs::remove_file(&path);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut pipe = File::options().write(true).open(&path).unwrap();
            // A reader that has seen enough closes the pipe.
            bytes.chunks(piece).all(|piece| pipe.write_all(piece).is_ok())
        });
        read_as(&path, expected, is_read)
    })
}

/// Reads a witness; where no value may be read, no memory may be asked for.
fn read_as(path: &Path, expected: Option<WtnsHeader>, is_read: bool) -> Result<Wtns> {
    Wtns::open_in(path, expected, |count| {
        assert!(is_read, "asks for memory for {count} values");
        HostBuf::zeros(count).ok()
    })
}

/// A witness file of sections in any order.
fn wtns(sections: &[(u32, &[u8])]) -> Vec<u8> {
    let mut bytes = [&b"wtns"[..], &2u32.to_le_bytes(), &(sections.len() as u32).to_le_bytes()].concat();
    for (id, section) in sections {
        bytes.extend([&id.to_le_bytes()[..], &(section.len() as u64).to_le_bytes(), section].concat());
    }
    bytes
}

#[test]
fn witnesses_come_out_of_pipes() {
    let folder = Folder::new();
    for bytes in [data!("mul.wtns"), data!("nopub.wtns"), data!("mul_bls.wtns")] {
        let whole = Wtns::parse(bytes).unwrap();
        for piece in [1, 13, 1 << 16] {
            let read = piped(&folder, bytes, piece, None, true).unwrap();
            assert!(read.curve == whole.curve && read.values[..] == whole.values[..]);
        }
        for at in 0..bytes.len() {
            refused(piped(&folder, &bytes[..at], 1 << 16, None, true), &["witness-pipe: "]);
        }
        refused(piped(&folder, &[bytes, b"x"].concat(), 999, None, true), &["expected the end of the file"]);
    }
    // More than a piece of them.
    let mut values = vec![Canonical([5, 6, 7, 8]); 300_000];
    values[0] = Canonical([1, 0, 0, 0]);
    let mut large = Vec::new();
    Wtns::write(&mut large, CurveId::Bls12_381, &values).unwrap();
    let read = piped(&folder, &large, 100_000, None, true).unwrap();
    assert!(read.values[..] == values[..]);
}

#[test]
fn sections_of_witnesses_in_any_order() {
    let folder = Folder::new();
    let good = data!("mul.wtns");
    let (header, values) = (section(good, FileKind::Wtns, 1), section(good, FileKind::Wtns, 2));
    let other = &[7u8; 5000][..];
    let fine = wtns(&[(9, other), (1, header), (8, &[]), (2, values), (9, other)]);
    for read in [Wtns::open(folder.write("w", &fine)), piped(&folder, &fine, 777, None, true)] {
        assert_eq!(read.unwrap().values[..], Wtns::parse(good).unwrap().values[..]);
    }
    let turned = wtns(&[(2, values), (1, header)]);
    assert_eq!(Wtns::open(folder.write("w", &turned)).unwrap().values.len(), 6);
    refused(
        piped(&folder, &turned, 99, None, false),
        &["section 2", "expected the header before the values", "to a file first"],
    );
    let long_header = [header, &[0; 5000]].concat();
    let mut lie = wtns(&[(1, header), (2, values)]);
    let at = lie.len() - values.len() - 8;
    lie.splice(at..at + 8, (1u64 << 60).to_le_bytes());
    let above = patched(good, good.len() - 32, &[0xff; 32]);
    let first = patched(good, 76, &[2]);
    for (bytes, part) in [
        (wtns(&[(1, header), (1, header), (2, values)]), "a second time"),
        (wtns(&[(1, header), (2, values), (2, values)]), "a second time"),
        (wtns(&[(1, header)]), "section 2 (values): expected this section"),
        (wtns(&[]), "section 1 (header): expected this section"),
        (wtns(&[(1, &long_header), (2, values)]), "expected"),
        (wtns(&[(1, &header[..39]), (2, values)]), "section 1 (header)"),
        (wtns(&[(1, header), (2, &values[32..])]), "expected 6 values of 32 bytes, found 160 bytes"),
        (lie, "section 2 (values)"),
        (patched(good, 4, &[9]), "expected a version"),
        (patched(good, 8, &[65]), "expected at most 64 sections"),
        (b"zkey, or what it is".to_vec(), "this is a zkey file, expected a wtns file"),
        (above, "value 5, byte 236: expected a value below the scalar field modulus"),
        (first, "value 0, byte 76: expected the first value of a witness to be 1"),
    ] {
        refused(Wtns::open(folder.write("w", &bytes)), &["w: ", part]);
        refused(piped(&folder, &bytes, 64, None, true), &["witness-pipe: ", part]);
    }
    // What a pipe says it will give takes no memory before it comes.
    let promise = [&wtns(&[(1, &patched(header, 36, &[0xff; 4])), (2, &[])])[..], values].concat();
    let at = promise.len() - values.len() - 8;
    let promise = patched(&promise, at, &(u64::from(u32::MAX) * 32).to_le_bytes());
    refused(piped(&folder, &promise, 99, None, false), &["section 2 (values)", "the file ends after"]);
    let head = patched(&wtns(&[(1, header), (2, values)]), 16, &(1u64 << 36).to_le_bytes());
    refused(
        piped(&folder, &head, 99, None, false),
        &["section 1 (header)", "expected a header of 40 bytes, found 68719476736"],
    );
    let endless = patched(&promise, at, &(limits::WTNS_BYTES_MAX - 50).to_le_bytes());
    refused(
        piped(&folder, &patched(&endless, at - 4, &[9]), 99, None, false),
        &["expected at most 137438957568 bytes"],
    );
}

#[test]
fn witnesses_of_another_circuit_are_refused_by_their_header() {
    let folder = Folder::new();
    let good = data!("mul.wtns");
    let path = folder.write("w", good);
    let says = |curve, count| Some(WtnsHeader { curve, count });
    for (expected, part) in [
        (says(CurveId::Bn254, 7), "the witness has 6 values; the circuit of the key has 7"),
        (says(CurveId::Bn254, 5), "the witness has 6 values; the circuit of the key has 5"),
        (says(CurveId::Bls12_381, 6), "a witness for bn254; the key is for bls12-381"),
    ] {
        refused(read_as(&path, expected, false), &["w: ", part]);
        refused(piped(&folder, good, 76, expected, false), &["witness-pipe: ", part]);
    }
    read_as(&path, says(CurveId::Bn254, 6), true).unwrap();
    piped(&folder, good, 50, says(CurveId::Bn254, 6), true).unwrap();
    // 128 GiB of zeros: none is read.
    let header = patched(section(good, FileKind::Wtns, 1), 36, &u32::MAX.to_le_bytes());
    let path = folder.sparse(b"wtns", &[(1, &header, 40), (2, &[], u64::from(u32::MAX) * 32)]);
    refused(read_as(&path, says(CurveId::Bn254, 6), false), &["the witness has 4294967295 values", "has 6"]);
    // A file that is written to between its header and its values.
    let path = folder.write("w", good);
    let changing = Wtns::open_in(&path, None, |count| {
        File::options().append(true).open(&path).unwrap().write_all(b"x").unwrap();
        HostBuf::zeros(count).ok()
    });
    refused(changing, &["w: the file changed while it was read"]);
    // Memory that is refused, or too little.
    for room in [None, Some(5)] {
        let result = Wtns::open_in(folder.write("w", good), None, |_| room.and_then(|n| HostBuf::zeros(n).ok()));
        refused(result, &["w: the witness needs 192 bytes of memory, more than there is"]);
    }
}

#[test]
fn what_is_no_witness_is_not_written() {
    let one = Canonical([1, 0, 0, 0]);
    let r = Canonical([0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d, 0x30644e72e131a029]);
    for (values, part) in [
        (vec![], "expected the first value"),
        (vec![Canonical([2, 0, 0, 0]), one], "value 0: expected the first value of a witness to be 1"),
        (vec![Canonical([1, 0, 0, 1])], "expected the first value"),
        (vec![one, one, r], "value 2: expected a value below the scalar field modulus of bn254"),
    ] {
        let mut out = Vec::new();
        let error = Wtns::write(&mut out, CurveId::Bn254, &values).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        assert!(error.to_string().contains(part) && out.is_empty(), "{error}");
    }
    Wtns::write(Vec::new(), CurveId::Bls12_381, &[one, r]).unwrap();
}

#[test]
fn json_is_read_up_to_its_limit_and_from_pipes() {
    let folder = Folder::new();
    let path = folder.write("json", b"[]");
    File::options().write(true).open(&path).unwrap().set_len(limits::JSON_BYTES_MAX).unwrap();
    assert_eq!(json::read_file(&path).unwrap().len() as u64, limits::JSON_BYTES_MAX);
    File::options().write(true).open(&path).unwrap().set_len(limits::JSON_BYTES_MAX + 1).unwrap();
    refused(json::read_file(&path), &["json: expected a JSON file of at most 33554432 bytes"]);
    refused(json::read_file("/dev/zero"), &["/dev/zero: expected a JSON file of at most 33554432 bytes"]);
    let pipe = folder.at("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, data!("mul.vkey.json")).unwrap());
        assert_eq!(json::read_file(&pipe).unwrap(), data!("mul.vkey.json"));
    });
}
