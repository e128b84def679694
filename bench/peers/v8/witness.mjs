// A witness by V8: circom's WebAssembly compiled by node, as snarkjs runs it.
//
//     node bench/peers/v8/witness.mjs PACKAGES CIRCUIT.wasm INPUT.json WITNESS.wtns
//
// Prints the milliseconds from the module's bytes to the last value of the witness, without node's start.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const [packages, circuit, input, out] = process.argv.slice(2);
const require = createRequire(path.resolve(packages, "package.json"));
const { WitnessCalculatorBuilder } = require("circom_runtime");

const wasm = readFileSync(circuit);
const signals = JSON.parse(readFileSync(input, "utf8"));
const started = performance.now();
const calculator = await WitnessCalculatorBuilder(wasm, { sanityCheck: true });
const witness = await calculator.calculateWTNSBin(signals);
console.log(performance.now() - started);
writeFileSync(out, witness);
process.exit(0);
