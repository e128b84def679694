//! `tandem topo` and `tandem plan`: what they print, and what they refuse.

mod support;

use std::fs;
use std::path::Path;
use support::{refused_in, run, run_in};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let (stdout, stderr) = run(2, args);
    assert_eq!(stdout, "", "{args:?}");
    assert!(stderr.lines().count() == 1 && stderr.starts_with("error: ") && stderr.len() < 1000, "{args:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{args:?}: expected {part:?} in: {stderr}");
    }
}

#[test]
fn a_topology_in_every_format_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |args: &[&str]| run_in(folder.path(), 0, args).0;
    let preset = ["topo", "--preset", "dgx1-v100"];
    let matrix = at(&preset);
    assert!(matrix.contains("GPU0  X     NV1   NV1   NV2   NV2   SYS"), "{matrix}");
    assert!(matrix.contains("GPU0  X     20.0  20.0  40.0  40.0  -"), "{matrix}");
    for format in ["--json", "--nccl-xml"] {
        let text = at(&[&preset[..], &[format]].concat());
        fs::write(folder.path().join("machine"), &text).unwrap();
        let rest = |m: &str| m.lines().skip(1).take(20).collect::<Vec<_>>().join("\n");
        assert_eq!(rest(&at(&["topo", "--from", "machine"])), rest(&matrix), "{format}");
        let plan = at(&["plan", "all-gather", "--gpus", "0,1,2,3,4,5,6,7", "--from", "machine", "--json"]);
        assert_eq!(json(&plan)["mbs"], "960000/7", "{format}");
    }
    assert!(at(&["topo", "--preset", "hgx-h200", "--draw", "-"]).starts_with("<svg "));
}

#[test]
fn a_plan_in_every_format() {
    let plan = ["plan", "broadcast", "--gpus", "0,1", "--helpers", "2,3", "--preset", "dgx1-v100"];
    let with = |option: &str| run(0, &[&plan[..], &[option]].concat()).0;
    let (text, stderr) = run(0, &plan);
    assert_eq!(stderr, "");
    assert!(text.contains("rate   80 GB/s\nbound  80 GB/s (reached"), "{text}");
    let value = json(&with("--json"));
    assert_eq!(
        (&value["mbs"], &value["bound_mbs"], &value["is_best"]),
        (&"80000".into(), &"80000".into(), &true.into())
    );
    assert_eq!((&value["optimal"], &value["gap"], &value["is_cut_short"]), (&true.into(), &0.0.into(), &false.into()));
    assert!(with("--xml").starts_with("<trees collective=\"broadcast\" ngpus=\"2\" nchunks=\"4\">"));
    nccl_graphs(&plan);
    let drawn = run(0, &[&plan[..], &["--draw", "-"]].concat()).0;
    assert!(drawn.starts_with("<svg ") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
    let (all, _) = run(0, &["plan", "broadcast", "--gpus", "0,1", "--helpers", "all", "--preset", "dgx1-v100"]);
    assert!(all.contains("rate   120 GB/s"), "{all}");
    let (none, _) = run(0, &["plan", "all-reduce", "--gpus", "0,1", "--helpers", "all", "--preset", "hgx-h200"]);
    assert!(none.contains("no gain possible"), "{none}");
    // As the benches call it, and GPUs as a range.
    let seven = ["--gpus", "0-6", "--preset", "dgx1-v100", "--json"];
    let named = |name: &str| run(0, &[&["plan", name][..], &seven].concat()).0;
    assert_eq!(named("allreduce"), named("all-reduce"));
    assert_eq!(json(&named("allreduce"))["gpus"].as_array().unwrap().len(), 7);
    let (everyone, _) = run(0, &["plan", "all-gather", "--gpus", "all", "--preset", "dgx1-v100", "--json"]);
    assert_eq!(json(&everyone)["mbs"], "960000/7");
    let (upload, _) = run(0, &["plan", "upload", "--gpus", "0", "--helpers", "1", "--preset", "h200-pair"]);
    assert!(upload.contains("rate   109.8 GB/s"), "{upload}");
}

/// Four trees through four sets of GPUs: a file for each, or none.
fn nccl_graphs(plan: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    refused(&[plan, &["--nccl-graph"]].concat(), &["4 different sets of GPUs", "--nccl-graph=FOLDER"]);
    let into = |name: &str| format!("--nccl-graph={}", folder.path().join(name).display());
    refused(&[plan, &[&into("missing")]].concat(), &["missing", "graph-0-1.xml"]);
    let (said, _) = run(0, &[plan, &[&into("")]].concat());
    let files = ["graph-0-1-2-3.xml", "graph-0-1-2.xml", "graph-0-1-3.xml", "graph-0-1.xml"];
    assert_eq!(support::names(folder.path()), files);
    for file in files {
        let line = said.lines().find(|line| line.contains(file)).unwrap();
        assert!(line.ends_with("25.00 % of the data"), "{said}");
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        // One channel, as a ring and as a tree.
        assert_eq!(text.matches("<channel>").count(), 2, "{text}");
    }
    // One communicator is enough without helpers.
    let (text, _) = run(0, &["plan", "broadcast", "--gpus", "0,1", "--preset", "dgx1-v100", "--nccl-graph"]);
    assert!(text.starts_with("<graphs version=\"1\">\n"), "{text}");
}

/// A trial says what GPUs hold and what each tree moves, and the trace has it chunk by chunk.
#[test]
fn a_plan_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ["plan", "broadcast", "--gpus", "0,1", "--helpers", "2,3", "--preset", "dgx1-v100"];
    let (text, _) = run_in(folder.path(), 0, &[&plan[..], &["--explain=4M", "--trace", "t.json"]].concat());
    for part in [
        "memory for chunks on their way, of a call with 4 MiB",
        "GPU2, a helper",
        "more than 64 MiB",
        "every byte compared",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let rows: Vec<_> = rows.iter().filter(|row| row.len() == 9 && row[2] == "->").collect();
    // Chains of one, two, two and three hops.
    assert_eq!(rows.len(), 8, "{text}");
    let trace = json(&fs::read_to_string(folder.path().join("t.json")).unwrap());
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |event: &serde_json::Value, name: &str| event["ph"] == "M" && event["args"]["name"] == name;
    for row in rows {
        let (moved, wanted): (u64, u64) = (row[4].parse().unwrap(), row[5].parse().unwrap());
        assert_eq!((moved, wanted), (1 << 20, 1 << 20), "{text}");
        let tree = events.iter().find(|event| named(event, &format!("tree {}", row[0]))).unwrap();
        let link = format!("{} -> {}", row[1], row[3]);
        let link = events.iter().find(|event| event["pid"] == tree["pid"] && named(event, &link)).unwrap();
        let is_of = |event: &&serde_json::Value| {
            event["ph"] == "X" && event["pid"] == tree["pid"] && event["tid"] == link["tid"]
        };
        let chunks: Vec<u64> =
            events.iter().filter(is_of).map(|event| event["args"]["bytes"].as_u64().unwrap()).collect();
        assert_eq!((chunks.iter().sum::<u64>(), chunks.len().to_string()), (moved, row[6].to_string()), "{text}");
    }
    refused(&[&plan[..], &["--explain=1T"]].concat(), &["--explain", "16 GiB"]);
    refused(&[&plan[..], &["--explain", "--json"]].concat(), &["--explain", "--json"]);
    // What is not passed on needs no memory.
    let (pair, _) = run(0, &["plan", "send", "--gpus", "0,1", "--preset", "h200-pair", "--explain=1M"]);
    assert!(pair.contains("none: nothing is passed on"), "{pair}");
}

#[test]
fn bad_jobs_are_refused() {
    let plan = |rest: &[&str], parts: &[&str]| {
        refused(&[&["plan", "all-gather", "--preset", "dgx1-v100"][..], rest].concat(), parts);
    };
    plan(&[], &["--gpus"]);
    plan(&["--gpus", ""], &["--gpus"]);
    plan(&["--gpus", "0"], &["at least 2 GPUs", "has 1"]);
    plan(&["--gpus", "0,0"], &["GPU 0", "twice"]);
    plan(&["--gpus", "0,8"], &["no GPU 8", "0 to 7"]);
    plan(&["--gpus", "0,-1"], &["0,-1", "such as 0,1 or 0-3, or all"]);
    plan(&["--gpus", "3-1"], &["3-1", "or all"]);
    plan(&["--gpus", "all", "--helpers", "1"], &["GPU 1", "helpers and in the job"]);
    plan(&["--gpus", "0,1", "--helpers", "1,2"], &["GPU 1", "helpers and in the job"]);
    plan(&["--gpus", "0,1", "--helpers", "2,2"], &["GPU 2", "twice"]);
    plan(&["--gpus", "0,1", "--helpers", "some"], &["some", "or all"]);
    plan(&["--gpus", "0,1", "--root", "0"], &["no root"]);
    plan(&["--gpus", "0,1", "--json", "--draw", "x.svg"], &["--json", "--draw"]);
    refused(&["plan", "gossip", "--gpus", "0,1", "--preset", "dgx1-v100"], &["gossip", "broadcast"]);
    refused(&["plan", "send", "--gpus", "0,1,2", "--preset", "dgx1-v100"], &["exactly 2"]);
    refused(
        &["plan", "all-to-all", "--gpus", "0,1", "--preset", "dgx1-v100", "--nccl-graph"],
        &["rings and chains only"],
    );
}

#[test]
fn what_is_no_topology_is_refused() {
    refused(&["topo", "--preset", "dgx1-v100", "--measure"], &["--measure", "this machine"]);
    refused(&["topo", "--preset", "dgx9"], &["dgx9", "dgx1-v100"]);
    refused(&["topo", "--preset", "dgx1-v100", "--from", "x"], &["--from"]);
    refused(&["topo", "--from", "no/such/file"], &["no/such/file", "cannot open"]);
    let folder = tempfile::tempdir().unwrap();
    let two = |links: &str| {
        format!(
            "{{\"format\":\"tandem-topology\",\"version\":1,\"name\":\"t\",\"devices\":[{{\"name\":\"GPU0\",\"kind\":\"gpu\"}},{{\"name\":\"GPU1\",\"kind\":\"gpu\"}}],\"links\":[{links}]}}"
        )
    };
    let link = |a: &str, b: &str, rate: &str| {
        format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"kind\":\"nvlink\",\"gbs_ab\":{rate},\"gbs_ba\":1}}")
    };
    let cases: [(String, &[&str]); 9] = [
        ("hello".into(), &["line 1", "expected our JSON"]),
        (String::new(), &["an empty file", "nvidia-smi topo -m"]),
        ("{}".into(), &["line 1", "format"]),
        ("<system version=\"1\"/>".into(), &["at least one GPU"]),
        (two(&link("GPU0", "GPU5", "1")), &["links[0]", "GPU5"]),
        (two(&link("GPU0", "GPU1", "0")), &["links[0]", "gbs_ab"]),
        (two(&link("GPU0", "GPU1", "-3")), &["links[0]", "gbs_ab", "-3"]),
        (two(&link("GPU0", "GPU1", "NaN")), &["line 1, column"]),
        (two(&link("GPU0", "GPU1", "1e999")), &["line 1, column"]),
    ];
    for (text, parts) in cases {
        let file = folder.path().join("machine");
        fs::write(&file, text).unwrap();
        let name: &Path = &file;
        refused(&["topo", "--from", name.to_str().unwrap()], &[&[name.to_str().unwrap()][..], parts].concat());
    }
}

#[test]
fn this_machine_is_shown_whatever_it_has() {
    let (text, stderr) = run(0, &["topo"]);
    assert!(text.starts_with("this machine: "), "{text}");
    assert_eq!(stderr, "");
    if text.starts_with("this machine: no GPU: ") {
        // That there is none is said, with status 0; where more is asked for, it is refused.
        for format in [&["--json"][..], &["--nccl-xml"], &["--draw", "-"]] {
            refused(&[&["topo"][..], format].concat(), &["no GPU", "--preset"]);
            refused(&[&["topo", "--measure"][..], format].concat(), &["--measure", "no GPU"]);
        }
        refused(&["topo", "--measure"], &["--measure", "no GPU"]);
    }
}

#[test]
fn every_bench_of_the_fabric_runs_on_pretend_pes_and_finds_nothing_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let sums = ["broadcast", "reduce", "allreduce", "allgather", "reducescatter", "alltoall"];
    for what in sums.into_iter().chain(["p2p", "put", "get", "pingpong", "upload", "download"]) {
        for device in ["sim:2", "sim:3"] {
            let args =
                ["bench", what, "--device", device, "-n", "2", "-w", "1", "--json", "rows.jsonl", "--plot", "p.svg"];
            let sizes: &[&str] = &["-b", "48", "-e", "12K", "-f", "16"];
            let more: &[&str] = match what {
                // The sum over one array is another bench of this name.
                "reduce" => &[&["--collective"], sizes].concat(),
                // There is one size, and no curve over it.
                "pingpong" => &[],
                _ => sizes,
            };
            let (table, _) = run_in(folder.path(), 0, &[&args[..], more].concat());
            assert!(table.starts_with("size ") && table.contains("tandem"), "{what} {device}: {table}");
            let rows = fs::read_to_string(folder.path().join("rows.jsonl")).unwrap();
            fs::remove_file(folder.path().join("rows.jsonl")).unwrap();
            let rows: Vec<serde_json::Value> = rows.lines().map(json).collect();
            assert_eq!(rows.len(), table.lines().count() - 1, "{what} {device}");
            for row in &rows {
                assert_eq!((&row["what"], &row["wrong"]), (&what.into(), &0.into()), "{row}");
                assert!(row["us_latency"].as_f64().unwrap() > 0.0 && row["algbw"].as_f64().unwrap() > 0.0, "{row}");
                assert!(row["device"].as_str().unwrap().starts_with("sim:0, sim:1"), "{row}");
            }
            let plot = folder.path().join("p.svg");
            assert!(
                fs::read_to_string(&plot).unwrap().contains(">size, bytes<") || what == "pingpong",
                "{what} {device}"
            );
            fs::remove_file(plot).unwrap();
        }
    }
}

#[test]
fn benches_of_the_fabric_refuse_what_makes_no_sense() {
    refused(&["bench", "p2p", "--device", "cpu"], &["--device cpu", "sim:N"]);
    refused(&["bench", "p2p", "--device", "sim:1"], &["sim:1", "needs 2"]);
    refused(
        &["bench", "p2p", "--device", "sim:2", "-b", "1M", "-e", "4K"],
        &["--min-bytes 1 MiB", "--max-bytes 4 KiB"],
    );
    refused(&["bench", "p2p", "--device", "sim:2", "-b", "0"], &["--min-bytes", "1M or 1G"]);
    refused(&["bench", "p2p", "--device", "sim:2", "-f", "1"], &["--factor"]);
    refused(&["bench", "allreduce", "--device", "sim:2", "--nccl", "no/such/libnccl.so"], &["--nccl", "pretend"]);
    refused(&["bench", "upload", "--device", "sim:1", "--plot", "no/such/folder/p.svg"], &["no/such/folder"]);
}

#[test]
fn benches_of_the_fabric_refuse_options_that_they_have_no_use_for() {
    let bench = |what: &str, more: &[&str], parts: &[&str]| {
        refused(&[&["bench", what, "--device", "sim:2"][..], more].concat(), parts);
    };
    for option in [&["-b", "8"][..], &["-e", "8"], &["-f", "2"], &["--nccl"], &["--tuning", "workers=8"]] {
        bench("pingpong", option, &["unexpected argument", option[0]]);
    }
    for what in ["put", "get", "upload", "download"] {
        bench(what, &["--nccl"], &["unexpected argument", "--nccl"]);
        bench(what, &["--tuning", "workers=8"], &["unexpected argument", "--tuning"]);
    }
    // The sum over one array has its own.
    for option in [&["-b", "8"][..], &["-e", "8"], &["-f", "2"], &["-n", "2"], &["-w", "1"], &["--nccl"]] {
        bench("reduce", option, &["required", "--collective"]);
    }
    bench("reduce", &["--tuning", "workers=8"], &["required", "--collective"]);
    bench("reduce", &["--collective", "--runs", "2"], &["--runs", "--collective"]);
    bench("reduce", &["--collective", "--log-n", "2"], &["--log-n", "--collective"]);
}

#[test]
fn one_file_is_not_two_outputs() {
    let folder = tempfile::tempdir().unwrap();
    // A drawing must have such a suffix, rows may have any.
    let at = |name: &str| folder.path().join(name);
    fs::write(at("rows.svg"), "{}\n").unwrap();
    std::os::unix::fs::symlink("rows.svg", at("link.svg")).unwrap();
    std::os::unix::fs::symlink("new.svg", at("dangling.svg")).unwrap();
    let refused = |args: &[&str], parts: &[&str]| {
        refused_in(folder.path(), args, parts);
        assert_eq!(fs::read_to_string(at("rows.svg")).unwrap(), "{}\n", "{args:?}");
    };
    let pairs = [
        ("rows.svg", "rows.svg"),
        ("rows.svg", "./rows.svg"),
        ("rows.svg", "link.svg"),
        ("link.svg", "rows.svg"),
        ("new.svg", "./new.svg"),
        ("dangling.svg", "new.svg"),
        ("new.svg", "dangling.svg"),
    ];
    for (one, other) in pairs {
        for (first, second) in [("--json", "--plot"), ("--json", "--trace"), ("--plot", "--trace")] {
            let bench = ["bench", "p2p", "--device", "sim:2", "-e", "4K", first, one, second, other];
            refused(&bench, &["two outputs"]);
        }
        refused(&["bench", "reduce", "--collective", "--json", one, "--plot", other], &["two outputs"]);
        for what in ["pingpong", "reduce", "ntt", "msm", "poseidon", "sort", "groth16", "plonk", "fflonk", "setup"] {
            refused(&["bench", what, "--device", "sim:2", "--json", one, "--trace", other], &["two outputs"]);
        }
        refused(&["topo", "--from", one, "--trace", other], &["replace the input"]);
        refused(&["plan", "send", "--gpus", "0,1", "--from", one, "--trace", other], &["replace the input"]);
    }
    refused(&["bench", "setup", "--keep", ".", "--log-n", "3..4", "--json", "n4.zkey"], &["n4.zkey", "two outputs"]);
    refused(
        &["bench", "plonk", "--keep", ".", "--log-n", "3..4", "--json", "powers4.ptau"],
        &["powers4.ptau", "two outputs"],
    );
    refused(
        &["bench", "fflonk", "--keep", ".", "--log-n", "3", "--json", "fflonk3.wtns"],
        &["fflonk3.wtns", "two outputs"],
    );
    refused(&["bench", "groth16", "rows.svg", "w", "--json", "link.svg"], &["replace the input"]);
    // What is no file may be named as often as one likes.
    for file in ["/dev/null", "/dev/stderr"] {
        let bench = ["bench", "p2p", "--device", "sim:2", "-e", "4K", "-n", "2", "--json", file, "--plot", file];
        run_in(folder.path(), 0, &bench);
    }
}

/// A search that would take minutes ends when its time is up, with a plan that was checked and says that a better one may exist.
#[test]
fn a_search_ends_when_its_time_is_up() {
    let mut seed = 9u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let device = |d| serde_json::json!({"name": format!("D{d}"), "kind": if d < 32 { "gpu" } else { "nvswitch" }});
    let devices: Vec<_> = (0..92).map(device).collect();
    let mut links = Vec::new();
    for a in 0..92 {
        for b in a + 1..92 {
            if next(3) == 0 {
                let (forth, back) = (1 + next(400), 1 + next(400));
                let ends = [a, b].map(|d| format!("D{d}"));
                links.push(
                    serde_json::json!({"a": ends[0], "b": ends[1], "kind": "nvlink", "gbs_ab": forth, "gbs_ba": back}),
                );
            }
        }
    }
    let file = serde_json::json!({"format": "tandem-topology", "version": 1, "name": "tangle", "devices": devices, "links": links});
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tangle.json"), file.to_string()).unwrap();
    let plan = ["plan", "all-reduce", "--gpus", "0-31", "--from", "tangle.json", "--max-seconds", "1"];
    let (text, stderr) = run_in(folder.path(), 0, &plan);
    assert_eq!(stderr, "");
    assert!(
        text.contains("(not reached: a plan may be faster, by ") && text.contains("search stopped at its limit"),
        "{text}"
    );
    let value = json(&run_in(folder.path(), 0, &[&plan[..], &["--json"]].concat()).0);
    assert_eq!((&value["optimal"], &value["is_cut_short"]), (&false.into(), &true.into()));
    assert!(value["gap"].as_f64().unwrap() > 0.0 && value["gbs"].as_f64().unwrap() > 0.0);
    let preset = ["plan", "broadcast", "--gpus", "0,1", "--preset", "dgx1-v100"];
    for seconds in ["0", "-1", "x", "86401"] {
        let seconds = format!("--max-seconds={seconds}");
        let (_, stderr) = run(2, &[&preset[..], &[seconds.as_str()]].concat());
        assert!(stderr.contains("--max-seconds"), "{stderr}");
    }
}
