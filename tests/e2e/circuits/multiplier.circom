pragma circom 2.1.6;

// The smallest circuit: two private factors of a public product.
template Multiplier() {
    signal input a;
    signal input b;
    signal output c;
    c <== a * b;
}

component main = Multiplier();
