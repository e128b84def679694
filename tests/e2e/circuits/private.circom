pragma circom 2.1.6;

// No public signal at all: the proof says only that some x with x^3 + x + 5 = 35 is known.
template Cubic() {
    signal input x;
    signal square;
    signal cube;
    square <== x * x;
    cube <== square * x;
    35 === cube + x + 5;
}

component main = Cubic();
