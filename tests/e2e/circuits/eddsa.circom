pragma circom 2.1.6;

include "circomlib/circuits/eddsaposeidon.circom";

// A signature on Baby Jubjub over a Poseidon hash; the public key and the message are public.
component main {public [enabled, Ax, Ay, M]} = EdDSAPoseidonVerifier();
