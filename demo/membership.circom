pragma circom 2.1.6;

include "circomlib/circuits/poseidon.circom";

// Membership in a set of 2^depth secrets: "I know a secret whose hash is a leaf of the Merkle tree with this root."
// The secret, the leaf's place and the path to the root stay private; the root is the only public signal.
template Membership(depth) {
    signal input secret;
    signal input index[depth];      // bits of the leaf's place, lowest first: 1 if our node is the right child
    signal input siblings[depth];   // the other child on each level, leaf level first
    signal output root;

    signal node[depth + 1];
    signal left[depth];
    signal right[depth];
    component hash[depth];

    component leaf = Poseidon(1);
    leaf.inputs[0] <== secret;
    node[0] <== leaf.out;

    for (var level = 0; level < depth; level++) {
        index[level] * (index[level] - 1) === 0;
        left[level] <== node[level] + index[level] * (siblings[level] - node[level]);
        right[level] <== node[level] + siblings[level] - left[level];
        hash[level] = Poseidon(2);
        hash[level].inputs[0] <== left[level];
        hash[level].inputs[1] <== right[level];
        node[level + 1] <== hash[level].out;
    }

    root <== node[depth];
}

component main = Membership(20);
