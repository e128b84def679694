pragma circom 2.1.6;

// Functions that branch on their arguments, with loops, early returns, calls of each other and what ends a run, for the tests of recordings.
// Made of it:
//   functions.wasm   circom 2.2.3: circom functions.circom --wasm --O2

function is_above(a, b) {
    for (var i = 2; i >= 0; i--) {
        if (a[i] > b[i]) {
            return 1;
        }
        if (a[i] < b[i]) {
            return 0;
        }
    }
    return 0;
}

function less(a, b) {
    var difference[3];
    var borrow = 0;
    for (var i = 0; i < 3; i++) {
        if (a[i] >= b[i] + borrow) {
            difference[i] = a[i] - b[i] - borrow;
            borrow = 0;
        } else {
            difference[i] = a[i] - b[i] - borrow + 256;
            borrow = 1;
        }
    }
    return difference;
}

// a mod b, where it takes two steps at most; else what is left.
function reduced(a, b) {
    var out[3] = a;
    if (is_above(a, b) == 1) {
        out = less(a, b);
        if (is_above(out, b) == 1) {
            return less(out, b);
        }
        for (var i = 0; i < 3; i++) {
            out[i] += 1;
        }
    }
    return out;
}

// A division by 0 on ways that are not gone, and where a is 9 on the one that is; an assertion that holds on one way alone.
function quotient(a, b) {
    if (b == 0 && a != 9) {
        var five = 0;
        for (var i = 0; i < 5; i++) {
            five++;
        }
        return five;
    }
    if (a > 100) {
        for (var i = 0; i < 2; i++) {
            assert(b < 50);
        }
        return a % b;
    }
    return a \ b;
}

// A loop that ends at once but for some inputs.
function digits(a) {
    var count = 1;
    while (a[2] == 77) {
        count++;
        a[2] = a[1];
    }
    return count + a[0];
}

// A place in an array that follows from the way.
function first_even(a) {
    var at = 3;
    for (var i = 2; i >= 0; i--) {
        if (a[i] % 2 == 0) {
            at = i;
            for (var j = 0; j < 0; j++) {
                at = 0;
            }
        }
    }
    var found = 1000;
    if (at != 3) {
        var list[4] = [a[0], a[1], a[2], 1000];
        for (var i = 0; i < 3; i++) {
            if (i == at) {
                found = list[i];
            }
        }
    }
    return found;
}

template Functions() {
    signal input a[3];
    signal input b[3];
    signal output above;
    signal output rest[3];
    signal output divided[3];
    signal output counted;
    signal output even;

    above <-- is_above(a, b);
    var r[3] = reduced(a, b);
    for (var i = 0; i < 3; i++) {
        rest[i] <-- r[i];
    }
    divided[0] <-- quotient(a[0], b[0]);
    divided[1] <-- b[1] ? a[1] \ b[1] : 5;
    divided[2] <-- b[1] == 0 ? 6 : a[1] % b[1];
    counted <-- digits(a);
    even <-- first_even(a);
    above * 1 === above;
}

component main = Functions();
