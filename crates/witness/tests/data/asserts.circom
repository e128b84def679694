pragma circom 2.0.0;

// A condition that holds of every witness, and no branch, for the tests of recordings. Made of it:
//   asserts.wasm      circom 2.2.3: circom asserts.circom --wasm --O2
template Asserts() {
    signal input a;
    signal input b;
    signal output c;

    a * (a - 1) === 0;
    c <== a * b;
}

component main = Asserts();
