//! Real GPUs beside a process that takes their memory, and many proofs in flat memory. Where there is no GPU each test is passed over,
//! or fails if `TANDEM_REQUIRE_GPU=1`.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Files, Watchdog};
use tandem_cuda::{Device, Pool, Stream};
use tandem_engine::{DeviceChoice, Engine, Proved, Silent};

/// The first GPU. These tests change what it has free, so that they take turns.
fn gpu() -> Option<(Device, std::sync::MutexGuard<'static, ()>)> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Some((*tandem_cuda::testing::gpus().first()?, turn))
}

/// What a child of this program does: it takes all memory of the first GPU but so many bytes, says how much that is, and holds it until
/// its input ends.
#[test]
fn hog() {
    let Ok(leave) = std::env::var("TANDEM_HOG_LEAVES") else { return };
    let leave: u64 = leave.parse().unwrap();
    let gpu = tandem_cuda::testing::gpus()[0];
    let (pool, stream) = (Arc::new(Pool::new(gpu).unwrap()), Arc::new(Stream::new(gpu).unwrap()));
    let (mut held, mut piece, mut bytes) = (Vec::new(), 1u64 << 30, 0u64);
    while piece >= 1 << 20 {
        let free = gpu.memory_info().unwrap().0;
        match pool.alloc::<u8>(&stream, piece as usize, false) {
            Ok(buffer) if free >= leave + piece => {
                held.push(buffer);
                bytes += piece;
                stream.synchronize().unwrap();
            }
            _ => piece /= 2,
        }
    }
    println!("\nHOLDS {bytes}");
    let _ = std::io::stdin().read(&mut [0]);
    drop(held);
}

struct Hog(Child);

impl Hog {
    fn leaving(bytes: u64) -> Hog {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hog", "--nocapture"])
            .env("TANDEM_HOG_LEAVES", bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let holds = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("HOLDS ").map(str::to_string));
        println!("another process holds {} bytes", holds.expect("it takes the memory"));
        Hog(child)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn open(choice: &str) -> Engine {
    Engine::open(&choice.parse().unwrap()).unwrap()
}

fn is_on_gpu(proved: &Proved) -> bool {
    proved.device.contains("cuda:")
}

#[test]
fn memory_that_is_taken_at_the_start_is_waited_for() {
    let Some((_, _turn)) = gpu() else { return };
    let _bound = Watchdog::new("taken at the start", Duration::from_secs(240));
    let files = Files::new(12);
    let hog = Hog::leaving(0);
    // It ends while the engine waits.
    let end = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        drop(hog);
    });
    let engine = open("auto").with_patience(Duration::from_secs(30));
    let key = files.load(&engine).unwrap();
    println!("device: {:?}; {:?}", engine.report(), key.note());
    let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
    files.check(&proved, "proof");
    assert!(is_on_gpu(&proved), "{}", proved.device);
    end.join().unwrap();
}

#[test]
fn memory_that_stays_taken_leaves_the_proof_to_the_cpu() {
    let Some((_, _turn)) = gpu() else { return };
    let _bound = Watchdog::new("taken for good", Duration::from_secs(240));
    let files = Files::new(12);
    let engine = open("auto").with_patience(Duration::from_secs(2));
    let hog = Hog::leaving(0);
    let key = files.load(&engine).unwrap();
    let proved = engine.prove(&key, &files.witness(), &Silent).unwrap();
    files.check(&proved, "proof");
    println!("{} {:?} {:?}", proved.device, key.note(), proved.fallback);
    assert_eq!(is_on_gpu(&proved), proved.fallback.is_none());
    drop(hog);
    // The GPU is used again, if it was not all along.
    let end = Instant::now() + Duration::from_secs(90);
    while !is_on_gpu(&engine.prove(&key, &files.witness(), &Silent).unwrap()) {
        assert!(Instant::now() < end, "the GPU has been free for 90 s");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Before each of some proofs all memory is taken, and given back within the next ones.
#[test]
fn memory_may_come_and_go_between_proofs() {
    let Some((_, _turn)) = gpu() else { return };
    let _bound = Watchdog::new("coming and going", Duration::from_secs(500));
    let files = Files::new(14);
    for choice in ["auto", "cuda:0"] {
        let engine = open(choice).for_proofs(1_000_000).with_patience(Duration::from_secs(2));
        let key = files.load(&engine).unwrap();
        let (mut made, mut refused, mut on_cpu) = (0, 0, 0);
        for round in 0..6 {
            let hog = (round % 2 == 0).then(|| Hog::leaving([0, 64 << 20, 1 << 30][round / 2]));
            for _ in 0..20 {
                match engine.prove(&key, &files.witness(), &Silent) {
                    Ok(proved) => {
                        files.check(&proved, "proof");
                        made += 1;
                        on_cpu += usize::from(!is_on_gpu(&proved));
                    }
                    Err(error) => {
                        assert!(choice != "auto" && hog.is_some() && error.exit_status() == 3, "{error}");
                        refused += 1;
                        break;
                    }
                }
            }
        }
        println!("{choice}: {made} proofs, {on_cpu} of them on the CPU, {refused} refusals");
        assert!(made >= 60 && engine.wrong_proofs() == 0);
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// `TANDEM_PROOFS` of them, 2,000 if unset.
#[test]
fn many_proofs_take_no_more_memory_than_few() {
    let Some((gpu, _turn)) = gpu() else { return };
    let files = Files::new(12);
    let engine = Engine::open(&DeviceChoice::Cuda(vec![0])).unwrap();
    let key = files.load(&engine).unwrap();
    let count: u32 = std::env::var("TANDEM_PROOFS").map_or(2000, |n| n.parse().unwrap());
    let prove = |checked: bool| {
        let witness = engine.read_witness(&files.at("wtns")).unwrap();
        let proved = engine.prove(&key, &witness, &Silent).unwrap();
        assert!(is_on_gpu(&proved) && proved.fallback.is_none(), "{proved:?}");
        if checked {
            files.check(&proved, "proof");
        }
    };
    (0..count / 10).for_each(|i| prove(i % 100 == 0));
    let figures = || (resident_kib(), gpu.memory_info().unwrap().0);
    let before = figures();
    (0..count).for_each(|i| prove(i % 100 == 0));
    let after = figures();
    println!(
        "{count} proofs: {} KiB of the host at first, {} in the end; of the GPU {} and {} bytes free",
        before.0, after.0, before.1, after.1
    );
    assert!(after.0 < before.0 + 4096, "the host's memory grows");
    assert!(after.1 + (16 << 20) > before.1, "the GPU's memory grows");
}
