//! Global arrays, on pretend PEs and on GPUs.

mod teams;

use tandem_fabric::topology::Topology;
use tandem_fabric::{Collectives, Distribution, Error, GlobalArray, Options, Team};
use teams::{each, each_cuda, numbers};

fn distributions(len: usize) -> [Distribution; 4] {
    [Distribution::Block, Distribution::Cyclic, Distribution::BlockCyclic(5), Distribution::BlockCyclic(len / 3 + 1)]
}

/// Writes and reads of any part of an array, against a vector.
#[test]
fn arrays_are_written_and_read_from_the_host() {
    each(&Options::default(), |team| {
        for len in [0, 1, 2, team.size(), 64, 65, 1003] {
            for distribution in distributions(len) {
                let array: GlobalArray<u32> = GlobalArray::new(team, len, distribution).unwrap();
                assert_eq!((array.len(), array.is_empty()), (len, len == 0));
                let mut model = vec![0; len];
                assert_eq!(array.read(0..len).unwrap(), model);
                for round in 0..6u64 {
                    let random: Vec<u16> = numbers(2, round + len as u64);
                    let (a, b) = (usize::from(random[0]) % (len + 1), usize::from(random[1]) % (len + 1));
                    let (from, to) = (a.min(b), a.max(b));
                    model[from..to].copy_from_slice(&numbers::<u32>(to - from, round));
                    array.write(from, &model[from..to]).unwrap();
                    assert!(array.read(0..len).unwrap() == model, "{len} elements, {distribution:?}");
                    assert!(array.read(from..to).unwrap() == model[from..to]);
                }
                // Each part has what the layout says.
                for pe in 0..team.size() {
                    let mine = team.read(pe, array.part()).unwrap();
                    for place in 0..array.layout().local_len(pe) {
                        assert_eq!(mine[place], model[array.layout().index_of(pe, place)]);
                    }
                }
                assert!(array.read(0..len + 1).is_err());
                assert!(array.write(len, &[1]).is_err());
                assert!(array.write(usize::MAX, &[1]).is_err());
            }
        }
    });
}

/// Assignment between every two distributions, for elements of several sizes.
fn assignments<T: From<u8> + bytemuck::Pod + PartialEq>(team: &Team, len: usize) {
    for to in distributions(len) {
        for from in distributions(len) {
            let source: GlobalArray<T> = GlobalArray::new(team, len, from).unwrap();
            let target: GlobalArray<T> = GlobalArray::new(team, len, to).unwrap();
            let contents: Vec<T> = numbers(len, len as u64);
            source.write(0, &contents).unwrap();
            target.assign(&source).unwrap();
            team.synchronize().unwrap();
            let bytes = size_of::<T>();
            assert!(target.read(0..len).unwrap() == contents, "{len} of {bytes} bytes, {to:?} from {from:?}");
        }
    }
}

#[test]
fn arrays_are_assigned() {
    each(&Options::default(), |team| {
        for len in [0, 1, 17, 500] {
            assignments::<u8>(team, len);
            assignments::<u32>(team, len);
        }
        assignments::<u16>(team, 301);
        assignments::<u64>(team, 301);
        let a: GlobalArray<u8> = GlobalArray::new(team, 5, Distribution::Block).unwrap();
        let b: GlobalArray<u8> = GlobalArray::new(team, 6, Distribution::Block).unwrap();
        assert!(a.assign(&b).is_err());
    });
}

/// PEs that do not reach each other: short runs go by the host, long ones as copies or over what ways there are.
#[test]
fn arrays_are_assigned_between_pes_that_are_apart() {
    let check = |team: &Team| {
        for len in [0, 1, 17, 500] {
            assignments::<u8>(team, len);
            assignments::<u64>(team, len);
        }
        let ways = Collectives::new(team, &Topology::preset("bridge-pairs").unwrap()).unwrap();
        let len = team.size() * (5 << 20) / 8 + 12345;
        let blocks = Distribution::BlockCyclic((9 << 20) / 16);
        let contents: Vec<u64> = (0..len as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let arrays = |distribution| -> [GlobalArray<u64>; 2] {
            [GlobalArray::new(team, len, distribution).unwrap(), GlobalArray::over(&ways, len, distribution).unwrap()]
        };
        for (block, runs) in arrays(Distribution::Block).into_iter().zip(arrays(blocks)) {
            block.write(0, &contents).unwrap();
            runs.assign(&block).unwrap();
            block.assign(&runs).unwrap();
            team.synchronize().unwrap();
            assert!(runs.read(0..len).unwrap() == contents && block.read(0..len).unwrap() == contents);
        }
        // A recording would hold nothing of what the host copies.
        let cyclic: GlobalArray<u8> = GlobalArray::new(team, 100, Distribution::Cyclic).unwrap();
        let block: GlobalArray<u8> = GlobalArray::new(team, 100, Distribution::Block).unwrap();
        let recorded = team.queue(0).capture(|_| cyclic.assign(&block));
        assert!(matches!(recorded, Err(Error::NoPeer { .. })), "{:?}", recorded.err());
    };
    let pairs = Options { apart: vec![(0, 2), (0, 3), (1, 2), (1, 3)], ..Options::default() };
    let two = Options { apart: vec![(0, 1)], ..Options::default() };
    check(&Team::sim(4, pairs).unwrap());
    check(&Team::sim(2, two.clone()).unwrap());
    let gpus = tandem_cuda::testing::at_least(2);
    if gpus.len() > 1 {
        check(&Team::cuda(&gpus[..2], two).unwrap());
    }
}

/// Runs that are long enough for every path, on GPUs.
#[test]
fn very_long_arrays_are_assigned() {
    each_cuda(&Options::default(), |team| {
        if team.size() != 2 {
            return;
        }
        let ways = Collectives::new(team, &Topology::preset("h200-pair").unwrap()).unwrap();
        // Each PE gets half of its elements, 160 MiB, from the other.
        let len = (640 << 20) / 8;
        let block: GlobalArray<u64> = GlobalArray::over(&ways, len, Distribution::Block).unwrap();
        let runs: GlobalArray<u64> = GlobalArray::over(&ways, len, Distribution::BlockCyclic(len / 4)).unwrap();
        let contents: Vec<u64> = (0..len as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        block.write(0, &contents).unwrap();
        runs.assign(&block).unwrap();
        team.synchronize().unwrap();
        assert!(runs.read(0..len).unwrap() == contents);
    });
}

/// Long runs go by copies.
#[test]
fn long_arrays_are_assigned() {
    each(&Options::default(), |team| {
        // The blocks of one are longer than the shortest copy, and cut those of the other.
        let len = team.size() * (5 << 20) / 8 + 12345;
        let block: GlobalArray<u64> = GlobalArray::new(team, len, Distribution::Block).unwrap();
        let runs: GlobalArray<u64> = GlobalArray::new(team, len, Distribution::BlockCyclic((9 << 20) / 16)).unwrap();
        let contents: Vec<u64> = (0..len as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        block.write(0, &contents).unwrap();
        runs.assign(&block).unwrap();
        block.assign(&runs).unwrap();
        team.synchronize().unwrap();
        assert!(runs.read(0..len).unwrap() == contents && block.read(0..len).unwrap() == contents);
    });
}
