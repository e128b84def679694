pragma circom 2.0.6;
pragma custom_templates;
template custom G(k) { signal input a; signal output b; b <-- a*k; }
template M() { signal input a; signal output b; signal t; component g = G(7); g.a <== a; t <== g.b * a; b <== t + 1; }
component main = M();
