pragma circom 2.0.0;
template M() { signal input a; signal input b; signal t; t <== a*b; t*t === a + 6; }
component main = M();
