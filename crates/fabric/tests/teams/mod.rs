//! The teams that a suite runs on.
#![allow(dead_code, unreachable_pub)]

use bytemuck::Pod;
use std::sync::{Arc, Mutex, PoisonError};
use tandem_cuda::{Device, Downloads, Pool, Staging, Stream, Upload};
use tandem_fabric::{Memory, Options, Team};

/// Runs `test` on teams of 1 to 8 pretend PEs, then on one of the first GPU, of the first two, and so on.
pub fn each(options: &Options, test: impl Fn(&Team)) {
    for pes in 1..=8 {
        test(&Team::sim(pes, options.clone()).unwrap());
    }
    each_cuda(options, test);
}

/// The part of [`each`] that needs GPUs. One test at a time: more queues that wait than a GPU has hardware queues would hold
/// each other up (docs/contracts/memory.md).
pub fn each_cuda(options: &Options, test: impl Fn(&Team)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let gpus = tandem_cuda::testing::gpus();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for count in 1..=gpus.len() {
        test(&Team::cuda(&gpus[..count], options.clone()).unwrap());
    }
}

/// Numbers that look like nothing, different for every seed (xorshift64*).
pub fn numbers<T: From<u8> + Pod>(len: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0u8; len * size_of::<T>()];
    for byte in &mut bytes {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        *byte = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8;
    }
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// A device's pool and stream for users' memory, the same for all tests of a process: a process has addresses for some 500 pools.
fn pool_of(device: Device) -> (Arc<Pool>, Arc<Stream>) {
    type Made = Vec<(Device, Arc<Pool>, Arc<Stream>)>;
    static MADE: Mutex<Made> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if !made.iter().any(|(of, ..)| *of == device) {
        made.push((device, Arc::new(Pool::new(device).unwrap()), Arc::new(Stream::new(device).unwrap())));
    }
    let (_, pool, stream) = made.iter().find(|(of, ..)| *of == device).unwrap();
    (pool.clone(), stream.clone())
}

/// Users' memory with these contents, one buffer a PE.
pub fn buffers<T: Pod>(team: &Team, contents: &[Vec<T>]) -> Vec<Memory<T>> {
    let pool_of = |pe: usize| Some(pool_of(team.queue(pe).stream()?.device()));
    let one = |(pe, elements): (usize, &Vec<T>)| match pool_of(pe) {
        None => Memory::Host(elements.clone()),
        Some((pool, stream)) => {
            let mut buffer = pool.alloc(&stream, elements.len(), false).unwrap();
            let staging = Staging::new(1, 1 << 16, |work| work());
            Upload::run(&[staging.upload(&mut buffer, 0, bytemuck::cast_slice(elements)).unwrap()]).unwrap();
            Memory::Device(buffer)
        }
    };
    contents.iter().enumerate().map(one).collect()
}

/// What is in a user's memory.
pub fn contents<T: Pod>(memory: Memory<T>) -> Vec<T> {
    match memory {
        Memory::Host(elements) => elements,
        Memory::Device(buffer) => Arc::new(Downloads::default()).start(&buffer).unwrap().wait().unwrap(),
    }
}
