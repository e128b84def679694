pragma circom 2.0.0;

// Logs text and values of every kind, then asserts.
template Log() {
    signal input a;
    signal input b[2];
    signal output c;
    log("values", a, b[0], -1);
    log("two  spaces ", b[1], " at the end ");
    log("");
    log(a);
    assert(a != 0);
    c <== a * b[0] + b[1];
    log("c =", c);
}

component main = Log();
