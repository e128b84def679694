//! The examples of the guide, on pretend PEs and on GPUs.

#[path = "../../fabric/tests/teams/mod.rs"]
mod teams;

use tandem_fabric::{Distribution, GlobalArray, OneSided, Options, Symmetric, Team};
use tandem_fabric_examples::{reverse, shift, squares, Stencil};
use teams::{each, numbers};

/// docs/guides/fabric-array.md
#[test]
fn example_of_an_array_written_by_forall() {
    each(&Options::default(), |team| {
        for (len, distribution) in [(1000, Distribution::Block), (777, Distribution::Cyclic), (1, Distribution::Block)]
        {
            let array: GlobalArray<u64> = GlobalArray::new(team, len, distribution).unwrap();
            squares(&array).unwrap();
            team.synchronize().unwrap();
            let expected: Vec<u64> = (0..len as u64).map(|i| i * i).collect();
            assert_eq!(array.read(0..len).unwrap(), expected);

            // Another distribution of the same array, and elements read from everywhere by index.
            let copy: GlobalArray<u64> = GlobalArray::new(team, len, Distribution::BlockCyclic(7)).unwrap();
            copy.assign(&array).unwrap();
            if team.is_cuda() {
                let reversed: GlobalArray<u64> = GlobalArray::new(team, len, Distribution::Block).unwrap();
                reverse(team, &reversed, &copy).unwrap();
                team.synchronize().unwrap();
                assert!(reversed.read(0..len).unwrap().iter().rev().eq(&expected));
            }
            team.synchronize().unwrap();
            assert_eq!(copy.read(0..len).unwrap(), expected);
        }
    });
}

/// docs/guides/fabric-shift.md
#[test]
fn example_of_a_shift_along_a_ring() {
    each(&Options::default(), |team| {
        let slot: Symmetric<i32> = team.alloc(1).unwrap();
        for pe in 0..team.size() {
            team.write(pe, &slot, &[-1]).unwrap();
        }
        for queue in team.queues() {
            if team.is_cuda() {
                shift(queue, &slot).unwrap();
            } else {
                let slot = slot.clone();
                queue.run(move |pe| pe.p(&slot, pe.me() as i32, (pe.me() + 1) % pe.size())).unwrap();
            }
        }
        team.barrier().unwrap();
        team.synchronize().unwrap();
        for pe in 0..team.size() {
            let before = (pe + team.size() - 1) % team.size();
            assert_eq!(team.read(pe, &slot).unwrap(), [before as i32]);
        }
    });
}

/// One point after the other, over the field as a whole.
fn naive(field: &[f32], columns: usize, steps: usize) -> Vec<f32> {
    let mut now = field.to_vec();
    let rows = field.len() / columns;
    for _ in 0..steps {
        let old = now.clone();
        for row in 1..rows.saturating_sub(1) {
            for column in 1..columns - 1 {
                let at = |r: usize, c: usize| old[r * columns + c];
                now[row * columns + column] =
                    0.25 * ((at(row - 1, column) + at(row + 1, column)) + (at(row, column - 1) + at(row, column + 1)));
            }
        }
    }
    now
}

/// A step of a pretend PE: as the kernels of the example do it.
fn step(pe: &tandem_fabric::Pe, shape: Stencil, to: &Symmetric<f32>, from: &Symmetric<f32>, by_rows: bool) {
    let (columns, rows) = (shape.columns as usize, shape.rows as usize);
    let old = pe.load(from).unwrap();
    let mut new = pe.load(to).unwrap();
    for row in 1..=rows {
        for column in 0..columns {
            let edge = (pe.me() == 0 && row == 1) || (pe.me() == pe.size() - 1 && row == rows);
            let at = |r: usize, c: usize| old[r * columns + c];
            new[row * columns + column] = if edge || column == 0 || column == columns - 1 {
                at(row, column)
            } else {
                0.25 * ((at(row - 1, column) + at(row + 1, column)) + (at(row, column - 1) + at(row, column + 1)))
            };
        }
    }
    // Only the own rows: the halos are others' to write.
    let own = columns..(rows + 1) * columns;
    pe.store(&to.slice(own.clone()).unwrap(), &new[own]).unwrap();
    let send = |row: usize, halo: usize, peer: usize| {
        let place = |row: usize| to.slice(row * columns..(row + 1) * columns).unwrap();
        if by_rows {
            pe.put(&place(halo), &place(row), peer).unwrap();
        } else {
            for column in 0..columns {
                pe.p(&place(halo).at(column).unwrap(), new[row * columns + column], peer).unwrap();
            }
        }
    };
    if pe.me() > 0 {
        send(1, rows + 1, pe.me() - 1);
    }
    if pe.me() + 1 < pe.size() {
        send(rows, 0, pe.me() + 1);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Halo {
    ByThreads,
    ByBlocks,
    InOneKernel,
}

/// docs/guides/fabric-stencil.md
#[test]
fn example_of_a_stencil_with_halos() {
    each(&Options::default(), |team| {
        for (columns, rows, steps) in [(37, 5, 9), (3, 1, 4), (300, 64, 21)] {
            // Large fields are for GPUs.
            if rows > 50 && !team.is_cuda() {
                continue;
            }
            for halo in [Halo::ByThreads, Halo::ByBlocks, Halo::InOneKernel] {
                stencil(team, Stencil { columns, rows }, steps, halo);
            }
        }
    });
}

fn stencil(team: &Team, shape: Stencil, steps: usize, halo: Halo) {
    let (columns, rows) = (shape.columns as usize, shape.rows as usize);
    let field: Vec<f32> =
        numbers::<u8>(team.size() * rows * columns, steps as u64).iter().map(|&x| f32::from(x)).collect();
    let points = shape.points() as usize;
    let (a, b): (Symmetric<f32>, Symmetric<f32>) = (team.alloc(points).unwrap(), team.alloc(points).unwrap());
    for pe in 0..team.size() {
        // With the halos of the start; outside the whole field nothing reads them.
        let part = |row: usize| (pe * rows + row).checked_sub(1).filter(|row| *row < team.size() * rows);
        let row =
            |row: usize| part(row).map_or(vec![f32::NAN; columns], |row| field[row * columns..][..columns].to_vec());
        let contents: Vec<f32> = (0..rows + 2).flat_map(row).collect();
        team.write(pe, &a, &contents).unwrap();
        team.write(pe, &b, &vec![f32::NAN; points]).unwrap();
    }
    let fields = |step: usize| if step.is_multiple_of(2) { (&b, &a) } else { (&a, &b) };
    match (halo, team.is_cuda()) {
        (Halo::InOneKernel, true) => shape.run(team, &a, &b, steps as u64, 8).unwrap(),
        (Halo::InOneKernel, false) => {
            for queue in team.queues() {
                let (a, b) = (a.clone(), b.clone());
                queue
                    .run(move |pe| {
                        for now in 0..steps {
                            let (to, from) = if now % 2 == 0 { (&b, &a) } else { (&a, &b) };
                            step(pe, shape, to, from, true);
                            pe.barrier()?;
                        }
                        Ok(())
                    })
                    .unwrap();
            }
        }
        (_, is_cuda) => {
            let by_blocks = halo == Halo::ByBlocks;
            for now in 0..steps {
                let (to, from) = fields(now);
                for queue in team.queues() {
                    if is_cuda {
                        shape.step(queue, to, from, by_blocks).unwrap();
                    } else {
                        let (to, from) = (to.clone(), from.clone());
                        queue
                            .run(move |pe| {
                                step(pe, shape, &to, &from, by_blocks);
                                Ok(())
                            })
                            .unwrap();
                    }
                }
                team.barrier().unwrap();
            }
        }
    }
    team.synchronize().unwrap();
    let expected = naive(&field, columns, steps);
    for pe in 0..team.size() {
        let result = team.read(pe, fields(steps - 1).0).unwrap();
        let own = &expected[pe * rows * columns..][..rows * columns];
        assert!(result[columns..(rows + 1) * columns] == *own, "{halo:?}, {shape:?}, PE {pe} of {}", team.size());
    }
}
