// Forges PLONK proofs for a verification key whose tau is known here: for any public signals and evaluations, as the equation of the
// verifier alone asks. What a contract refuses of them it refuses by its checks, and not because the equation does not hold.
// usage: node forge.mjs theirs.vkey.json forged.vkey.json '[{...}, ...]'
// A case: { "hashed": the public signals as they are given, "lift": evaluations that get the modulus added,
//           "offCurve": T3 is no point of the curve and counts as nothing, "inverse": what stands for the inverse in the L_i }
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

function forge({ hashed = [], lift = [], offCurve = false, inverse: given }) {
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
  return [...sent.flat(), ...words(wxi), ...words(wxiw), ...sentEvaluations, ...raw].map((word) => Buffer.from(bytes(word)).toString("hex"));
}

console.log(JSON.stringify(JSON.parse(cases).map(forge)));
