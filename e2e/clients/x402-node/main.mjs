// Pays for one clip with each client and prints what came of it.
import { wrapFetchWithPayment as wrapV1 } from "x402-fetch";
import { wrapFetchWithPayment as wrapV2, x402Client } from "@x402/fetch";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { privateKeyToAccount } from "viem/accounts";

const account = privateKeyToAccount(process.env.KEY);
const order = {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ source_url: "https://example.com/film.mp4", start: 1, duration: 2 }),
};

const client = new x402Client();
registerExactEvmScheme(client, { signer: account });
const wallets = { "x402-fetch": wrapV1(fetch, account), "@x402/fetch": wrapV2(fetch, client) };

const seen = {};
for (const [name, pay] of Object.entries(wallets)) {
  const r = await pay(process.env.URL, order);
  const second = r.headers.get("payment-response");
  const receipt = second ?? r.headers.get("x-payment-response");
  seen[name] = { status: r.status, version: second ? 2 : 1, receipt: receipt && JSON.parse(atob(receipt)) };
}
console.log(JSON.stringify(seen));
