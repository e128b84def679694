//! Pictures and tables: every bench draws, the documents' drawings are those of today, and tables fit a terminal.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use support::{refused_in, root, run, run_in};

/// Benches that take a moment, without what is drawn.
const BENCHES: [&[&str]; 14] = [
    &["ntt", "--log-n", "4..5", "--runs", "1", "--device", "sim:2"],
    &["ntt", "--log-n", "4..5", "--runs", "1", "--device", "sim:4", "--as", "spread,cube", "--exchange", "nvlink,host"],
    &["words", "--log-n", "10", "-n", "2", "--device", "sim:2"],
    &["msm", "--log-n", "4..5", "--runs", "1", "--device", "sim:2", "--scalars", "random,equal"],
    &["poseidon", "--log-n", "2..3", "--runs", "1", "--device", "cpu"],
    &["reduce", "--log-n", "10..11", "--runs", "1", "--device", "sim:2"],
    &["reduce", "--collective", "-b", "4K", "-e", "8K", "-f", "2", "-n", "2", "--device", "sim:2"],
    &["sort", "--log-n", "10..11", "--runs", "1", "--device", "sim:2", "--keys", "random,zipf"],
    &["groth16", "--log-n", "4", "--runs", "1", "--device", "sim:2", "--compare"],
    &["plonk", "--log-n", "3..4", "--runs", "1", "--device", "sim:2", "--compare"],
    &["fflonk", "--log-n", "3", "--runs", "1", "--device", "cpu"],
    &["setup", "--log-n", "3..4", "--runs", "1"],
    &["upload", "-b", "4K", "-e", "1M", "-f", "256", "-n", "2", "--device", "sim:2"],
    &["pingpong", "-n", "2", "--device", "sim:2"],
];

#[track_caller]
fn fits(text: &str, what: &[&str]) {
    assert!(!text.is_empty(), "{what:?}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what:?}: {} characters: {line}", line.chars().count());
    }
}

#[test]
fn every_bench_draws_and_its_table_fits() {
    let folder = tempfile::tempdir().unwrap();
    for bench in BENCHES {
        let (table, _) = run_in(folder.path(), 0, &with(bench, "p.svg"));
        fits(&table, bench);
        let svg = fs::read_to_string(folder.path().join("p.svg")).unwrap();
        let drawn = texts(&svg);
        assert!(drawn >= 4, "{bench:?}: {svg}");
        refused_in(folder.path(), &with(bench, "p.pdf"), &["p.pdf", ".svg or .png"]);
        refused_in(folder.path(), &with(bench, "p"), &[".svg or .png"]);
        assert!(!folder.path().join("p.pdf").exists() && !folder.path().join("p").exists());
    }
    // The command line comes before the device.
    refused_in(folder.path(), &["bench", "ntt", "--plot", "p.pdf", "--device", "cuda:63"], &["p.pdf", ".svg or .png"]);
    let bench = ["bench", "pingpong", "-n", "2", "--device", "sim:2", "--plot", "p.png"];
    run_in(folder.path(), 0, &bench);
    is_png(&folder.path().join("p.png"));
}

#[track_caller]
fn is_png(file: &Path) {
    let png = fs::read(file).unwrap();
    let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && (1600..1700).contains(&width), "{width}");
}

#[test]
fn machines_and_plans_are_drawn_by_the_suffix() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let topo = ["topo", "--preset", "dgx1-v100", "--draw"];
    let plan = ["plan", "broadcast", "--gpus", "0,1", "--preset", "dgx1-v100", "--draw"];
    for command in [&topo[..], &plan] {
        let with = |file| [command, &[file]].concat();
        run_in(at, 0, &with("p.png"));
        is_png(&at.join("p.png"));
        run_in(at, 0, &with("p.svg"));
        assert!(texts(&fs::read_to_string(at.join("p.svg")).unwrap()) > 8);
        refused_in(at, &with("p.pdf"), &["p.pdf", ".svg or .png"]);
        assert!(!at.join("p.pdf").exists());
    }
    // The option's former name.
    run_in(at, 0, &["topo", "--preset", "dgx1-v100", "--svg", "q.svg"]);
    assert!(at.join("q.svg").exists());
}

fn with<'a>(bench: &[&'a str], plot: &'a str) -> Vec<&'a str> {
    [&["bench"][..], bench, &["--plot", plot]].concat()
}

/// Texts of a drawing.
fn texts(svg: &str) -> usize {
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    svg.matches("<text ").count()
}

/// Bars compare rates: the greatest has the longest.
#[test]
fn rates_have_bars() {
    let bench = ["bench", "broadcast", "-b", "4K", "-e", "1M", "-f", "256", "-n", "3", "--device", "sim:2"];
    let (table, _) = run(0, &bench);
    let bars: Vec<(f64, usize)> = table
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            (cells[5].parse().unwrap(), line.matches('#').count())
        })
        .collect();
    let greatest = bars.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert!(greatest.1 >= 4 && bars.iter().all(|b| b.1 <= greatest.1), "{table}");
}

#[test]
fn topologies_plans_and_the_doctor_fit() {
    let (help, _) = run(0, &["topo", "--help"]);
    let presets =
        ["dgx1-v100", "hgx-h200", "h200-pair", "bridge-pairs", "h100-mesh4", "l40s-8", "gb200-trays", "ring5"];
    for preset in presets {
        assert!(help.contains(preset), "{help}");
        let (text, _) = run(0, &["topo", "--preset", preset]);
        fits(&text, &[preset]);
        for operation in ["broadcast", "all-gather", "all-reduce", "all-to-all", "upload"] {
            let args = ["plan", operation, "--gpus", "0,1", "--helpers", "all", "--pcie", "--preset", preset];
            fits(&run(0, &args).0, &args);
            let args = ["plan", operation, "--gpus", "all", "--pcie", "--preset", preset];
            fits(&run(0, &args).0, &args);
        }
    }
    fits(&run(0, &["topo"]).0, &["topo"]);
    let (doctor, _) = run(0, &["doctor", "--device", "cpu"]);
    // A path has no place where it could be broken.
    let rest: Vec<&str> = doctor.lines().filter(|line| !line.starts_with("cache ")).collect();
    fits(&rest.join("\n"), &["doctor"]);
}

#[test]
fn kept_circuits_get_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), 0, &["bench", "setup", "--log-n", "3", "--runs", "1", "--keep", "new/folder"]);
    assert!(folder.path().join("new/folder/n3.zkey").exists());
    fs::write(folder.path().join("file"), "").unwrap();
    let keep = ["bench", "setup", "--log-n", "3", "--runs", "1", "--keep", "file/folder"];
    refused_in(folder.path(), &keep, &["file/folder"]);
}

/// Markdown files below a folder.
fn documents(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => documents(&path, out),
            false if path.extension().is_some_and(|e| e == "md") => out.push(path),
            false => {}
        }
    }
}

/// Each drawing in the documents is what the command beside it draws.
#[test]
fn drawings_in_documents_are_up_to_date() {
    let mut files = Vec::new();
    documents(&root().join("docs"), &mut files);
    let folder = tempfile::tempdir().unwrap();
    let mut drawn = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| line.starts_with("tandem ") && line.contains(" --draw docs/")) {
            let (command, target) = line.split_once(" --draw ").unwrap();
            let target = target.split_whitespace().next().unwrap();
            let mut args: Vec<&str> = command.split_whitespace().skip(1).collect();
            args.extend(["--draw", "drawing.svg"]);
            run_in(folder.path(), 0, &args);
            let today = fs::read_to_string(folder.path().join("drawing.svg")).unwrap();
            let kept = fs::read_to_string(root().join(target)).unwrap_or_else(|e| panic!("{target}: {e}"));
            assert!(today == kept, "{}: {target} is not what its command draws; run {line}", file.display());
            let name = Path::new(target).file_name().unwrap().to_str().unwrap();
            assert!(text.contains(&format!("({name})")), "{} does not show {name}", file.display());
            drawn += 1;
        }
    }
    assert!(drawn >= 6, "{drawn}");
}
