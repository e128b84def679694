// Forges PLONK and FFLONK proofs for a verification key whose tau is known here: for any public signals and evaluations, as the
// equation of the verifier alone asks. What a contract refuses of them it refuses by its checks, and not because the equation does
// not hold.
// usage: node forge.mjs theirs.vkey.json forged.vkey.json '[{...}, ...]'
// A case: { "hashed": the public signals as they are given, "lift": evaluations that get the modulus added,
//           "offCurve": a point, T3 or W1, is not on the curve and counts as nothing,
//           "inverse": what stands for the one inverse that others follow from: in FFLONK the proof's inv }
// Prints a JSON array with the words of each call.
import { bn254 } from "@noble/curves/bn254.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import fs from "node:fs";

const [from, to, cases] = process.argv.slice(2);
const key = JSON.parse(fs.readFileSync(from, "utf8"));
const r = bn254.fields.Fr.ORDER;
const mod = (x) => ((x % r) + r) % r;
const power = (x, n) => (n === 0n ? 1n : n & 1n ? mod(x * power(x, n - 1n)) : power(mod(x * x), n / 2n));
const inverse = (x) => power(mod(x), r - 2n);

const tau = 0x1234567890abcdef1234567890abcdefn;
const { x, y } = bn254.G2.Point.BASE.multiply(tau).toAffine();
key.X_2 = [[x.c0, x.c1].map(String), [y.c0, y.c1].map(String), ["1", "0"]];
fs.writeFileSync(to, JSON.stringify(key));

const G = bn254.G1.Point.BASE;
const point = ([x, y, z]) => (z === "0" ? bn254.G1.Point.ZERO : bn254.G1.Point.fromAffine({ x: BigInt(x), y: BigInt(y) }));
const words = (p) => (p.is0() ? [0n, 0n] : [p.toAffine().x, p.toAffine().y]);
const times = (p, k) => p.multiplyUnsafe(mod(k));
const bytes = (word) => Uint8Array.from(word.toString(16).padStart(64, "0").match(/../g), (byte) => parseInt(byte, 16));
const hash = (...of) => mod(BigInt(`0x${Buffer.from(keccak_256(Buffer.concat(of.map(bytes)))).toString("hex")}`));

function forgePlonk({ hashed = [], lift = [], offCurve = false, inverse: given }) {
  const raw = hashed.map(BigInt);
  const publics = raw.slice(0, key.nPublic).map(mod);
  const points = [11n, 12n, 13n, 14n, 15n, 16n, 17n].map((k) => G.multiply(k));
  const sent = points.map(words);
  if (offCurve) {
    points[6] = bn254.G1.Point.ZERO;
    sent[6] = [0n, 1n];
  }
  const evaluations = [21n, 22n, 23n, 24n, 25n, 26n];
  const sentEvaluations = evaluations.map((value, i) => (lift.includes(i) ? value + r : value));
  const [a, b, c, s1, s2, zw] = evaluations;
  const [A, B, C, Z, T1, T2, T3] = points;
  const [Qm, Ql, Qr, Qo, Qc, S1, S2, S3] = ["Qm", "Ql", "Qr", "Qo", "Qc", "S1", "S2", "S3"].map((name) => point(key[name]));

  const beta = hash(...[Qm, Ql, Qr, Qo, Qc, S1, S2, S3].flatMap(words), ...raw, ...sent.slice(0, 3).flat());
  const gamma = hash(beta);
  const alpha = hash(beta, gamma, ...sent[3]);
  const xi = hash(alpha, ...sent.slice(4).flat());
  const v = hash(xi, ...sentEvaluations);

  const n = 1n << BigInt(key.power);
  const w = BigInt(key.w);
  const xin = power(xi, n);
  const rows = publics.length === 0 ? [1n] : publics.map((_, i) => power(w, BigInt(i)));
  // One inverse of the product of all xi - w^i; with a wrong one all L_i are wrong.
  const product = rows.reduce((product, row) => mod(product * (xi - row)), 1n);
  const error = given === undefined ? 1n : mod(BigInt(given) * product);
  const lagrange = rows.map((row) => mod(error * row * (xin - 1n) * inverse(n * (xi - row))));
  const pi = -publics.reduce((sum, value, i) => sum + value * lagrange[i], 0n);
  const l = alpha * alpha * lagrange[0];
  const p = (a + beta * s1 + gamma) * (b + beta * s2 + gamma);
  const z = alpha * (a + beta * xi + gamma) * (b + beta * BigInt(key.k1) * xi + gamma) * (c + beta * BigInt(key.k2) * xi + gamma) + l;
  const e = v * a + v ** 2n * b + v ** 3n * c + v ** 4n * s1 + v ** 5n * s2 - pi + l + alpha * p * (c + gamma) * zw;
  // F - E without what u takes in.
  const sum = [
    [Qm, a * b], [Ql, a], [Qr, b], [Qo, c], [Qc, 1n], [Z, z], [S3, -alpha * beta * zw * p],
    [T1, 1n - xin], [T2, (1n - xin) * xin], [T3, (1n - xin) * xin * xin],
    [A, v], [B, v ** 2n], [C, v ** 3n], [S1, v ** 4n], [S2, v ** 5n], [G, -e],
  ].reduce((sum, [point, k]) => sum.add(times(point, k)), bn254.G1.Point.ZERO);
  const wxi = times(sum, inverse(tau - xi));
  const wxiw = times(Z.subtract(times(G, zw)), inverse(tau - xi * w));
  return [...sent.flat(), ...words(wxi), ...words(wxiw), ...sentEvaluations, ...raw];
}

function forgeFflonk({ hashed = [], lift = [], offCurve = false, inverse: given }) {
  const raw = hashed.map(BigInt);
  const publics = raw.slice(0, key.nPublic).map(mod);
  const [C1, C2] = [11n, 12n].map((k) => G.multiply(k));
  const W1 = offCurve ? bn254.G1.Point.ZERO : G.multiply(13n);
  const sent = [words(C1), words(C2), offCurve ? [0n, 1n] : words(W1)];
  const values = Array.from({ length: 15 }, (_, i) => BigInt(21 + i));
  const lifted = (value, i) => (lift.includes(i) ? value + r : value);
  const sentValues = values.map(lifted);
  const [ql, qr, qm, qo, qc, s1, s2, s3, a, b, c, z, zw, t1w, t2w] = values;

  const beta = hash(...words(point(key.C0)), ...raw, ...sent[0]);
  const gamma = hash(beta);
  const seed = hash(gamma, ...sent[1]);
  const xi = power(seed, 24n);
  const alpha = hash(seed, ...sentValues);
  const y = hash(alpha, ...sent[2]);

  const n = 1n << BigInt(key.power);
  const w = BigInt(key.w);
  const zh = mod(power(xi, n) - 1n);
  const rows = publics.length === 0 ? [1n] : publics.map((_, i) => power(w, BigInt(i)));
  const own = mod(y ** 3n - xi);
  const next = mod(y ** 3n - xi * w);
  const m0 = mod(power(y, 8n) - xi);
  const m1 = mod(power(y, 4n) - xi);
  const m2 = mod(own * next);
  // What snarkjs divides by, set by set: the opening's m1 and m2, Z_H, the Lagrange bases of the three sets of roots, and of the rows.
  const h0 = power(seed, 3n);
  const h1 = power(seed, 6n);
  const h2 = power(seed, 8n);
  const h3 = mod(h2 * BigInt(key.wr));
  const [w8, w4, w3] = ["w8", "w4", "w3"].map((name) => BigInt(key[name]));
  const set = (h, root, count) => Array.from({ length: count }, (_, i) => mod(h * power(root, BigInt(i))));
  const bases = (roots) =>
    roots.map((root) => roots.reduce((product, other) => (other === root ? product : mod(product * (root - other))), mod(y - root)));
  const all = [m1, m2, zh, ...bases(set(h0, w8, 8)), ...bases(set(h1, w4, 4)), ...bases([...set(h2, w3, 3), ...set(h3, w3, 3)])];
  const divisor = [...all, ...rows.map((row) => n * (xi - row))].reduce((product, factor) => mod(product * factor), 1n);
  const inv = given === undefined ? inverse(divisor) : BigInt(given);
  // With a wrong one all that is divided is wrong by this factor.
  const error = mod(inv * divisor);
  const over = (x) => mod(error * inverse(x));
  const lagrange = rows.map((row) => mod(row * over(n * (xi - row))));
  const pi = -publics.reduce((sum, value, i) => sum + value * lagrange[i], 0n);
  const t0 = mod((ql * a + qr * b + qm * a * b + qo * c + qc) * over(zh) + pi);
  const t1 = (z - 1n) * lagrange[0];
  const row = (a + beta * xi + gamma) * (b + beta * BigInt(key.k1) * xi + gamma) * (c + beta * BigInt(key.k2) * xi + gamma);
  const t2 = (row * z - (a + beta * s1 + gamma) * (b + beta * s2 + gamma) * (c + beta * s3 + gamma) * zw) * over(zh);
  const value = (coefficients) => coefficients.reduceRight((sum, coefficient) => mod(sum * y + coefficient), 0n);
  const r2 = (value([z, t1, t2]) * next - value([zw, t1w, t2w]) * own) * over(xi - xi * w);
  const f1 = mod(alpha * m0 * m2 * over(m1 * m2));
  const f2 = mod(alpha * alpha * m0 * m1 * over(m1 * m2));
  const e = value([ql, qr, qo, qm, qc, s1, s2, s3]) + f1 * value([a, b, c, t0]) + f2 * r2;
  const sum = [[point(key.C0), 1n], [C1, f1], [C2, f2], [W1, -m0], [G, -e]].reduce(
    (sum, [point, k]) => sum.add(times(point, k)),
    bn254.G1.Point.ZERO,
  );
  const w2 = times(sum, inverse(tau - y));
  return [...sent.flat(), ...words(w2), ...sentValues, lifted(inv, 15), ...raw];
}

const forge = key.protocol === "fflonk" ? forgeFflonk : forgePlonk;
const hex = (word) => Buffer.from(bytes(word)).toString("hex");
console.log(JSON.stringify(JSON.parse(cases).map((given) => forge(given).map(hex))));
