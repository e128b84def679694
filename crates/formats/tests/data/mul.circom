pragma circom 2.0.0;
template M() { signal input a; signal input b; signal input c; signal output d; signal t; t <== a*b + 3*c; d <== t*c - a; }
component main {public [a]} = M();
