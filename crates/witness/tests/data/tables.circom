pragma circom 2.1.6;

// Places in arrays of constants that depend on the inputs, for the tests of recordings. Made of it:
//   tables.wasm   circom 2.2.3: circom tables.circom --wasm --O2

function one(x) {
    var table[5] = [11, -22, 33, 2**200, 55];
    return table[x];
}

// With variables before the table and behind it.
function two(x, y) {
    var before = 7;
    var table[3][4];
    for (var i = 0; i < 3; i++) {
        for (var j = 0; j < 4; j++) {
            table[i][j] = before * i + 100 * j * j;
        }
    }
    var behind = table[x][y];
    return behind + before;
}

// On one way alone there is a place, and one whose table is of constants of that way.
function some(x, y) {
    var table[4] = [5, 6, 7, 8];
    if (x < 4) {
        return table[x];
    }
    table[0] = 9;
    for (var i = 0; i < 2; i++) {
        table[1] += i;
    }
    return table[y];
}

template Tables() {
    signal input a;
    signal input b;
    signal output out[7];

    var own[8] = [1, 2, 4, 8, 16, 32, 64, 128];
    var grid[2][6];
    for (var i = 0; i < 2; i++) {
        for (var j = 0; j < 6; j++) {
            grid[i][j] = 1000 * i - j;
        }
    }
    out[0] <-- one(a);
    out[1] <-- two(a, b);
    out[2] <-- some(a, b);
    out[3] <-- own[b];
    // What an index is made of, and an index that is a constant.
    out[4] <-- own[a + b];
    out[6] <-- grid[b \ 2][a + b];
    own[3] = a;
    out[5] <-- own[2];
    out[0] * 1 === out[0];
}

component main = Tables();
