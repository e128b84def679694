//! Memory, streams and events of a real GPU. Where there is none each test is passed over, or fails if
//! `TANDEM_REQUIRE_GPU=1`.

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_cuda::{
    is_pinned, testing, Device, DeviceBuffer, Downloads, Pinned, PinnedBlock, PinnedPool, Pool, Reserved, Source,
    Staging, Stream, Upload,
};

const SLOT: usize = 1 << 16;

struct Gpu {
    device: Device,
    stream: Arc<Stream>,
    pool: Arc<Pool>,
    staging: Staging,
    downloads: Arc<Downloads>,
}

fn four_threads(work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(work)));
}

fn gpu() -> Option<Gpu> {
    let device = *testing::gpus().first()?;
    Some(Gpu {
        device,
        stream: Arc::new(Stream::new(device).unwrap()),
        pool: Arc::new(Pool::new(device).unwrap()),
        staging: Staging::new(3, SLOT, four_threads),
        downloads: Arc::default(),
    })
}

impl Gpu {
    fn upload(&self, bytes: &[u8], wipe: bool) -> DeviceBuffer<u8> {
        let mut buffer = self.pool.alloc(&self.stream, bytes.len(), wipe).unwrap();
        Upload::run(&[self.staging.upload(&mut buffer, 0, bytes).unwrap()]).unwrap();
        buffer
    }

    fn download(&self, buffer: &DeviceBuffer<u8>) -> Vec<u8> {
        self.downloads.start(buffer).unwrap().wait().unwrap()
    }

    /// Work of some ten milliseconds for `stream`, so that what is enqueued behind it is still to be done when the host goes on.
    fn keep_busy(&self, stream: &Arc<Stream>) {
        let mut buffer: DeviceBuffer<u8> = self.pool.alloc(stream, 1 << 28, false).unwrap();
        (0..100).for_each(|value| buffer.fill(0..1 << 28, value).unwrap());
    }
}

fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

#[test]
fn bytes_come_back() {
    let Some(gpu) = gpu() else { return };
    for len in [0, 1, 2, 4095, SLOT - 1, SLOT, SLOT + 1, 3 * SLOT, 10 * SLOT + 7] {
        let mut bytes = random(len, len as u64);
        let mut buffer = gpu.upload(&bytes, true);
        assert_eq!((buffer.len(), buffer.is_empty()), (len, len == 0));
        assert!(gpu.download(&buffer) == bytes, "{len} bytes");
        // A piece in the middle, at an odd place.
        if len > 10 {
            let piece = random(len - 10, 99);
            Upload::run(&[gpu.staging.upload(&mut buffer, 7, &piece).unwrap()]).unwrap();
            bytes[7..len - 3].copy_from_slice(&piece);
            buffer.zero(1..3).unwrap();
            bytes[1..3].fill(0);
            assert!(gpu.download(&buffer) == bytes, "{len} bytes, rewritten");
        }
    }
}

#[test]
fn the_source_may_be_reused_at_once() {
    let Some(gpu) = gpu() else { return };
    let mut source = random(9 * SLOT + 1, 1);
    let expected = source.clone();
    let buffer = gpu.upload(&source, true);
    source.fill(0xee);
    gpu.staging.wipe();
    assert!(gpu.download(&buffer) == expected);
}

/// Copies that wait behind other work: slots keep what they hold until it has been copied, whoever wipes or uploads meanwhile.
#[test]
fn slots_on_their_way_are_left_alone() {
    let Some(gpu) = gpu() else { return };
    for (first, second) in [(2 * SLOT + 5, 3 * SLOT), (10 * SLOT + 7, 1), (1, 7 * SLOT)] {
        let bytes = [random(first, 21), random(second, 22)];
        let mut buffers = bytes.each_ref().map(|bytes| gpu.pool.alloc(&gpu.stream, bytes.len(), true).unwrap());
        gpu.keep_busy(&gpu.stream);
        for (buffer, bytes) in buffers.iter_mut().zip(&bytes) {
            Upload::run(&[gpu.staging.upload(buffer, 0, bytes).unwrap()]).unwrap();
            gpu.staging.wipe();
        }
        for (buffer, bytes) in buffers.iter().zip(&bytes) {
            assert!(gpu.download(buffer) == *bytes, "{first} bytes, then {second}");
        }
    }
}

#[test]
fn page_locked_sources_are_copied_as_they_are_and_others_beside_them() {
    let Some(gpu) = gpu() else { return };
    let mut locked = Pinned::new(gpu.device, 5 * SLOT + 3).unwrap();
    locked.bytes().copy_from_slice(&random(5 * SLOT + 3, 5));
    let expected = [locked.bytes().to_vec(), random(7 * SLOT + 1, 6), random(1, 7)];
    let mut buffers = expected.each_ref().map(|bytes| gpu.pool.alloc(&gpu.stream, bytes.len(), true).unwrap());
    gpu.keep_busy(&gpu.stream);
    {
        let [a, b, c] = &mut buffers;
        let sources: [&[u8]; 3] = [locked.bytes(), &expected[1], &expected[2]];
        let prepare = |(to, from)| gpu.staging.upload(to, 0, from).unwrap();
        Upload::run(&[a, b, c].into_iter().zip(sources).map(prepare).collect::<Vec<_>>()).unwrap();
    }
    locked.bytes().fill(0xee);
    for (buffer, expected) in buffers.iter().zip(&expected) {
        assert!(gpu.download(buffer) == *expected);
    }
    Upload::run(&[]).unwrap();
}

#[test]
fn secrets_are_overwritten_before_the_memory_is_used_again() {
    let Some(gpu) = gpu() else { return };
    let secret = random(1 << 20, 2);
    let reused = |wipe: bool, cut: usize| {
        let mut buffer = gpu.upload(&secret, wipe);
        let old = buffer.ptr().raw();
        buffer.truncate(cut);
        drop(buffer);
        let again: DeviceBuffer<u8> = gpu.pool.alloc(&gpu.stream, secret.len(), false).unwrap();
        assert_eq!(again.ptr().raw(), old, "the pool gives the same memory again, or this test shows nothing");
        gpu.download(&again)
    };
    assert!(reused(false, secret.len()) == secret, "without wiping, the old contents are there");
    for cut in [0, 1, secret.len() / 2, secret.len()] {
        assert!(reused(true, cut) == vec![0; secret.len()], "cut to {cut}");
    }
}

#[test]
fn too_much_memory_is_an_error_that_passes() {
    let Some(gpu) = gpu() else { return };
    // 2^61 words are no bytes at all, modulo 2^64.
    for len in [1 << 50, 1 << 61, usize::MAX] {
        let error = gpu.pool.alloc::<u64>(&gpu.stream, len, true).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert!(error.to_string().contains("cudaErrorMemoryAllocation"), "{error}");
    }
    let bytes = random(1000, 3);
    assert!(gpu.download(&gpu.upload(&bytes, true)) == bytes);
}

/// Held by tests that need most of the GPU's memory.
static MEMORY: Mutex<()> = Mutex::new(());

#[test]
fn freed_memory_can_be_had_in_another_shape() {
    let Some(gpu) = gpu() else { return };
    let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let free = gpu.pool.free_bytes().unwrap() as usize;
    let many: Vec<DeviceBuffer<u8>> = (0..6).map(|_| gpu.pool.alloc(&gpu.stream, free / 10, false).unwrap()).collect();
    assert!(gpu.pool.info().unwrap().used >= (free / 10 * 6) as u64);
    drop(many);
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.pool.info().unwrap().used, 0);
    assert!(gpu.pool.info().unwrap().reserved >= (free / 10 * 6) as u64, "the pool keeps it");
    assert!(gpu.pool.free_bytes().unwrap() >= (free / 10 * 6) as u64, "what it keeps is free");
    let one: DeviceBuffer<u8> = gpu.pool.alloc(&gpu.stream, free / 10 * 8, false).unwrap();
    drop(one);
}

#[test]
fn copies_between_streams_keep_their_order() {
    let Some(gpu) = gpu() else { return };
    let other = Arc::new(Stream::new(gpu.device).unwrap());
    for round in 0..20 {
        let bytes = random(5 * SLOT + round, round as u64);
        let source = gpu.upload(&bytes, true);
        let mut target: DeviceBuffer<u8> = gpu.pool.alloc(&other, bytes.len() + 2, true).unwrap();
        // The target's stream is late in every other round, the source's in the others.
        gpu.keep_busy(if round % 2 == 0 { &other } else { &gpu.stream });
        target.fill(0..bytes.len() + 2, 0x5a).unwrap();
        target.copy_from(1, &source, 0..bytes.len()).unwrap();
        // Wiped and given to the next one, in the order of its stream: after the copy.
        drop(source);
        let mut expected = vec![0x5a; bytes.len() + 2];
        expected[1..=bytes.len()].copy_from_slice(&bytes);
        assert!(gpu.download(&target) == expected, "round {round}");
    }
}

/// Pieces of buffers of two streams, in a target of each: whichever stream is late, and although the sources are dropped at once.
#[test]
fn joined_pieces_lie_one_behind_the_other() {
    let Some(gpu) = gpu() else { return };
    let other = Arc::new(Stream::new(gpu.device).unwrap());
    for round in 0..20 {
        let bytes = [random(3 * SLOT + round, 30 + round as u64), random(SLOT + 1, 60 + round as u64)];
        let mut sources = bytes.each_ref().map(|bytes| gpu.upload(bytes, true));
        sources[1].follow(&other).unwrap();
        let wanted =
            [vec![(0, 5..SLOT), (1, 0..SLOT + 1), (0, 7..7), (0, 0..round)], vec![(1, 1..2), (0, 0..2 * SLOT)], vec![]];
        let expected = wanted.each_ref().map(|of| {
            let pieces =
                of.iter().flat_map(|(source, range): &(usize, std::ops::Range<usize>)| &bytes[*source][range.clone()]);
            // The target has room for one more, which nobody writes.
            pieces.copied().chain([0x5a]).collect::<Vec<u8>>()
        });
        gpu.keep_busy(if round % 2 == 0 { &other } else { &gpu.stream });
        let mut targets: Vec<DeviceBuffer<u8>> = Vec::new();
        for (expected, stream) in expected.iter().zip([&gpu.stream, &other, &other]) {
            let mut target = gpu.pool.alloc(stream, expected.len(), true).unwrap();
            target.fill(0..expected.len(), 0x5a).unwrap();
            targets.push(target);
        }
        let pieces = wanted
            .each_ref()
            .map(|of| of.iter().map(|(source, range)| (&sources[*source], range.clone())).collect::<Vec<_>>());
        DeviceBuffer::join_all(&mut targets, &pieces).unwrap();
        drop(sources);
        for (target, expected) in targets.iter().zip(&expected) {
            assert!(gpu.download(target) == *expected, "round {round}");
        }
    }
}

#[test]
fn pieces_that_do_not_fit_are_refused_before_the_first_is_copied() {
    let Some(gpu) = gpu() else { return };
    let source = gpu.upload(&random(10, 4), true);
    let before = [random(10, 5), random(8, 6)];
    let mut targets = before.each_ref().map(|bytes| gpu.upload(bytes, true));
    let fits = || vec![(&source, 0..10)];
    for pieces in [
        vec![fits()],
        vec![fits(), vec![], vec![]],
        vec![fits(), vec![(&source, 3..11)]],
        vec![fits(), vec![(&source, 11..11)]],
        vec![fits(), vec![(&source, std::ops::Range { start: 4, end: 3 })]],
        vec![fits(), vec![(&source, 0..4), (&source, 0..5)]],
        vec![fits(), vec![(&source, 0..10)]],
    ] {
        let refused = DeviceBuffer::join_all(&mut targets, &pieces).unwrap_err();
        assert_eq!(refused.code, tandem_cuda::ffi::TANDEM_INVALID, "{pieces:?}");
    }
    assert!(DeviceBuffer::join_all(&mut [], &[fits()]).is_err());
    DeviceBuffer::<u8>::join_all(&mut [], &[]).unwrap();
    for (target, before) in targets.iter().zip(&before) {
        assert!(gpu.download(target) == *before);
    }
}

#[test]
fn ranges_past_the_end_are_refused() {
    let Some(gpu) = gpu() else { return };
    let mut buffer = gpu.upload(&random(10, 4), true);
    let other = gpu.upload(&random(10, 5), true);
    assert!(buffer.zero(0..11).is_err());
    assert!(buffer.zero(std::ops::Range { start: 4, end: 3 }).is_err());
    assert!(buffer.copy_from(1, &other, 0..10).is_err());
    assert!(buffer.copy_from(usize::MAX, &other, 0..2).is_err());
    assert!(buffer.copy_from(0, &other, 5..11).is_err());
    assert!(gpu.staging.upload(&mut buffer, 1, &[0; 10]).is_err());
    assert!(gpu.staging.upload(&mut buffer, usize::MAX, &[0; 10]).is_err());
    let mut words: DeviceBuffer<u32> = gpu.pool.alloc(&gpu.stream, 4, true).unwrap();
    assert!(gpu.staging.upload(&mut words, 0, &[0; 7]).is_err(), "no whole number of elements");
    assert_eq!(gpu.download(&buffer), random(10, 4));
}

#[test]
fn downloads_may_be_abandoned_and_overlap() {
    let Some(gpu) = gpu() else { return };
    let many: Vec<Vec<u8>> = (0..8).map(|i| random(SLOT + i, i as u64)).collect();
    let buffers: Vec<_> = many.iter().map(|bytes| gpu.upload(bytes, true)).collect();
    let is_awaited = || {
        gpu.keep_busy(&gpu.stream);
        let abandoned = gpu.downloads.start(&buffers[0]).unwrap();
        let copied = gpu.stream.record().unwrap();
        let is_early = !copied.is_done().unwrap();
        drop(abandoned);
        assert!(copied.is_done().unwrap(), "its block is used by a copy as long as that takes");
        is_early
    };
    assert!(std::iter::repeat_with(is_awaited).take(50).any(|early| early), "the copy was always done");
    let started: Vec<_> = buffers.iter().map(|buffer| gpu.downloads.start(buffer).unwrap()).collect();
    drop(buffers);
    for (download, bytes) in started.into_iter().zip(&many) {
        assert!(download.wait().unwrap() == *bytes);
    }
}

#[test]
fn events_tell_the_time_of_work() {
    let Some(gpu) = gpu() else { return };
    let mut buffer: DeviceBuffer<u8> = gpu.pool.alloc(&gpu.stream, 1 << 28, false).unwrap();
    let start = gpu.stream.record_timed().unwrap();
    for value in 0..16 {
        buffer.fill(0..1 << 28, value).unwrap();
    }
    let end = gpu.stream.record_timed().unwrap();
    end.synchronize().unwrap();
    assert!(start.is_done().unwrap() && end.is_done().unwrap());
    // 4 GiB take between a tenth of a millisecond (40 TB/s) and a second.
    let ms = start.elapsed_ms(&end).unwrap();
    assert!((0.1..1000.0).contains(&ms), "{ms} ms");
}

#[test]
fn a_wait_with_an_end_ends() {
    let Some(gpu) = gpu() else { return };
    let ends = || {
        gpu.keep_busy(&gpu.stream);
        let is_done = gpu.stream.synchronize_until(Instant::now() + Duration::from_micros(100)).unwrap();
        assert!(gpu.stream.synchronize_until(Instant::now() + Duration::from_secs(60)).unwrap());
        !is_done
    };
    assert!(
        std::iter::repeat_with(ends).take(50).any(|ended| ended),
        "ten milliseconds of work are always done in one tenth"
    );
}

#[test]
fn threads_share_a_stream() {
    let Some(gpu) = gpu() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let gpu = &gpu;
            scope.spawn(move || {
                for round in 0..20 {
                    let bytes = random(2 * SLOT + thread * 31 + round, (thread * 100 + round) as u64);
                    assert!(gpu.download(&gpu.upload(&bytes, true)) == bytes);
                }
            });
        }
    });
}

#[test]
fn page_locked_blocks_are_used_again_and_are_zero() {
    let Some(gpu) = gpu() else { return };
    let pool = Arc::new(PinnedPool::new(8 << 20));
    let mut block = pool.take(gpu.device, 3 << 20).unwrap();
    assert_eq!(block.as_slice().len(), 3 << 20);
    assert!(is_pinned(block.as_slice()));
    block.bytes().fill(0xaa);
    let address = block.address();
    drop(block);
    let again = pool.take(gpu.device, (3 << 20) - 5).unwrap();
    assert_eq!(again.address(), address, "the pool gives the same block again, or this test shows nothing");
    assert!(again.as_slice().iter().all(|byte| *byte == 0));
    let other = pool.take(gpu.device, 3 << 20).unwrap();
    assert_ne!(other.address(), address, "two at a time");
    assert!(pool.take(gpu.device, 0).unwrap().as_slice().is_empty());
    drop(pool.take(gpu.device, 9).unwrap());
    assert_eq!(pool.take(gpu.device, 1 << 20).unwrap().as_slice().len(), 1 << 20, "a small block serves no large use");
    assert!(pool.take(gpu.device, usize::MAX).is_err());
}

/// Host memory that notes when it goes.
struct Noted<T>(T, Arc<AtomicBool>);

impl Source for Noted<PinnedBlock> {
    fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Source for Noted<Vec<u8>> {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T> Drop for Noted<T> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
    }
}

#[test]
fn queued_copies_keep_their_source() {
    let Some(gpu) = gpu() else { return };
    let pool = Arc::new(PinnedPool::new(64 << 20));
    let gone = Arc::new(AtomicBool::new(false));
    let bytes = random(20 << 20, 11);
    let mut block = pool.take(gpu.device, bytes.len()).unwrap();
    block.bytes().copy_from_slice(&bytes);
    let source: Arc<dyn Source> = Arc::new(Noted(block, gone.clone()));
    let mut buffer: DeviceBuffer<u8> = gpu.pool.alloc(&gpu.stream, bytes.len() + 3, true).unwrap();
    buffer.zero(0..bytes.len() + 3).unwrap();
    // A host that is late finds the copies done, and sees nothing: it tries again.
    let is_kept = || {
        gpu.keep_busy(&gpu.stream);
        assert!(gpu.staging.queue(&mut buffer, 0, &source, 5..bytes.len()).unwrap());
        let copied = gpu.stream.record().unwrap();
        gpu.staging.wipe();
        let holders = Arc::strong_count(&source);
        let is_early = !copied.is_done().unwrap();
        assert!(!is_early || holders > 1, "the copy has not begun, and its source is let go");
        is_early.then_some(())
    };
    assert!(std::iter::repeat_with(is_kept).take(50).any(|seen| seen.is_some()), "the copies were always done");
    assert!(gpu.staging.queue(&mut buffer, bytes.len() - 5, &source, 0..5).unwrap());
    for (at, range) in [(4, 0..bytes.len()), (0, 1..bytes.len() + 1), (usize::MAX, 0..2)] {
        assert!(gpu.staging.queue(&mut buffer, at, &source, range).is_err());
    }
    drop(source);
    let expected = [&bytes[5..], &bytes[..5], &[0; 3]].concat();
    assert!(gpu.download(&buffer) == expected);
    gpu.staging.wipe();
    assert!(gone.load(Ordering::Relaxed), "the copies are done, the source is let go");

    let pageable: Arc<dyn Source> = Arc::new(Noted(bytes, gone));
    assert!(!gpu.staging.queue(&mut buffer, 0, &pageable, 0..9).unwrap());
    assert!(gpu.download(&buffer) == expected, "nothing was copied");
}

/// What a ring has queued is copied before its sources go, also where the ring goes first.
#[test]
fn a_ring_that_goes_waits_for_its_copies() {
    let Some(gpu) = gpu() else { return };
    let pool = Arc::new(PinnedPool::new(64 << 20));
    let gone = Arc::new(AtomicBool::new(false));
    let (bytes, staged) = (random(4 << 20, 12), random(3 * SLOT, 13));
    let mut block = pool.take(gpu.device, bytes.len()).unwrap();
    block.bytes().copy_from_slice(&bytes);
    let source: Arc<dyn Source> = Arc::new(Noted(block, gone.clone()));
    let mut buffers = [&bytes, &staged].map(|b| gpu.pool.alloc::<u8>(&gpu.stream, b.len(), true).unwrap());
    let ring = Staging::new(3, SLOT, four_threads);
    gpu.keep_busy(&gpu.stream);
    assert!(ring.queue(&mut buffers[0], 0, &source, 0..bytes.len()).unwrap());
    Upload::run(&[ring.upload(&mut buffers[1], 0, &staged).unwrap()]).unwrap();
    drop(source);
    drop(ring);
    assert!(gone.load(Ordering::Relaxed));
    assert!(gpu.download(&buffers[0]) == bytes && gpu.download(&buffers[1]) == staged);
}

#[test]
fn reserved_addresses_take_memory_once() {
    let Some(gpu) = gpu() else { return };
    let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let (device, unit) = (gpu.device, gpu.device.map_granularity().unwrap());
    let users = [device];
    let reserved = Reserved::new(8 * unit).unwrap();
    assert_eq!(reserved.address() % unit, 0);
    reserved.map(2 * unit..4 * unit, device, &users).unwrap();
    let wrong = |range: std::ops::Range<u64>| {
        let error = reserved.map(range.clone(), device, &users).unwrap_err();
        assert_eq!(error.code, tandem_cuda::ffi::TANDEM_INVALID, "{range:?}: {error}");
    };
    for range in [2..4, 3..4, 3..5, 1..3, 0..8, 0..9, 8..9, 5..5] {
        wrong(range.start * unit..range.end * unit);
    }
    wrong(std::ops::Range { start: 6 * unit, end: 5 * unit });
    let many = [device; tandem_cuda::MOST_USERS + 1];
    assert_eq!(reserved.map(4 * unit..5 * unit, device, &many).unwrap_err().code, tandem_cuda::ffi::TANDEM_INVALID);
    for range in [2..3, 3..4, 1..4, 2..5, 4..5] {
        let error = reserved.unmap(range.start * unit..range.end * unit).unwrap_err();
        assert_eq!(error.code, tandem_cuda::ffi::TANDEM_INVALID, "{range:?}: {error}");
    }
    reserved.unmap(2 * unit..4 * unit).unwrap();
    assert!(reserved.unmap(2 * unit..4 * unit).is_err(), "once");
    // What was taken away can be put there again, in another shape.
    reserved.map(3 * unit..8 * unit, device, &users).unwrap();
    drop(reserved);
    // Three times what the GPU has, and eight times what it can address: neither memory nor addresses are kept.
    let part = (device.memory_info().unwrap().0 / 4).next_multiple_of(unit);
    for _ in 0..12 {
        let reserved = Reserved::new(part).unwrap();
        reserved.map(0..part, device, &users).unwrap();
    }
    for _ in 0..64 {
        drop(Reserved::new(1 << 44).unwrap());
    }
}

#[test]
fn buffers_follow_another_stream() {
    let Some(gpu) = gpu() else { return };
    let aside = Arc::new(Stream::with_high_priority(gpu.device).unwrap());
    for round in 0..20u8 {
        let len = (4 << 20) + round as usize;
        let mut buffer: DeviceBuffer<u8> = gpu.pool.alloc(&gpu.stream, len, true).unwrap();
        // Much work first, so that what does not wait is seen.
        (0..16).for_each(|value| buffer.fill(0..len, value).unwrap());
        buffer.follow(&aside).unwrap();
        buffer.fill(1..len / 2, 0x80 | round).unwrap();
        let bytes = gpu.download(&buffer);
        assert!(bytes[1..len / 2].iter().all(|byte| *byte == 0x80 | round));
        assert!(bytes[0] == 15 && bytes[len / 2..].iter().all(|byte| *byte == 15));
    }
}

#[test]
fn buffers_are_cut_short() {
    let Some(gpu) = gpu() else { return };
    let bytes = random(5000, 3);
    for len in [0, 1, 4999, 5000, 5001] {
        let mut buffer: DeviceBuffer<u8> = gpu.pool.alloc(&gpu.stream, bytes.len(), true).unwrap();
        Upload::run(&[gpu.staging.upload(&mut buffer, 0, &bytes).unwrap()]).unwrap();
        buffer.truncate(len);
        assert!(gpu.download(&buffer) == bytes[..len.min(bytes.len())], "{len}");
        assert!(buffer.fill(0..len + 1, 0).is_err());
    }
}

/// Elements that the device writes to the host, with the word behind them.
#[test]
fn the_host_is_told() {
    let Some(gpu) = gpu() else { return };
    let set = |to: *mut u8, byte: u8, bytes: usize| {
        // SAFETY: the callers' memory, of so many bytes; it lives until the word has come, or the stream has ended.
        gpu.stream
            .call("test", |raw| unsafe { tandem_cuda::ffi::tandem_cuda_memset(to.cast(), byte.into(), bytes, raw) })
    };
    for (round, len) in [0, 1, 2, 3, 5, 63, 64, 65, 4096].into_iter().enumerate() {
        let byte = 7 + round as u8;
        if round % 2 == 0 {
            gpu.keep_busy(&gpu.stream);
        }
        let enqueue = |to: *mut u8, word: *mut u32| {
            if len > 0 {
                set(to, byte, len)?;
            }
            set(word.cast(), 1, 4)
        };
        // SAFETY: `enqueue` writes the elements, and then the word.
        let told = unsafe { gpu.downloads.told_by::<u8>(&gpu.stream, len, enqueue) }.unwrap();
        assert!(told.wait().unwrap() == vec![byte; len], "{len}");
    }
    // Blocks are used again: what is dropped and never looked at is waited for, and a word that does not come is an error.
    gpu.keep_busy(&gpu.stream);
    // SAFETY: `set` writes one element; the word does not come.
    let told = unsafe { gpu.downloads.told_by::<u8>(&gpu.stream, 1, |to, _| set(to, 0xff, 1)) }.unwrap();
    drop(told);
    // SAFETY: as above.
    let told = unsafe { gpu.downloads.told_by::<u8>(&gpu.stream, 1, |to, _| set(to, 0xff, 1)) }.unwrap();
    let error = told.wait().unwrap_err();
    assert!(error.to_string().contains("a kernel's word"), "{error}");
    // SAFETY: nothing is enqueued.
    let refused = unsafe { gpu.downloads.told_by::<u64>(&gpu.stream, usize::MAX / 8 + 1, |_, _| Ok(())) };
    assert!(refused.unwrap_err().is_out_of_memory());
}
