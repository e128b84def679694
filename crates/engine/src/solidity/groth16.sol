// SPDX-License-Identifier: {{LICENCE}}
// Made by tandem export-solidity of a Groth16 key over BN254 with public signals: {{PUBLICS}}.
{{REMARKS}}pragma solidity ^0.8.20;

/// Verifies Groth16 proofs of one circuit. A proof (A, B, C) for the public signals x_1 .. x_N is valid where
///     e(A, B) = e(alpha, beta) e(L, gamma) e(C, delta),  L = IC_0 + x_1 IC_1 + .. + x_N IC_N.
/// The contract holds -alpha, -gamma and -delta, and checks e(A, B) e(-alpha, beta) e(L, -gamma) e(C, -delta) = 1.
/// A point is x, y; in G2 each coordinate is two words, that of i first (EIP-197). Infinity is 0, 0.
contract Groth16Verifier {
    /// Order of the groups.
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    /// Number of public signals.
    uint256 private constant N = {{PUBLICS}};

    uint256 private constant MINUS_ALPHA_X = {{MINUS_ALPHA_X}};
    uint256 private constant MINUS_ALPHA_Y = {{MINUS_ALPHA_Y}};
    uint256 private constant BETA_X1 = {{BETA_X1}};
    uint256 private constant BETA_X0 = {{BETA_X0}};
    uint256 private constant BETA_Y1 = {{BETA_Y1}};
    uint256 private constant BETA_Y0 = {{BETA_Y0}};
    uint256 private constant MINUS_GAMMA_X1 = {{MINUS_GAMMA_X1}};
    uint256 private constant MINUS_GAMMA_X0 = {{MINUS_GAMMA_X0}};
    uint256 private constant MINUS_GAMMA_Y1 = {{MINUS_GAMMA_Y1}};
    uint256 private constant MINUS_GAMMA_Y0 = {{MINUS_GAMMA_Y0}};
    uint256 private constant MINUS_DELTA_X1 = {{MINUS_DELTA_X1}};
    uint256 private constant MINUS_DELTA_X0 = {{MINUS_DELTA_X0}};
    uint256 private constant MINUS_DELTA_Y1 = {{MINUS_DELTA_Y1}};
    uint256 private constant MINUS_DELTA_Y0 = {{MINUS_DELTA_Y0}};

    /// Whether a proof is valid. False, too, for words that are no points, and for a public signal that is not below R.
    /// The precompiled contracts refuse coordinates that are not below the base field's order, points off the curve
    /// and points of G2 outside the group.
    function verifyProof(
        uint256[2] calldata a,
        uint256[2][2] calldata b,
        uint256[2] calldata c,
        uint256[{{DIMENSION}}] calldata pub
    ) external view returns (bool) {
        if (pub.length != N) return false;
        uint256[2 * N + 2] memory ic = [
            {{IC}}
        ];
        // L so far, then a point and its factor.
        uint256[5] memory sum;
        (sum[0], sum[1]) = (ic[0], ic[1]);
        unchecked {
            for (uint256 i = 0; i < N; ++i) {
                // Else x_i and x_i + R would be the same.
                if (pub[i] >= R) return false;
                (sum[2], sum[3], sum[4]) = (ic[2 * i + 2], ic[2 * i + 3], pub[i]);
                if (!addMultiple(sum)) return false;
            }
        }
        uint256[24] memory pairs = [
            a[0], a[1], b[0][0], b[0][1], b[1][0], b[1][1],
            MINUS_ALPHA_X, MINUS_ALPHA_Y, BETA_X1, BETA_X0, BETA_Y1, BETA_Y0,
            sum[0], sum[1], MINUS_GAMMA_X1, MINUS_GAMMA_X0, MINUS_GAMMA_Y1, MINUS_GAMMA_Y0,
            c[0], c[1], MINUS_DELTA_X1, MINUS_DELTA_X0, MINUS_DELTA_Y1, MINUS_DELTA_Y0
        ];
        bool done;
        assembly ("memory-safe") {
            done := staticcall(gas(), 8, pairs, 0x300, pairs, 0x20)
            // Where nothing was returned, the word is still the proof's: so it is on a chain without this precompiled contract.
            done := and(done, eq(returndatasize(), 0x20))
        }
        return done && pairs[0] == 1;
    }

    /// (s0, s1) += s4 (s2, s3). False where a point is none.
    function addMultiple(uint256[5] memory s) private view returns (bool done) {
        assembly ("memory-safe") {
            let term := add(s, 0x40)
            // A call that fails takes all gas that it is given, 63/64 of what there is: nothing is called after it.
            if staticcall(gas(), 7, term, 0x60, term, 0x40) {
                done := staticcall(gas(), 6, s, 0x80, s, 0x40)
            }
        }
    }
}
