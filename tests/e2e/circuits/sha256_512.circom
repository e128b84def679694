pragma circom 2.1.6;

include "circomlib/circuits/sha256/sha256.circom";

// SHA-256 of 512 bits: two compressions. The digest is public, the message is not.
component main = Sha256(512);
