pragma circom 2.1.6;

include "circomlib/circuits/sha256/sha256.circom";

// SHA-256 of 256 bits: one compression. Only bits and their sums, so it means the same over any field.
component main = Sha256(256);
