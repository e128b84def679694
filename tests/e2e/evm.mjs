// Compiles contracts with solc, deploys each to an EVM of its own, and calls its verifyProof.
// usage: node evm.mjs jobs.json
// A job: { "text": the source, "optimise": true or false, "oldest": whether to take the oldest compiler that the contracts name,
//          "without": address of a precompiled contract that this chain lacks, "reverts": of one that reverts and returns 1,
//          "calls": [{ "data": arguments in hexadecimal, "gas": at most }] }
// Prints a JSON array with one result for each job: { "messages": of the compiler, "signature", "bytes": of the deployed code,
// "calls": [{ "answer": true, false or "reverted", "gas" }] }
import { createEVM, EVMError } from "@ethereumjs/evm";
import { createAddressFromString, hexToBytes, bytesToHex } from "@ethereumjs/util";
import fs from "node:fs";
import solc from "solc";
import solcOldest from "solc-oldest";

const compiled = new Map();

function compile(text, optimise, oldest) {
  const key = JSON.stringify([text, optimise, oldest]);
  if (!compiled.has(key)) {
    const input = {
      language: "Solidity",
      sources: { "verifier.sol": { content: text } },
      settings: {
        optimizer: { enabled: optimise, runs: 200 },
        outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.deployedBytecode.object", "evm.methodIdentifiers"] } },
      },
    };
    compiled.set(key, JSON.parse((oldest ? solcOldest : solc).compile(JSON.stringify(input))));
  }
  return compiled.get(key);
}

const address = (number) => createAddressFromString(`0x${number.toString(16).padStart(40, "0")}`);

const revert = () => ({
  executionGasUsed: 0n,
  returnValue: hexToBytes(`0x${"1".padStart(64, "0")}`),
  exceptionError: new EVMError(EVMError.errorMessages.REVERT),
});

async function run({ text, optimise, oldest, without, reverts, calls }) {
  const output = compile(text, optimise, oldest);
  const messages = (output.errors ?? []).map((error) => error.formattedMessage);
  const contract = Object.values(output.contracts?.["verifier.sol"] ?? {})[0];
  if (!contract?.evm.bytecode.object) return { messages, calls: [] };
  const [signature, selector] = Object.entries(contract.evm.methodIdentifiers)[0];
  const changed = [];
  if (without) changed.push({ address: address(without) });
  if (reverts) changed.push({ address: address(reverts), function: revert });
  const evm = await createEVM({ customPrecompiles: changed });
  const made = await evm.runCall({ data: hexToBytes(`0x${contract.evm.bytecode.object}`), gasLimit: 30_000_000n });
  if (made.execResult.exceptionError) return { messages: [made.execResult.exceptionError.error], calls: [] };
  const results = [];
  for (const { data, gas } of calls) {
    const { execResult } = await evm.runCall({
      to: made.createdAddress,
      data: hexToBytes(`0x${selector}${data}`),
      gasLimit: BigInt(gas ?? 30_000_000),
    });
    const word = bytesToHex(execResult.returnValue);
    const answer = { [`0x${"1".padStart(64, "0")}`]: true, [`0x${"0".repeat(64)}`]: false }[word];
    results.push({
      answer: execResult.exceptionError ? "reverted" : (answer ?? word),
      gas: Number(execResult.executionGasUsed),
    });
  }
  return { messages, signature, bytes: contract.evm.deployedBytecode.object.length / 2, calls: results };
}

const results = [];
for (const job of JSON.parse(fs.readFileSync(process.argv[2], "utf8"))) results.push(await run(job));
console.log(JSON.stringify(results));
