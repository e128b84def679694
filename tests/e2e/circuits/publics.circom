pragma circom 2.1.6;

// A hundred public signals, of which one is zero where x is below 100.
template Publics(n) {
    signal input x;
    signal output y[n];
    for (var i = 0; i < n; i++) {
        y[i] <== (x - i) * (x + i + 1);
    }
}

component main = Publics(100);
