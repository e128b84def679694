//! What moves between two nodes, beside a plain program with a socket: both in the same two processes, one after the other.
//!
//! ```text
//! cargo run --release -p tandem-fabric --example nodes
//! tandem run --nodes 2 --node 0 --at 10.0.0.1:4300 -n 1 target/release/examples/nodes 10.0.0.2
//! tandem run --nodes 2 --node 1 --at 10.0.0.1:4300 -n 1 target/release/examples/nodes
//! ```
//!
//! The argument is the host of node 1, where the plain program's other end listens.
//! Started alone it is two nodes on this host, which say what their software takes, and nothing of a network.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;
use tandem_fabric::plan::{Levels, Operation};
use tandem_fabric::{launch, Launch, Launched, Meeting, Node, OneSided, Options, Symmetric, Team};

const SIZES: [usize; 5] = [8, 4 << 10, 256 << 10, 16 << 20, 64 << 20];
/// Of each size as many as make so many bytes, and no more and no less than these.
const BYTES: usize = 1 << 30;
const ROUNDS: std::ops::RangeInclusive<usize> = 11..=1001;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Meeting::from_env()? {
        Some(meeting) => measure(&Team::sim_in(meeting, 1, Options::default())?),
        None => both(),
    }
}

/// Starts the two nodes on this host.
fn both() -> Result<(), Box<dyn std::error::Error>> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let name = Meeting::NODES.2;
    if std::env::var_os(name).is_none() {
        let secret = Meeting::unique();
        let all: Vec<_> = std::env::args_os().skip(1).collect();
        let status = std::process::Command::new(std::env::current_exe()?).args(all).env(name, secret).status()?;
        std::process::exit(status.code().unwrap_or(1));
    }
    let node = |index: usize| {
        let command = vec![std::env::current_exe()?.into()];
        let node = Some(Node { index, count: 2, address: address.clone() });
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(launch(&Launch { command, processes: 1, node }, || false)?)
    };
    let ends = std::thread::scope(|scope| [0, 1].map(|index| scope.spawn(move || node(index))).map(|one| one.join()));
    for end in ends {
        match end.map_err(|_| "a thread has panicked")? {
            Ok(Launched::Done) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}

/// The other end of the plain program: takes messages of so many bytes, and answers each with a byte.
fn plain_end(listener: &TcpListener) -> std::io::Result<()> {
    let mut tcp = listener.accept()?.0;
    tcp.set_nodelay(true)?;
    let mut memory = vec![0; SIZES[SIZES.len() - 1]];
    let mut len = [0; 8];
    while tcp.read_exact(&mut len).is_ok() {
        tcp.read_exact(&mut memory[..u64::from_le_bytes(len) as usize])?;
        tcp.write_all(&[1])?;
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(team: &Team) -> Result<(), Box<dyn std::error::Error>> {
    let most = SIZES[SIZES.len() - 1];
    let memory: Symmetric<u8> = team.alloc(most)?;
    let port: Symmetric<u64> = team.alloc(1)?;
    if team.size() != 2 || team.reaches(0, 1).is_ok() {
        return Err("this is for two processes on two nodes".into());
    }
    if team.local() == [1] {
        // Where the fabric's own stream comes in.
        let listener = TcpListener::bind("0.0.0.0:0")?;
        team.write(1, &port, &[listener.local_addr()?.port().into()])?;
        team.write(1, &memory, &vec![1; most])?;
        team.barrier()?;
        team.synchronize()?;
        plain_end(&listener)?;
        team.barrier()?;
        return Ok(team.synchronize()?);
    }
    team.write(0, &memory, &vec![2; most])?;
    team.barrier()?;
    team.synchronize()?;
    let host = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1".into());
    let mut tcp = TcpStream::connect((host, u16::try_from(team.read(1, &port)?[0])?))?;
    tcp.set_nodelay(true)?;
    let plain = vec![3; most];
    let queue = team.queue(0);
    println!("{:>10}  {:>12} {:>12} {:>12}  put of plain", "bytes", "put", "get", "plain");
    for bytes in SIZES {
        let rounds = (BYTES / bytes).clamp(*ROUNDS.start(), *ROUNDS.end());
        let part = memory.slice(0..bytes)?;
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            let mut begun = Instant::now();
            let mut lap = |times: &mut Vec<f64>| {
                times.push(begun.elapsed().as_secs_f64());
                begun = Instant::now();
            };
            queue.put(&part, &part, 1)?;
            queue.synchronize()?;
            lap(&mut times[0]);
            queue.get(&part, &part, 1)?;
            queue.synchronize()?;
            lap(&mut times[1]);
            tcp.write_all(&(bytes as u64).to_le_bytes())?;
            tcp.write_all(&plain[..bytes])?;
            tcp.read_exact(&mut [0])?;
            lap(&mut times[2]);
        }
        let [put, get, plain] = times.map(median);
        let rate = |time: f64| {
            if bytes < 1 << 16 {
                format!("{:.1} us", time * 1e6)
            } else {
                format!("{:.2} GB/s", bytes as f64 / time / 1e9)
            }
        };
        println!("{bytes:>10}  {:>12} {:>12} {:>12}  {:.0} %", rate(put), rate(get), rate(plain), 100.0 * plain / put);
    }
    drop(tcp);
    team.barrier()?;
    team.synchronize()?;
    println!("\n{}", Levels::new(Operation::AllGather, &[1, 1], 0)?.to_text(16 << 20));
    Ok(())
}
