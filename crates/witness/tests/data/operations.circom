pragma circom 2.0.0;

// Operations of circom on three signals, for the tests of graphs. Made of it:
//   operations.wasm   circom 2.2.3: circom operations.circom --wasm --O2
//   operations.graph  circom-witnesscalc 0.2.0: build-circuit operations.circom operations.graph
// No division by a value of the inputs: circom's programs end there, a graph gives 0.
template Operations() {
    signal input a;
    signal input b[2];
    signal output out[24];

    out[0] <-- a + b[0];
    out[1] <-- a - b[0];
    out[2] <-- a * b[0];
    out[3] <-- a / (b[0] * b[0] + 1);
    out[4] <-- a \ (b[1] | 1);
    out[5] <-- a % (b[1] | 1);
    out[6] <-- a * a;
    out[7] <-- -a;
    out[8] <-- b[0] - a;
    out[9] <-- a & b[0];
    out[10] <-- a | b[0];
    out[11] <-- a ^ b[0];
    out[12] <-- a << (b[1] & 255);
    out[13] <-- a >> (b[1] & 255);
    out[14] <-- a << b[1];
    out[15] <-- a >> b[1];
    out[16] <-- a < b[0];
    out[17] <-- a > b[0];
    out[18] <-- a <= b[0];
    out[19] <-- a >= b[0];
    out[20] <-- a == b[0];
    out[21] <-- a != b[0];
    out[22] <-- a && b[0];
    out[23] <-- a < b[1] ? a * b[0] : b[1] - 5;
}

component main = Operations();
