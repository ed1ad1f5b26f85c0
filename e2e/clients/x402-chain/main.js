// Runs a chain with a token on it. PAYER gets FUNDS of the token, GAS the means to
// pay for transactions. Prints where both are, and stays until stdin ends.
const { readFileSync } = require("node:fs");
const solc = require("solc");
const hre = require("hardhat");

const ask = (method, ...params) => hre.network.provider.request({ method, params });
const word = (hex) => hex.replace(/^0x/, "").toLowerCase().padStart(64, "0");

function compile() {
  const out = JSON.parse(solc.compile(JSON.stringify({
    language: "Solidity",
    sources: { "Token.sol": { content: readFileSync("Token.sol", "utf8") } },
    settings: { optimizer: { enabled: true }, evmVersion: "cancun", outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.methodIdentifiers"] } } },
  })));
  const bad = (out.errors ?? []).filter((e) => e.severity === "error");
  if (bad.length > 0) throw new Error(bad[0].formattedMessage);
  return out.contracts["Token.sol"].Token.evm;
}

async function mined(transaction) {
  const hash = await ask("eth_sendTransaction", transaction);
  await ask("evm_mine");
  const receipt = await ask("eth_getTransactionReceipt", hash);
  if (receipt?.status !== "0x1") throw new Error(`transaction ${hash}: ${JSON.stringify(receipt)}`);
  return receipt;
}

async function main() {
  const token = compile();
  const [from] = await ask("eth_accounts");
  const { contractAddress: to } = await mined({ from, data: "0x" + token.bytecode.object });
  const mint = token.methodIdentifiers["mint(address,uint256)"];
  await mined({ from, to, data: "0x" + mint + word(process.env.PAYER) + word(BigInt(process.env.FUNDS).toString(16)) });
  await ask("hardhat_setBalance", process.env.GAS, "0x" + (10n ** 18n).toString(16));
  const server = await hre.run("node:create-server", { hostname: "127.0.0.1", port: 0, provider: hre.network.provider });
  const { port } = await server.listen();
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, token: to }));
  process.stdin.resume().on("end", () => process.exit(0));
}

main().catch((e) => { console.error(e); process.exit(1); });
