// SPDX-License-Identifier: {{LICENCE}}
// Made by tandem export-solidity of a PLONK key over BN254 with public signals: {{PUBLICS}}.
{{REMARKS}}pragma solidity ^0.8.20;

{{FIELD}}/// Verifies PLONK proofs of one circuit: those of snarkjs, with its challenges. With
///     F = a b Qm + a Ql + b Qr + c Qo + Qc + z Z - alpha beta zw p S3 - (xi^n - 1) (T1 + xi^n T2 + xi^2n T3)
///         + v A + v^2 B + v^3 C + v^4 S1 + v^5 S2,
///     p = (a + beta s1 + gamma) (b + beta s2 + gamma),
///     z = alpha (a + beta xi + gamma) (b + beta k1 xi + gamma) (c + beta k2 xi + gamma) + alpha^2 L1(xi) + u,
///     E = v a + v^2 b + v^3 c + v^4 s1 + v^5 s2 + u zw - PI(xi) + alpha^2 L1(xi) + alpha p (c + gamma) zw
/// a proof is valid where e(Wxi + u Wxiw, -tau) e(xi Wxi + u xi w Wxiw + F - E, 1) = 1, a scalar standing for its multiple of
/// the generator. n is the number of rows, w their root of unity, L_i is 1 at the row w^(i-1) and 0 at the others,
/// PI = -(x_1 L_1 + .. + x_N L_N) of the public signals.
/// A point is x, y; in G2 each coordinate is two words, that of i first (EIP-197). Infinity is 0, 0.
contract PlonkVerifier {
    /// Number of public signals.
    uint256 private constant N = {{PUBLICS}};
    /// The domain has 2^this rows.
    uint256 private constant LOG_ROWS = {{LOG_ROWS}};
    Fr private constant ROWS_INVERSE = Fr.wrap({{ROWS_INVERSE}});
    Fr private constant W = Fr.wrap({{W}});
    Fr private constant W_INVERSE = Fr.wrap({{W_INVERSE}});
    Fr private constant K1 = Fr.wrap({{K1}});
    Fr private constant K2 = Fr.wrap({{K2}});
    Fr private constant ONE = Fr.wrap(1);
    Fr private constant ZERO = Fr.wrap(0);

    uint256 private constant MINUS_TAU_X1 = {{MINUS_TAU_X1}};
    uint256 private constant MINUS_TAU_X0 = {{MINUS_TAU_X0}};
    uint256 private constant MINUS_TAU_Y1 = {{MINUS_TAU_Y1}};
    uint256 private constant MINUS_TAU_Y0 = {{MINUS_TAU_Y0}};
    /// The generators.
    uint256 private constant G1_X = 1;
    uint256 private constant G1_Y = 2;
    uint256 private constant G2_X1 = 11559732032986387107991004021392285783925812861821192530917403151452391805634;
    uint256 private constant G2_X0 = 10857046999023057135944570762232829481370756359578518086990519993285655852781;
    uint256 private constant G2_Y1 = 4082367875863433681332203403145435568316851327593401208105741076214120093531;
    uint256 private constant G2_Y0 = 8495653923123431417604973247489272438418190587263600148770280649306958101930;

    /// What the factors are made of.
    struct Values {
        Fr beta;
        Fr gamma;
        Fr alpha;
        Fr xi;
        Fr v;
        Fr u;
        Fr a;
        Fr b;
        Fr c;
        Fr s1;
        Fr s2;
        Fr zw;
        // xi^n, L1(xi) and PI(xi)
        Fr xin;
        Fr l1;
        Fr pi;
    }

    /// Whether a proof is valid: A, B, C, Z, T1, T2, T3, Wxi, Wxiw, and a, b, c, s1, s2, zw.
    /// False, too, for words that are no points, and for a public signal or an evaluation that is not below R.
    /// The precompiled contracts refuse coordinates that are not below the base field's order and points off the curve.
    function verifyProof(
        uint256[24] calldata proof,
        uint256[{{DIMENSION}}] calldata pub
    ) external view returns (bool) {
        if (pub.length != N) return false;
        for (uint256 i = 0; i < N; ++i) {
            if (pub[i] >= R) return false;
        }
        for (uint256 i = 18; i < 24; ++i) {
            if (proof[i] >= R) return false;
        }
        // Qm, Ql, Qr, Qo, Qc, S1, S2, S3
        uint256[16] memory key = [
            {{KEY}}
        ];
        Values memory t;
        (t.a, t.b, t.c) = (Fr.wrap(proof[18]), Fr.wrap(proof[19]), Fr.wrap(proof[20]));
        (t.s1, t.s2, t.zw) = (Fr.wrap(proof[21]), Fr.wrap(proof[22]), Fr.wrap(proof[23]));
        challenges(t, key, proof, pub);
        if (!lagrange(t, pub)) return false;
        return opens(t, key, proof);
    }

    /// The challenges: each hash is of whole words, and starts afresh.
    function challenges(
        Values memory t,
        uint256[16] memory key,
        uint256[24] calldata proof,
        uint256[{{DIMENSION}}] calldata pub
    ) private pure {
        t.beta = reduced(abi.encodePacked(key, pub, proof[0], proof[1], proof[2], proof[3], proof[4], proof[5]));
        t.gamma = reduced(abi.encodePacked(t.beta));
        t.alpha = reduced(abi.encodePacked(t.beta, t.gamma, proof[6], proof[7]));
        t.xi = reduced(
            abi.encodePacked(t.alpha, proof[8], proof[9], proof[10], proof[11], proof[12], proof[13])
        );
        t.v = reduced(abi.encodePacked(t.xi, t.a, t.b, t.c, t.s1, t.s2, t.zw));
        t.u = reduced(abi.encodePacked(proof[14], proof[15], proof[16], proof[17]));
    }

    function reduced(bytes memory text) private pure returns (Fr) {
        return Fr.wrap(uint256(keccak256(text)) % R);
    }

    /// xi^n, L1(xi) and PI(xi) by L_i(xi) = w^(i-1) (xi^n - 1) / (n (xi - w^(i-1))), with one inversion for all.
    /// False where that went wrong, or xi is one of the rows.
    function lagrange(Values memory t, uint256[{{DIMENSION}}] calldata pub) private view returns (bool) {
        t.xin = t.xi;
        for (uint256 i = 0; i < LOG_ROWS; ++i) t.xin = t.xin * t.xin;
        // L1 is needed where there are no public signals, too.
        uint256 count = N == 0 ? 1 : N;
        // The product of the denominators before each.
        Fr[] memory before = new Fr[](count);
        (Fr product, Fr row) = (ONE, ONE);
        for (uint256 i = 0; i < count; ++i) {
            before[i] = product;
            (product, row) = (product * (t.xi - row), row * W);
        }
        // One over the product of the denominators up to each.
        Fr inverse = power(product, R - 2);
        if (Fr.unwrap(inverse * product) != 1) return false;
        Fr factor = (t.xin - ONE) * ROWS_INVERSE;
        for (uint256 i = count; i > 0; ) {
            --i;
            row = row * W_INVERSE;
            t.l1 = inverse * before[i] * factor * row;
            inverse = inverse * (t.xi - row);
            if (i < N) t.pi = t.pi - Fr.wrap(pub[i]) * t.l1;
        }
        return true;
    }

    /// base^exponent; whether the precompiled contract did it is for the caller to see.
    function power(Fr base, uint256 exponent) private view returns (Fr result) {
        uint256[6] memory io = [32, 32, 32, Fr.unwrap(base), exponent, R];
        assembly ("memory-safe") {
            pop(staticcall(gas(), 5, io, 0xc0, io, 0x20))
        }
        return Fr.wrap(io[0]);
    }

    /// The equation.
    function opens(
        Values memory t,
        uint256[16] memory key,
        uint256[24] calldata proof
    ) private view returns (bool) {
        Fr[18] memory k = factors(t);
        // A sum so far, then a point and its factor. Qc has the factor 1.
        uint256[5] memory sum = [key[8], key[9], G1_X, G1_Y, Fr.unwrap(k[17])];
        if (!addMultiple(sum)) return false;
        for (uint256 i = 0; i < 8; ++i) {
            if (i == 4) continue;
            (sum[2], sum[3], sum[4]) = (key[2 * i], key[2 * i + 1], Fr.unwrap(k[i]));
            if (!addMultiple(sum)) return false;
        }
        for (uint256 i = 0; i < 9; ++i) {
            (sum[2], sum[3], sum[4]) = (proof[2 * i], proof[2 * i + 1], Fr.unwrap(k[8 + i]));
            if (!addMultiple(sum)) return false;
        }
        uint256[5] memory left = [proof[14], proof[15], proof[16], proof[17], Fr.unwrap(t.u)];
        if (!addMultiple(left)) return false;
        uint256[12] memory pairs = [
            left[0], left[1], MINUS_TAU_X1, MINUS_TAU_X0, MINUS_TAU_Y1, MINUS_TAU_Y0,
            sum[0], sum[1], G2_X1, G2_X0, G2_Y1, G2_Y0
        ];
        bool done;
        assembly ("memory-safe") {
            done := staticcall(gas(), 8, pairs, 0x180, pairs, 0x20)
            // Where nothing was returned, the word is still the proof's: so it is on a chain without this precompiled contract.
            done := and(done, eq(returndatasize(), 0x20))
        }
        return done && pairs[0] == 1;
    }

    /// Factors of the key's points, of the proof's, and of the generator.
    function factors(Values memory t) private pure returns (Fr[18] memory k) {
        Fr alphaP = (t.a + t.beta * t.s1 + t.gamma) * (t.b + t.beta * t.s2 + t.gamma) * t.alpha;
        Fr l = t.alpha * t.alpha * t.l1;
        Fr x = t.beta * t.xi;
        (k[0], k[1], k[2], k[3], k[4]) = (t.a * t.b, t.a, t.b, t.c, ONE);
        k[8] = t.v;
        k[9] = k[8] * t.v;
        k[10] = k[9] * t.v;
        k[5] = k[10] * t.v;
        k[6] = k[5] * t.v;
        k[7] = ZERO - alphaP * t.beta * t.zw;
        k[11] = (t.a + x + t.gamma) * (t.b + x * K1 + t.gamma) * (t.c + x * K2 + t.gamma) * t.alpha + l + t.u;
        k[12] = ONE - t.xin;
        k[13] = k[12] * t.xin;
        k[14] = k[13] * t.xin;
        k[15] = t.xi;
        k[16] = t.u * t.xi * W;
        Fr e = k[8] * t.a + k[9] * t.b + k[10] * t.c + k[5] * t.s1 + k[6] * t.s2 + t.u * t.zw;
        k[17] = t.pi - l - alphaP * (t.c + t.gamma) * t.zw - e;
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
