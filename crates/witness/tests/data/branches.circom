pragma circom 2.0.0;

// Branches on signals, for the tests of recordings. Made of it:
//   branches.wasm   circom 2.2.3: circom branches.circom --wasm --O2
template Branches() {
    signal input a;
    signal input b;
    signal output out[4];

    // A branch within a way of another.
    var inner = 3;
    if (a < b) {
        if (a == 7) {
            inner = a + 1;
        } else {
            inner = b * 2;
        }
    }
    out[0] <-- inner;

    // A loop whose end depends on a signal.
    var bits = 0;
    for (var rest = b & 255; rest > 0; rest = rest >> 1) {
        bits = bits + (rest & 1) * a;
    }
    out[1] <-- bits;

    // Integers, of which one way divides.
    out[2] <-- b ? a \ b : 5;
    out[3] <-- a == b ? b % 9 : a;
}

component main = Branches();
