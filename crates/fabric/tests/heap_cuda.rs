//! What only GPUs have: streams, and memory of one's own. Where there is none each test is passed over, or fails if
//! `TANDEM_REQUIRE_GPU=1`.

mod teams;

use std::sync::Arc;
use tandem_fabric::{Error, OneSided, Options, Symmetric};
use teams::{each_cuda, numbers};

#[test]
fn a_gpu_runs_no_programs_and_its_stream_takes_users_work() {
    each_cuda(&Options::default(), |team| {
        let queue = team.queue(team.size() - 1);
        assert!(queue.run(|_| Ok(())).unwrap_err().to_string().contains("Queue::call"));
        let memory: Symmetric<u32> = team.alloc(1000).unwrap();
        let at = queue.address(&memory).unwrap();
        queue
            .call("fill", |stream, handle| {
                assert_eq!((handle.size as usize, handle.me as usize), (team.size(), team.size() - 1));
                let here = handle.heap + u64::from(handle.world[handle.me as usize]) * handle.window;
                assert_eq!(at - here, memory.offset().unwrap());
                // SAFETY: the bytes are those of `memory`.
                unsafe { tandem_cuda::ffi::tandem_cuda_memset(at as *mut u8, 0x5a, 4000, stream) }
            })
            .unwrap();
        queue.synchronize().unwrap();
        assert_eq!(team.read(queue.me(), &memory).unwrap(), vec![0x5a5a_5a5a; 1000]);
        let failed = queue.call("fail", |_, _| tandem_cuda::ffi::TANDEM_INVALID).unwrap_err();
        assert!(matches!(failed, Error::Device(_)), "{failed:?}");
        team.check().unwrap();
    });
}

#[test]
fn a_stream_of_the_callers_is_a_queue() {
    each_cuda(&Options::default(), |team| {
        let me = team.size() - 1;
        let device = team.queue(me).stream().unwrap().device();
        let own = tandem_cuda::Stream::new(device).unwrap();
        // SAFETY: the stream outlives the queue.
        let borrowed = || Arc::new(unsafe { tandem_cuda::Stream::borrowed(device, own.raw()) });
        let (from, to): (Symmetric<u8>, Symmetric<u8>) = (team.alloc(1 << 20).unwrap(), team.alloc(1 << 20).unwrap());
        for value in 1..20 {
            let queue = team.queue_on(me, borrowed()).unwrap();
            let at = queue.address(&from).unwrap() as *mut u8;
            // SAFETY: the bytes are those of `from`.
            own.call("fill", |raw| unsafe { tandem_cuda::ffi::tandem_cuda_memset(at, value, 1 << 20, raw) }).unwrap();
            queue.put(&to, &from, 0).unwrap();
            drop(queue);
            own.synchronize().unwrap();
            assert!(team.read(0, &to).unwrap() == vec![value as u8; 1 << 20]);
        }
        assert!(team.queue_on(team.size(), borrowed()).is_err());
        if team.size() > 1 && team.name(0) != team.name(me) {
            assert!(team.queue_on(0, borrowed()).err().unwrap().to_string().contains("for PE 0"));
        }
    });
}

#[test]
fn large_memory_grows_and_moves() {
    each_cuda(&Options::default(), |team| {
        let n = team.size();
        const LEN: usize = 100 << 20;
        let (a, b): (Symmetric<u8>, Symmetric<u8>) = (team.alloc(LEN).unwrap(), team.alloc(LEN).unwrap());
        let bytes: Vec<u8> = numbers(LEN, 77);
        for me in 0..n {
            team.write(me, &a, &bytes).unwrap();
            team.queue(me).put(&b, &a, (me + 1) % n).unwrap();
        }
        team.synchronize().unwrap();
        for me in 0..n {
            assert!(team.read(me, &b).unwrap() == bytes);
        }
    });
}

#[test]
fn registered_memory_of_another_gpu_is_refused() {
    each_cuda(&Options::default(), |team| {
        assert!(team.register(Vec::<tandem_fabric::Memory<u8>>::new()).is_err());
        let on_host = (0..team.size()).map(|_| tandem_fabric::Memory::Host(vec![1u8; 4])).collect();
        assert!(team.register(on_host).unwrap_err().to_string().contains("host memory for PE 0"));
        let mut buffers = teams::buffers(team, &vec![vec![1u8; 4]; team.size()]);
        if team.size() > 1 && team.name(0) != team.name(1) {
            buffers.swap(0, 1);
            assert!(team.register(buffers).unwrap_err().to_string().contains("memory of cuda:1 for PE 0"));
        }
    });
}
