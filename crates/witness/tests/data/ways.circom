pragma circom 2.0.0;

// Branches whose ways only calculate, for the tests of recordings. Made of it:
//   ways.wasm   circom 2.2.3: circom ways.circom --wasm --O2
function larger(x, y) {
    var found = x;
    if (y > x) {
        found = y;
    }
    return found;
}

template Ways() {
    signal input a;
    signal input b;
    signal input one;
    signal output out[11];

    // circomlib's IsZero.
    out[0] <-- a != 0 ? 1 / a : 0;
    // A condition that is no truth, in both ways what is there already.
    out[1] <-- a - 3 ? b : a;
    // One way.
    var v = a * 5;
    if (a < b) {
        v = v * b;
    }
    out[2] <-- v;
    // Each way leaves other elements, and uses what it has left.
    var w[2] = [b, 7];
    if (b == 3) {
        w[0] = a + 1;
        w[1] = w[0] * w[0] - w[1];
        w[0] = w[1] * b;
    } else {
        w[1] = w[1] + b;
    }
    out[3] <-- w[0];
    out[4] <-- w[1];
    // An exchange, and a function.
    var x = a;
    var y = b;
    if (x > y) {
        var t = x;
        x = y;
        y = t;
    }
    out[5] <-- x;
    out[6] <-- y - 2 * x;
    out[7] <-- larger(a, b);
    // A condition that is the same in all runs.
    var sum = 0;
    for (var i = 0; i < 4; i++) {
        if (i % 2 == 0) {
            sum = sum + a;
        } else {
            sum = sum * b + i;
        }
    }
    out[8] <-- sum;
    // One that is known from an assertion.
    one === 1;
    out[10] <-- one == 1 ? a * b : a + b;
    // Of one constant or another.
    out[9] <-- b != 3 ? 1 : 2;
}

component main = Ways();
