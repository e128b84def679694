//! Cases of the command line: arguments and the files they name, and random changes of both.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Options, and values that they may be given; an empty value is none.
const OPTIONS: [(&str, &[&str]); 24] = [
    ("--json", &[""]),
    ("--check-key", &[""]),
    ("--quiet", &[""]),
    ("--device", &["cpu", "sim:2", "sim:8", "cuda", "cuda:7", "sim:0", "sim:99999999999", "auto", "x"]),
    ("--schedule", &["auto", "each", "together", "x"]),
    ("--trace", &["trace.json", "sub", "missing/trace.json", "in"]),
    ("--more", &["w.wtns p2.json u2.json", "x"]),
    ("--max-steps", &["1", "2", "0", "99999999999999999999", "-1"]),
    ("--max-memory", &["1", "64", "0", "4096", "4097"]),
    ("--seed", &["x", ""]),
    ("--curve", &["bn254", "bls12-381", "x"]),
    ("--element", &["f32", "u64", "scalar", "point", "x"]),
    ("--op", &["max", "sum", "min", "x"]),
    ("--key", &["u32", "u64"]),
    ("--pairs", &[""]),
    ("--descending", &[""]),
    ("--preset", &["dgx1-v100", "h200-pair", "hgx-h200", "x"]),
    ("--from", &["in", "sub", "missing"]),
    ("--gpus", &["all", "0", "0,1", "0,0", "99", "", "0-7", "-1"]),
    ("--helpers", &["0", "2,3", "99"]),
    ("--root", &["0", "1", "18446744073709551616"]),
    ("--xml", &[""]),
    ("--draw", &["x.svg", "-", "sub", "in", "missing/x.svg"]),
    ("--nccl-graph", &[""]),
];
/// Arguments of any place. None is a path outside the case's folder: the program replaces what it is told to write.
const WORDS: [&str; 14] = [
    "",
    "-",
    "--",
    ".",
    "sub",
    "sub/x",
    "missing/x",
    "empty",
    "link",
    "dangling",
    "a b\n",
    "é",
    "--help",
    "no-such-command",
];
/// Numbers at borders.
const NUMBERS: [u64; 12] =
    [0, 1, 2, 0x7f, 0xff, 0xffff, 1 << 24, (1 << 31) - 1, 1 << 31, u32::MAX as u64, 1 << 32, u64::MAX];

/// xorshift64*.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Random numbers of TANDEM_FUZZ_SEED, or, without it, others each time; and the seed, which names what is found.
    pub(crate) fn seeded() -> Result<(u64, Self), String> {
        let of_time = || std::time::UNIX_EPOCH.elapsed().map_or(1, |t| t.as_nanos() as u64);
        let seed = match std::env::var("TANDEM_FUZZ_SEED") {
            Ok(seed) => seed.parse().map_err(|_| format!("TANDEM_FUZZ_SEED={seed}: expected a number"))?,
            Err(_) => of_time(),
        };
        Ok((seed, Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Arguments, and the files of the folder they are run in.
#[derive(Debug, Clone, Default)]
pub(super) struct Case {
    pub(super) args: Vec<String>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

/// Commands and the files that they take, by the names that the commands have for them.
struct Seeds(Vec<(String, Vec<(String, String)>)>);

const FORMATS: &str = "crates/formats/tests/data";

impl Seeds {
    fn add(&mut self, args: &str, files: &[(&str, String)]) {
        self.0.push((args.into(), files.iter().map(|(name, path)| ((*name).into(), path.clone())).collect()));
    }

    /// Commands on the files of one circuit.
    fn of_circuit(&mut self, stem: &str) {
        let file = |end: &str| format!("{FORMATS}/{stem}.{end}");
        let (key, wtns, r1cs) = (("k.zkey", file("zkey")), ("w.wtns", file("wtns")), ("c.r1cs", file("r1cs")));
        for options in ["", " --device sim:2", " --check-key --json", " --trace trace.json"] {
            self.add(&format!("prove k.zkey w.wtns p.json u.json{options}"), &[key.clone(), wtns.clone()]);
        }
        self.add("prove k.zkey w.wtns p.json u.json --more w.wtns p2.json u2.json", &[key.clone(), wtns.clone()]);
        let proof = [("v.json", file("vkey.json")), ("u.json", file("public.json")), ("p.json", file("proof.json"))];
        self.add("verify v.json u.json p.json", &proof);
        self.add("verify v.json u.json p.json --json", &proof);
        self.add("setup c.r1cs new.zkey --seed x", std::slice::from_ref(&r1cs));
        self.add("prepare k.zkey --json --device cpu", std::slice::from_ref(&key));
        self.add("export-vkey k.zkey v.json", std::slice::from_ref(&key));
        self.add("export-solidity k.zkey v.sol", std::slice::from_ref(&key));
        self.add("export-solidity v.json v.sol", &proof[..1]);
        self.of_plonk(stem, &wtns, &r1cs);
        for (name, path) in [key, wtns, r1cs] {
            self.add(&format!("inspect {name} --json"), &[(name, path)]);
        }
    }

    fn of_plonk(&mut self, stem: &str, wtns: &(&str, String), r1cs: &(&str, String)) {
        let file = |end: &str| format!("{FORMATS}/{stem}.{end}");
        let curve = if stem == "mul_bls" { "bls12-381" } else { "bn128" };
        let ptau = ("t.ptau", format!("{FORMATS}/{curve}.prepared.ptau"));
        let plonk = ("k.zkey", file("plonk.zkey"));
        self.add("setup --protocol plonk --ptau t.ptau c.r1cs new.zkey", &[r1cs.clone(), ptau]);
        self.add("prove k.zkey w.wtns p.json u.json --check-key", &[plonk.clone(), wtns.clone()]);
        self.add("prepare k.zkey --json --device cpu", std::slice::from_ref(&plonk));
        self.add("export-vkey k.zkey v.json", std::slice::from_ref(&plonk));
        self.add("export-solidity k.zkey v.sol", std::slice::from_ref(&plonk));
        self.add("export-solidity v.json v.sol", &[("v.json", file("plonk.vkey.json"))]);
        self.add("inspect k.zkey --json", &[plonk]);
        if stem == "mul" {
            let fflonk = ("k.zkey", file("fflonk.zkey"));
            self.add("prove k.zkey w.wtns p.json u.json --check-key", &[fflonk.clone(), wtns.clone()]);
            self.add("export-vkey k.zkey v.json", std::slice::from_ref(&fflonk));
            self.add("export-solidity k.zkey v.sol", std::slice::from_ref(&fflonk));
            self.add("export-solidity v.json v.sol", &[("v.json", file("fflonk.vkey.json"))]);
            self.add("inspect k.zkey --json", &[fflonk]);
        }
        if stem != "nopub" {
            let files = [("v.json", "plonk.vkey.json"), ("u.json", "public.json"), ("p.json", "plonk.proof.json")];
            self.add("verify v.json u.json p.json", &files.map(|(name, end)| (name, file(end))));
        }
    }

    fn of_witnesses(&mut self) {
        let witness = "crates/witness/tests/data/multiplier";
        let circuit = [("c.wasm", format!("{witness}.wasm")), ("in.json", format!("{witness}.json"))];
        self.add("witness c.wasm in.json w.wtns --max-steps 2", &circuit);
        let graph = ("c.graph", "crates/witness/tests/data/operations.graph".into());
        self.add("witness c.graph in.json w.wtns --max-steps 2", &[graph, circuit[1].clone()]);
        self.add(
            "fullprove in.json c.wasm k.zkey p.json u.json --max-steps 2",
            &[circuit[0].clone(), circuit[1].clone(), ("k.zkey", format!("{FORMATS}/mul.zkey"))],
        );
    }

    fn of_topologies(&mut self) {
        for topology in ["a100-mesh4.json", "bridges-smi.txt", "dgx1v-nccl.xml"] {
            let file = [("in", format!("crates/fabric-topology/tests/data/{topology}"))];
            for args in [
                "topo --from in",
                "topo --from in --json",
                "plan broadcast --gpus 0,1 --from in",
                "plan allreduce --gpus 0,1 --from in --xml",
            ] {
                self.add(args, &file);
            }
        }
        self.add("topo --preset dgx1-v100", &[]);
    }

    fn of_others(&mut self) {
        for ptau in ["bls12381", "bn128"] {
            self.add("inspect in.ptau", &[("in.ptau", format!("{FORMATS}/{ptau}.ptau"))]);
        }
        let data = ("in", format!("{FORMATS}/mul.zkey"));
        for args in [
            "reduce in --element u64",
            "reduce in --element f32 --op max",
            "sort in out --key u32",
            "sort in out --pairs --descending",
        ] {
            self.add(args, std::slice::from_ref(&data));
        }
        for args in ["ptau --test 2 t.ptau --seed x", "doctor", "cache clear --json", "completions bash"] {
            self.add(args, &[]);
        }
    }
}

/// Each command with files that it takes.
pub(super) fn seeds(root: &Path) -> Result<Vec<Case>, String> {
    let mut seeds = Seeds(Vec::new());
    ["mul", "mul_bls", "nopub"].into_iter().for_each(|stem| seeds.of_circuit(stem));
    seeds.of_witnesses();
    seeds.of_topologies();
    seeds.of_others();
    let read = |path: &String| fs::read(root.join(path)).map_err(|e| format!("{path}: {e}"));
    let case = |(args, files): (String, Vec<(String, String)>)| {
        let files = files.iter().map(|(name, path)| Ok((name.clone(), read(path)?))).collect::<Result<_, String>>()?;
        Ok(Case { args: args.split(' ').map(String::from).collect(), files })
    };
    seeds.0.into_iter().map(case).collect()
}

impl Case {
    /// The command, or a word for what is none.
    pub(super) fn command(&self) -> &str {
        self.args.first().map_or("nothing", |first| if first.len() < 20 { first } else { "long" })
    }

    /// The files, and beside them a folder, an empty file and links.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("sub"))?;
        fs::write(folder.join("empty"), [])?;
        for (name, bytes) in &self.files {
            fs::write(folder.join(name), bytes)?;
        }
        let first = self.files.keys().next().map_or("empty", String::as_str);
        std::os::unix::fs::symlink(first, folder.join("link"))?;
        std::os::unix::fs::symlink("nowhere", folder.join("dangling"))
    }

    /// Keeps it: a file of the arguments, each ended by a zero byte, and a folder of the files.
    pub(super) fn save(&self, folder: &Path) -> Result<(), String> {
        let write = || {
            fs::create_dir_all(folder.join("files"))?;
            fs::write(folder.join("args"), self.args.iter().map(|a| format!("{a}\0")).collect::<String>())?;
            self.files.iter().try_for_each(|(name, bytes)| fs::write(folder.join("files").join(name), bytes))
        };
        write().map_err(|e: io::Error| format!("{}: {e}", folder.display()))
    }

    pub(super) fn load(folder: &Path) -> Result<Self, String> {
        let read = || {
            let args = fs::read_to_string(folder.join("args"))?;
            let args = args.split_terminator('\0').map(String::from).collect();
            let mut files = BTreeMap::new();
            for entry in fs::read_dir(folder.join("files"))? {
                let entry = entry?;
                files.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?);
            }
            Ok(Case { args, files })
        };
        read().map_err(|e: io::Error| format!("{}: {e}", folder.display()))
    }

    /// With one to four changes. A circuit's steps stay bounded: a long run is what its maker asks for.
    pub(super) fn changed(&self, random: &mut Random, others: &[(String, Vec<u8>)]) -> Case {
        let mut case = self.clone();
        for _ in 0..1 + random.below(4) {
            if random.below(3) == 0 || case.files.is_empty() {
                case.change_arguments(random);
            } else {
                let place = random.below(case.files.len());
                if let Some(bytes) = case.files.values_mut().nth(place) {
                    change_bytes(bytes, random, others);
                }
            }
        }
        if ["witness", "fullprove"].contains(&case.command()) && !case.args.iter().any(|a| a == "--max-steps") {
            case.args.extend(["--max-steps".into(), "2".into()]);
        }
        case
    }

    fn change_arguments(&mut self, random: &mut Random) {
        let place = random.below(self.args.len() + 1);
        let word = |random: &mut Random| match random.below(20) {
            0 => "x".repeat(5000),
            1 => (*random.of(&NUMBERS)).to_string(),
            _ => (*random.of(&WORDS)).to_string(),
        };
        match random.below(8) {
            0 if place < self.args.len() => _ = self.args.remove(place),
            1 if place < self.args.len() => self.args[place] = word(random),
            2 => self.args.insert(place, word(random)),
            // One file in two places.
            3 if place < self.args.len() => self.args[place] = random.of(&self.args).clone(),
            4 if place < self.args.len() => {
                let other = random.below(self.args.len());
                self.args.swap(place, other);
            }
            _ => {
                let (name, values) = random.of(&OPTIONS);
                let value = *random.of(values);
                self.args.push((*name).into());
                self.args.extend(value.split(' ').filter(|v| !v.is_empty()).map(String::from));
            }
        }
    }
}

pub(crate) fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random, others: &[(String, Vec<u8>)]) {
    let len = bytes.len();
    if len == 0 || random.below(12) == 0 {
        *bytes = random.of(others).1.clone();
        return;
    }
    // Heads of files and of sections hold most of what is checked.
    let place = if random.below(2) == 0 { random.below(len.min(200)) } else { random.below(len) };
    let number = *random.of(&NUMBERS);
    let put = |bytes: &mut [u8], width: usize| {
        let end = len.min(place + width);
        bytes[place..end].copy_from_slice(&number.to_le_bytes()[..end - place]);
    };
    match random.below(9) {
        0 => bytes[place] ^= 1 << random.below(8),
        1 => put(bytes, 1),
        2 => put(bytes, 4),
        3 => put(bytes, 8),
        4 => bytes.truncate(place),
        5 => _ = bytes.drain(place..len.min(place + 1 + random.below(32))),
        6 => {
            let again = bytes[place..len.min(place + 1 + random.below(200))].to_vec();
            bytes.splice(place..place, again);
        }
        7 => {
            let digits = number.to_string().into_bytes();
            bytes.splice(place..place, digits);
        }
        _ => {
            let other = &random.of(others).1;
            if !other.is_empty() {
                let from = random.below(other.len());
                let piece = other[from..other.len().min(from + 64)].to_vec();
                bytes.splice(place..len.min(place + piece.len()), piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_kept_as_they_are_and_stay_in_their_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let seeds = seeds(&root).unwrap();
        let files: Vec<_> = seeds.iter().flat_map(|case| case.files.clone()).collect();
        let folder = std::env::temp_dir().join(format!("tandem-cases-{}", std::process::id()));
        let mut random = Random(7);
        for turn in 0..2000 {
            let case = seeds[random.below(seeds.len())].changed(&mut random, &files);
            assert!(case.args.iter().all(|a| !a.starts_with('/') && !a.contains("..")), "{:?}", case.args);
            if turn < 20 {
                _ = fs::remove_dir_all(&folder);
                case.save(&folder).unwrap();
                let again = Case::load(&folder).unwrap();
                assert_eq!((again.args, again.files), (case.args, case.files));
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
