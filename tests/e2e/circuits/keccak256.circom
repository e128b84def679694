pragma circom 2.1.6;

// Keccak-f[1600] (FIPS 202, section 3.3) on one block of SHA3-256 or Keccak-256, padded, each byte's lowest bit first.

template Xor(n) {
    signal input a[n];
    signal input b[n];
    signal output out[n];
    for (var i = 0; i < n; i++) {
        out[i] <== a[i] + b[i] - 2 * a[i] * b[i];
    }
}

// Lane x, y of the state begins at bit 64 (x + 5 y).
template Round(constant) {
    signal input in[1600];
    signal output out[1600];
    var offsets[25] = [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

    // Theta: the parity of two columns.
    component parity[4];
    for (var y = 1; y < 5; y++) {
        parity[y - 1] = Xor(320);
        for (var i = 0; i < 320; i++) {
            parity[y - 1].a[i] <== y == 1 ? in[i] : parity[y - 2].out[i];
            parity[y - 1].b[i] <== in[320 * y + i];
        }
    }
    component both = Xor(320);
    for (var x = 0; x < 5; x++) {
        for (var z = 0; z < 64; z++) {
            both.a[64 * x + z] <== parity[3].out[64 * ((x + 4) % 5) + z];
            both.b[64 * x + z] <== parity[3].out[64 * ((x + 1) % 5) + (z + 63) % 64];
        }
    }
    component theta = Xor(1600);
    for (var i = 0; i < 1600; i++) {
        theta.a[i] <== in[i];
        theta.b[i] <== both.out[i % 320];
    }

    // Rho and pi: lanes are rotated, and change places.
    signal moved[1600];
    for (var x = 0; x < 5; x++) {
        for (var y = 0; y < 5; y++) {
            for (var z = 0; z < 64; z++) {
                var to = y + 5 * ((2 * x + 3 * y) % 5);
                moved[64 * to + (z + offsets[x + 5 * y]) % 64] <== theta.out[64 * (x + 5 * y) + z];
            }
        }
    }

    // Chi and iota.
    component chi = Xor(1600);
    for (var y = 0; y < 5; y++) {
        for (var x = 0; x < 5; x++) {
            for (var z = 0; z < 64; z++) {
                var at = 64 * (x + 5 * y) + z;
                chi.a[at] <== moved[at];
                chi.b[at] <== (1 - moved[64 * ((x + 1) % 5 + 5 * y) + z]) * moved[64 * ((x + 2) % 5 + 5 * y) + z];
            }
        }
    }
    for (var i = 0; i < 1600; i++) {
        var bit = i < 64 ? (constant >> i) & 1 : 0;
        out[i] <== bit == 1 ? 1 - chi.out[i] : chi.out[i];
    }
}

template Keccak256Block() {
    signal input in[1088];
    signal output out[256];
    var constants[24] = [
        0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
        0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
        0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
        0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008
    ];
    component rounds[24];
    for (var r = 0; r < 24; r++) {
        rounds[r] = Round(constants[r]);
        for (var i = 0; i < 1600; i++) {
            if (r > 0) {
                rounds[r].in[i] <== rounds[r - 1].out[i];
            } else {
                rounds[r].in[i] <== i < 1088 ? in[i] : 0;
            }
        }
    }
    for (var i = 0; i < 256; i++) {
        out[i] <== rounds[23].out[i];
    }
}

component main = Keccak256Block();
