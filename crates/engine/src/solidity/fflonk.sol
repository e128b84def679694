// SPDX-License-Identifier: {{LICENCE}}
// Made by tandem export-solidity of an FFLONK key over BN254 with public signals: {{PUBLICS}}.
{{REMARKS}}pragma solidity ^0.8.20;

{{FIELD}}/// Verifies FFLONK proofs of one circuit: those of snarkjs, with its challenges. With
///     zh = xi^n - 1, m0 = y^8 - xi, m1 = y^4 - xi, m2 = (y^3 - xi) (y^3 - xi w),
///     t0 = (ql a + qr b + qm a b + qo c + qc + PI(xi)) / zh,
///     t1 = (z - 1) L1(xi) / zh,
///     t2 = ((a + beta xi + gamma) (b + beta k1 xi + gamma) (c + beta k2 xi + gamma) z
///          - (a + beta s1 + gamma) (b + beta s2 + gamma) (c + beta s3 + gamma) zw) / zh,
///     r0 = ql + y qr + y^2 qo + y^3 qm + y^4 qc + y^5 s1 + y^6 s2 + y^7 s3,
///     r1 = a + y b + y^2 c + y^3 t0,
///     r2 = ((z + y t1 + y^2 t2) (y^3 - xi w) - (zw + y t1w + y^2 t2w) (y^3 - xi)) / (xi - xi w),
///     f1 = alpha m0 / m1, f2 = alpha^2 m0 / m2, E = r0 + f1 r1 + f2 r2
/// a proof is valid where e(W2, -tau) e(C0 + f1 C1 + f2 C2 - m0 W1 + y W2 - E, 1) = 1, a scalar standing for its multiple of
/// the generator. n is the number of rows, w their root of unity, L_i is 1 at the row w^(i-1) and 0 at the others,
/// PI = -(x_1 L_1 + .. + x_N L_N) of the public signals. The proof's inv is the inverse of
///     -8^8 4^4 27^2 w^2 (1 - w)^6 xi^20 m0 (m1 m2)^2 zh (n (xi - 1)) (n (xi - w)) .. (n (xi - w^(N-1))),
/// with one such row where there are no public signals: all that is divided by divides it.
/// A point is x, y; in G2 each coordinate is two words, that of i first (EIP-197). Infinity is 0, 0.
contract FflonkVerifier {
    /// Number of public signals.
    uint256 private constant N = {{PUBLICS}};
    /// The domain has 2^this rows.
    uint256 private constant LOG_ROWS = {{LOG_ROWS}};
    Fr private constant ROWS_INVERSE = Fr.wrap({{ROWS_INVERSE}});
    Fr private constant W = Fr.wrap({{W}});
    Fr private constant W_INVERSE = Fr.wrap({{W_INVERSE}});
    /// 1 / (1 - w)
    Fr private constant STEP_INVERSE = Fr.wrap({{STEP_INVERSE}});
    /// What inv's divisor has of the key alone: -8^8 4^4 27^2 w^2 (1 - w)^6, and n for each row.
    Fr private constant DIVISOR = Fr.wrap({{DIVISOR}});
    Fr private constant K1 = Fr.wrap({{K1}});
    Fr private constant K2 = Fr.wrap({{K2}});
    Fr private constant ONE = Fr.wrap(1);
    Fr private constant ZERO = Fr.wrap(0);

    uint256 private constant C0_X = {{C0_X}};
    uint256 private constant C0_Y = {{C0_Y}};
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
        Fr xi;
        Fr alpha;
        Fr y;
        // Of the proof.
        Fr ql;
        Fr qr;
        Fr qm;
        Fr qo;
        Fr qc;
        Fr s1;
        Fr s2;
        Fr s3;
        Fr a;
        Fr b;
        Fr c;
        Fr z;
        Fr zw;
        Fr t1w;
        Fr t2w;
        Fr inv;
        // y^3 - xi and y^3 - xi w
        Fr own;
        Fr next;
        Fr m0;
        Fr m1;
        // 1 / zh, 1 / (m1 m2) and 1 / xi
        Fr overZh;
        Fr overM;
        Fr overXi;
        // PI(xi) / zh and L1(xi) / zh
        Fr pi;
        Fr l1;
    }

    /// Whether a proof is valid: C1, C2, W1, W2, and ql, qr, qm, qo, qc, s1, s2, s3, a, b, c, z, zw, t1w, t2w, inv.
    /// False, too, for words that are no points, and for a public signal or a value that is not below R.
    /// The precompiled contracts refuse coordinates that are not below the base field's order and points off the curve.
    function verifyProof(
        bytes32[24] calldata proof,
        uint256[{{DIMENSION}}] calldata pub
    ) external view returns (bool) {
        if (pub.length != N) return false;
        for (uint256 i = 0; i < N; ++i) {
            if (pub[i] >= R) return false;
        }
        for (uint256 i = 8; i < 24; ++i) {
            if (uint256(proof[i]) >= R) return false;
        }
        Values memory t;
        (t.ql, t.qr, t.qm, t.qo) = (fr(proof[8]), fr(proof[9]), fr(proof[10]), fr(proof[11]));
        (t.qc, t.s1, t.s2, t.s3) = (fr(proof[12]), fr(proof[13]), fr(proof[14]), fr(proof[15]));
        (t.a, t.b, t.c, t.z) = (fr(proof[16]), fr(proof[17]), fr(proof[18]), fr(proof[19]));
        (t.zw, t.t1w, t.t2w, t.inv) = (fr(proof[20]), fr(proof[21]), fr(proof[22]), fr(proof[23]));
        challenges(t, proof, pub);
        if (!divide(t, pub)) return false;
        return opens(t, proof);
    }

    function fr(bytes32 word) private pure returns (Fr) {
        return Fr.wrap(uint256(word));
    }

    /// The challenges: each hash is of whole words, and starts afresh.
    function challenges(
        Values memory t,
        bytes32[24] calldata proof,
        uint256[{{DIMENSION}}] calldata pub
    ) private pure {
        t.beta = reduced(abi.encodePacked(C0_X, C0_Y, pub, proof[0], proof[1]));
        t.gamma = reduced(abi.encodePacked(t.beta));
        Fr seed = reduced(abi.encodePacked(t.gamma, proof[2], proof[3]));
        bytes memory ofKey = abi.encodePacked(seed, t.ql, t.qr, t.qm, t.qo, t.qc, t.s1, t.s2, t.s3);
        t.alpha = reduced(abi.encodePacked(ofKey, t.a, t.b, t.c, t.z, t.zw, t.t1w, t.t2w));
        t.y = reduced(abi.encodePacked(t.alpha, proof[4], proof[5]));
        // seed^8, and its third power
        seed = seed * seed;
        seed = seed * seed;
        seed = seed * seed;
        t.xi = seed * seed * seed;
    }

    function reduced(bytes memory text) private pure returns (Fr) {
        return Fr.wrap(uint256(keccak256(text)) % R);
    }

    /// All inverses by inv, and L_i(xi) / zh = w^(i-1) / (n (xi - w^(i-1))).
    /// False where inv is not what it must be: so it is where one of its factors is zero.
    function divide(Values memory t, uint256[{{DIMENSION}}] calldata pub) private pure returns (bool) {
        Fr zh = t.xi;
        for (uint256 i = 0; i < LOG_ROWS; ++i) zh = zh * zh;
        zh = zh - ONE;
        Fr m = t.y * t.y * t.y;
        (t.own, t.next) = (m - t.xi, m - t.xi * W);
        m = m * t.y;
        (t.m0, t.m1) = (m * m - t.xi, m - t.xi);
        m = t.m1 * t.own * t.next;
        // L1 is needed where there are no public signals, too.
        Fr[] memory before = new Fr[](N == 0 ? 1 : N);
        // The product of xi - w^(i-1), and those before each.
        (Fr rows, Fr row) = (ONE, ONE);
        for (uint256 i = 0; i < before.length; ++i) {
            before[i] = rows;
            (rows, row) = (rows * (t.xi - row), row * W);
        }
        // xi^19
        Fr power = t.xi * t.xi;
        Fr rest = power * t.xi;
        power = power * power;
        power = power * power;
        rest = power * power * rest;
        // 1 / (xi m zh rows)
        rest = t.inv * DIVISOR * rest * t.m0 * m;
        (t.overXi, rest) = (rest * zh * rows, rest * t.xi);
        (t.overM, t.overZh) = (rest * zh * rows, rest * m * rows);
        if (Fr.unwrap(t.overZh * zh) != 1) return false;
        t.overXi = t.overXi * m;
        // One over the product of the rows up to each, and over n.
        rest = rest * m * zh * ROWS_INVERSE;
        for (uint256 i = before.length; i > 0; ) {
            --i;
            row = row * W_INVERSE;
            t.l1 = rest * before[i] * row;
            rest = rest * (t.xi - row);
            if (i < N) t.pi = t.pi - Fr.wrap(pub[i]) * t.l1;
        }
        return true;
    }

    /// The equation.
    function opens(Values memory t, bytes32[24] calldata proof) private view returns (bool) {
        Fr ofC1 = t.alpha * t.m0 * t.own * t.next * t.overM;
        Fr ofC2 = t.alpha * t.alpha * t.m0 * t.m1 * t.overM;
        Fr e = r0(t) + ofC1 * r1(t) + ofC2 * r2(t);
        // A sum so far, then a point and its factor. C0 has the factor 1.
        uint256[5] memory sum = [C0_X, C0_Y, G1_X, G1_Y, Fr.unwrap(ZERO - e)];
        if (!addMultiple(sum)) return false;
        Fr[4] memory k = [ofC1, ofC2, ZERO - t.m0, t.y];
        for (uint256 i = 0; i < 4; ++i) {
            (sum[2], sum[3], sum[4]) = (uint256(proof[2 * i]), uint256(proof[2 * i + 1]), Fr.unwrap(k[i]));
            if (!addMultiple(sum)) return false;
        }
        uint256[12] memory pairs = [
            uint256(proof[6]), uint256(proof[7]), MINUS_TAU_X1, MINUS_TAU_X0, MINUS_TAU_Y1, MINUS_TAU_Y0,
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

    function r0(Values memory t) private pure returns (Fr) {
        Fr sum = ((t.s3 * t.y + t.s2) * t.y + t.s1) * t.y + t.qc;
        return (((sum * t.y + t.qm) * t.y + t.qo) * t.y + t.qr) * t.y + t.ql;
    }

    function r1(Values memory t) private pure returns (Fr) {
        Fr gates = t.ql * t.a + t.qr * t.b + t.qm * t.a * t.b + t.qo * t.c + t.qc;
        return ((gates * t.overZh + t.pi) * t.y + t.c) * t.y * t.y + t.b * t.y + t.a;
    }

    function r2(Values memory t) private pure returns (Fr) {
        Fr x = t.beta * t.xi;
        Fr t2 = (t.a + x + t.gamma) * (t.b + x * K1 + t.gamma) * (t.c + x * K2 + t.gamma) * t.z;
        x = (t.a + t.beta * t.s1 + t.gamma) * (t.b + t.beta * t.s2 + t.gamma);
        t2 = (t2 - x * (t.c + t.beta * t.s3 + t.gamma) * t.zw) * t.overZh;
        x = ((t2 * t.y + (t.z - ONE) * t.l1) * t.y + t.z) * t.next;
        x = x - ((t.t2w * t.y + t.t1w) * t.y + t.zw) * t.own;
        return x * t.overXi * STEP_INVERSE;
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
