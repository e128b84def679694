// Runs snarkjs on a list of jobs in one process, so that its start and its curve are paid for once.
// usage: node reference.mjs '[["verify", "vkey.json", "public.json", "proof.json"], ...]'
// Prints a JSON array with one result for each job: true or false for verify, null for the others.
import fs from "node:fs";
import * as snarkjs from "snarkjs";

const read = (file) => JSON.parse(fs.readFileSync(file, "utf8"));
const write = (file, value) => fs.writeFileSync(file, JSON.stringify(value, null, 1));

const jobs = {
  async witness(wasm, input, wtns) {
    await snarkjs.wtns.calculate(read(input), wasm, wtns);
    return null;
  },
  async prove(zkey, wtns, proof, publics) {
    const result = await snarkjs.groth16.prove(zkey, wtns);
    write(proof, result.proof);
    write(publics, result.publicSignals);
    return null;
  },
  async calldata(proof, publics) {
    const { protocol } = read(proof);
    // FFLONK has its arguments the other way round.
    if (protocol === "fflonk") return snarkjs.fflonk.exportSolidityCallData(read(publics), read(proof));
    const system = protocol === "plonk" ? snarkjs.plonk : snarkjs.groth16;
    return system.exportSolidityCallData(read(proof), read(publics));
  },
  async groth16Setup(r1cs, ptau, zkey) {
    const refused = await snarkjs.zKey.newZKey(r1cs, ptau, zkey);
    if (refused === -1) throw new Error("snarkjs made no key");
    return null;
  },
  async plonkSetup(r1cs, ptau, zkey) {
    const refused = await snarkjs.plonk.setup(r1cs, ptau, zkey);
    if (refused === -1) throw new Error("snarkjs made no key");
    return null;
  },
  async plonkProve(zkey, wtns, proof, publics) {
    const result = await snarkjs.plonk.prove(zkey, wtns);
    write(proof, result.proof);
    write(publics, result.publicSignals);
    return null;
  },
  async plonkVerify(vkey, publics, proof) {
    return await snarkjs.plonk.verify(read(vkey), read(publics), read(proof));
  },
  async fflonkSetup(r1cs, ptau, zkey) {
    const refused = await snarkjs.fflonk.setup(r1cs, ptau, zkey);
    if (refused === -1) throw new Error("snarkjs made no key");
    return null;
  },
  async fflonkProve(zkey, wtns, proof, publics) {
    const result = await snarkjs.fflonk.prove(zkey, wtns);
    write(proof, result.proof);
    write(publics, result.publicSignals);
    return null;
  },
  async fflonkVerify(vkey, publics, proof) {
    return await snarkjs.fflonk.verify(read(vkey), read(publics), read(proof));
  },
  async vkey(zkey, vkey) {
    write(vkey, await snarkjs.zKey.exportVerificationKey(zkey));
    return null;
  },
  async verify(vkey, publics, proof) {
    return await snarkjs.groth16.verify(read(vkey), read(publics), read(proof));
  },
};

const results = [];
for (const [name, ...args] of JSON.parse(process.argv[2])) {
  results.push(await jobs[name](...args));
}
console.log(JSON.stringify(results));
// Its worker threads would keep the process alive.
process.exit(0);
