//! Plans over nodes: every move has what it sends, everyone gets what it lacks, and what networks carry is at its bound where the plan says
//! so. What nodes have is followed here, without the planner's code.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tandem_fabric_plan::{Levels, Operation, Ratio};

type Nodes = BTreeSet<usize>;

/// Follows copies of data: by node, whose it has. Moves of one step see what the steps before have left.
fn spread(levels: &Levels, mut has: Vec<Nodes>) -> Vec<Nodes> {
    let last = levels.moves.last().map_or(0, |last| last.step + 1);
    for step in 0..last {
        let before = has.clone();
        for one in levels.moves.iter().filter(|one| one.step == step) {
            assert!(
                one.from != one.to && one.of.iter().all(|of| before[one.from].contains(of)),
                "{one:?} of {before:?}"
            );
            has[one.to].extend(&one.of);
        }
    }
    has
}

/// Follows combinations: each move brings all that its sender has combined, and nothing is combined twice.
fn combined(levels: &Levels, steps: std::ops::Range<usize>) -> Vec<Nodes> {
    let mut has: Vec<Nodes> = (0..levels.pes.len()).map(|node| Nodes::from([node])).collect();
    for one in levels.moves.iter().filter(|one| steps.contains(&one.step)) {
        let sent = std::mem::take(&mut has[one.from]);
        assert_eq!(sent, one.of.iter().copied().collect(), "{one:?}");
        assert!(has[one.to].is_disjoint(&sent), "{one:?}: something is combined twice");
        has[one.to].extend(sent);
    }
    has
}

fn whole(n: usize) -> Ratio {
    Ratio::whole(n as i64)
}

proptest! {
    #[test]
    fn everyone_gets_what_it_lacks(pes in prop::collection::vec(1usize..9, 1..9), pick: prop::sample::Index) {
        let (nodes, root) = (pes.len(), pick.index(pes.len()));
        let all: Nodes = (0..nodes).collect();
        let total: usize = pes.iter().sum();
        let make = |operation| Levels::new(operation, &pes, root).unwrap();
        let own: Vec<Nodes> = (0..nodes).map(|node| Nodes::from([node])).collect();

        let broadcast = make(Operation::Broadcast);
        prop_assert!(spread(&broadcast, own.clone()).iter().all(|has| has.contains(&root)));
        prop_assert!(broadcast.is_best() && broadcast.bound() == whole(usize::from(nodes > 1)));

        let reduce = make(Operation::Reduce);
        prop_assert_eq!(&combined(&reduce, 0..nodes)[root], &all);
        prop_assert!(reduce.is_best());

        let gather = make(Operation::AllGather);
        prop_assert!(spread(&gather, own.clone()).iter().all(|has| *has == all));
        prop_assert!(gather.is_best());
        let least = pes.iter().copied().min().unwrap();
        prop_assert!(nodes == 1 || gather.bound() == whole((total - least).max(pes.iter().copied().max().unwrap())));

        let reduce = make(Operation::AllReduce);
        prop_assert_eq!(&combined(&reduce, 0..nodes - 1)[0], &all);
        // What comes after spreads the result: node 0 has all then.
        let mut has = vec![Nodes::new(); nodes];
        has[0] = all.clone();
        for one in reduce.moves.iter().filter(|one| one.step >= nodes - 1) {
            prop_assert_eq!(&has[one.from], &all);
            has[one.to] = one.of.iter().copied().collect();
        }
        prop_assert!(has.iter().all(|has| *has == all));
        prop_assert!(reduce.is_best() == (nodes <= 2) && reduce.most() <= whole(2));

        let scatter = make(Operation::ReduceScatter);
        prop_assert_eq!(&combined(&scatter, 0..nodes - 1)[0], &all);
        let results: Vec<_> = scatter.moves.iter().filter(|one| one.step == nodes - 1 && nodes > 1).collect();
        prop_assert_eq!(results.len(), nodes - 1);
        prop_assert!(results.iter().all(|one| one.from == 0 && one.amount == whole(pes[one.to])));

        let exchange = make(Operation::AllToAll);
        prop_assert!(exchange.is_best() && exchange.moves.len() == nodes * (nodes - 1));
        for levels in [broadcast, gather, reduce, scatter, exchange] {
            for node in 0..nodes {
                let ((comes, leaves), (least_in, least_out)) = (levels.carried(node), levels.bounds[node]);
                prop_assert!(comes >= least_in && leaves >= least_out, "{}: node {node}", levels.operation.name());
            }
        }
    }
}

#[test]
fn the_page_says_what_moves() {
    let text = Levels::new(Operation::AllGather, &[2, 1], 0).unwrap().to_text(1000);
    assert_eq!(
        text,
        "all-gather over 2 nodes with 2, 1 PEs\n\
         step 0: node 0 -> node 1: 2000 bytes of node 0\n\
         step 0: node 1 -> node 0: 1000 bytes of node 1\n\
         node 0: in 1000 bytes (at least 1000 bytes), out 2000 bytes (at least 2000 bytes)\n\
         node 1: in 2000 bytes (at least 2000 bytes), out 1000 bytes (at least 1000 bytes)\n\
         busiest network: 2000 bytes; bound 2000 bytes: no plan has less\n"
    );
}

#[test]
fn nonsense_is_refused() {
    for (operation, pes, root) in [
        (Operation::Broadcast, &[][..], 0),
        (Operation::Broadcast, &[1, 2], 2),
        (Operation::Reduce, &[1, 0], 0),
        (Operation::Send, &[1, 1], 0),
    ] {
        assert!(Levels::new(operation, pes, root).is_err(), "{operation:?} {pes:?} {root}");
    }
}
