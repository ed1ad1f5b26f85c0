import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { Sluice, SluiceError, version } from "../dist/index.js";

/** A client of a server that gives one answer after another, the last one for ever. */
async function client(t, ...answers) {
  const seen = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    seen.push({ method: request.method, url: request.url, headers: request.headers, body });
    answers[Math.min(seen.length, answers.length) - 1](response, request);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const pauses = [];
  const address = `http://127.0.0.1:${server.address().port}/`;
  const sluice = new Sluice({ baseUrl: address, key: "slk_test", pause: async (ms) => void pauses.push(ms) });
  return { sluice, seen, pauses, address };
}

const says = (status, body = "", headers = {}) => (response) => response.writeHead(status, headers).end(body);
const hangsUp = () => (response) => response.destroy();
const breaksOff = () => (response) => {
  response.writeHead(200, { "content-length": "1000" });
  response.write('{"data', () => response.destroy());
};
const hook = JSON.stringify({ id: "wh_1", url: "https://example.com/hooks", events: ["*"] });
const create = { url: "https://example.com/hooks", events: ["*"], secret: "a secret of sixteen" };

test("a call says who calls and what", async (t) => {
  const { sluice, seen } = await client(t, says(200, hook));
  assert.equal((await sluice.getWebhook("wh/1")).id, "wh_1");
  assert.equal(seen[0].url, "/v1/webhooks/wh%2F1");
  assert.equal(seen[0].headers.authorization, "Bearer slk_test");
  assert.equal(seen[0].headers["user-agent"], `sluice-typescript/${version}`);
});

test("the package has the version that it says", async () => {
  assert.equal(JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")).version, version);
});

const busy = JSON.stringify({ error: { code: "rate_limit_exceeded", message: "m" } });
const list = (c) => c.listWebhooks();
const make = (c) => c.createWebhook(create);
const remove = (c) => c.deleteWebhook("wh_1");
for (const [name, call, answers, tries, fails] of [
  ["a list after 429", list, [says(429, busy, { "retry-after": "7" }), says(200, "{}")], 2, false],
  ["a list after 502, 503 and 504", list, [says(502), says(503), says(504), says(200, "{}")], 4, false],
  ["a list whose answer breaks off", list, [hangsUp(), breaksOff(), says(200, "{}")], 3, false],
  ["a list, not for ever", list, [says(503)], 4, true],
  ["not a list after 500", list, [says(500)], 1, true],
  ["not after more than a minute", list, [says(429, busy, { "retry-after": "61" })], 1, true],
  ["not an answer that is no JSON", list, [says(200, "<html>")], 1, true],
  ["a create after 503", make, [says(503), says(201, hook)], 2, false],
  ["a create whose answer was lost", make, [hangsUp(), says(409, "", { "retry-after": "1" }), says(201, hook)], 3, false],
  ["not a create after a conflict", make, [says(409)], 1, true],
  ["a delete after 504", remove, [says(504), says(204)], 2, false],
  ["a delete that had its effect", remove, [hangsUp(), says(404)], 2, false],
  ["not a delete of nothing", remove, [says(404)], 1, true],
  ["a delete that was only refused", remove, [says(429, busy), says(404)], 2, true],
  ["not a change", (c) => c.updateWebhook("wh_1", {}), [says(503)], 1, true],
  ["not a completion", (c) => c.createChatCompletion({ model: "echo-1", messages: [] }), [says(429, busy)], 1, true],
  ["not a POST of your own API", (c) => c.request("POST", "/orders", { n: 1 }), [says(503)], 1, true],
  ["a POST of your own API with a key", (c) => c.request("POST", "/orders", { n: 1 }, { idempotencyKey: "k" }), [says(503), says(200)], 2, false],
]) {
  test(`what is repeated: ${name}`, async (t) => {
    const { sluice, seen, pauses } = await client(t, ...answers);
    if (fails) await assert.rejects(call(sluice));
    else await call(sluice);
    assert.equal(seen.length, tries);
    assert.equal(pauses.length, tries - 1);
    for (const r of seen) {
      assert.equal(r.headers["idempotency-key"], seen[0].headers["idempotency-key"]);
      assert.equal(r.body, seen[0].body);
    }
    if (name === "a list after 429") assert.ok(pauses[0] >= 7000 && pauses[0] <= 8000, String(pauses));
    else for (const [i, ms] of pauses.entries()) assert.ok(ms >= 250 && ms <= 500 * 2 ** i + 1000, String(pauses));
  });
}

test("creates have a key of their own", async (t) => {
  const { sluice, seen } = await client(t, says(201, hook));
  await sluice.createWebhook(create);
  await sluice.createWebhook(create);
  await sluice.createWebhook(create, { idempotencyKey: "order-7" });
  const keys = seen.map((r) => r.headers["idempotency-key"]);
  assert.ok(keys[0].length > 20 && keys[0] !== keys[1], String(keys));
  assert.equal(keys[2], "order-7");
});

test("a signal ends a call and its pause", async (t) => {
  const { seen, address } = await client(t, says(503));
  const sluice = new Sluice({ baseUrl: address, key: "k" });
  const over = new AbortController();
  const call = sluice.listWebhooks({}, { signal: over.signal });
  over.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  assert.ok(seen.length <= 1);
});

test("a refusal says all", async (t) => {
  const details = [{ field: "url", issue: "is missing", expected: "an address" }];
  const error = { code: "invalid_request", message: "The request is not valid.", details, request_id: "r-1", documentation_url: "https://x/docs/errors/invalid_request" };
  const { sluice } = await client(t, says(400, JSON.stringify({ error }), { "retry-after": "3" }));
  const e = await sluice.createWebhook(create).catch((e) => e);
  assert.ok(e instanceof SluiceError);
  assert.deepEqual([e.status, e.code, e.message, e.requestId, e.retryAfter, e.documentationUrl], [400, error.code, error.message, "r-1", 3, error.documentation_url]);
  assert.deepEqual(e.details, details);
});

test("a refusal of somebody else", async (t) => {
  const { sluice } = await client(t, says(418, "<html>", { "x-request-id": "r-2" }));
  const e = await sluice.listWebhooks().catch((e) => e);
  assert.deepEqual([e.status, e.code, e.requestId], [418, "", "r-2"]);
});

test("all goes through all pages", async (t) => {
  const page = (ids, next) => says(200, JSON.stringify({ data: ids.map((id) => ({ id })), pagination: { next_cursor: next } }));
  const { sluice, seen } = await client(t, page(["a", "b"], "c 1"), page([], "c2"), page(["d"], null));
  const params = { limit: 2, offset: 5, sort: "-created_at" };
  const ids = [];
  for await (const { id } of sluice.allWebhooks(params)) ids.push(id);
  assert.deepEqual(ids, ["a", "b", "d"]);
  assert.deepEqual(seen.map((r) => r.url.split("?")[1]), ["limit=2&offset=5&sort=-created_at", "limit=2&sort=-created_at&cursor=c+1", "limit=2&sort=-created_at&cursor=c2"]);
  assert.deepEqual(params, { limit: 2, offset: 5, sort: "-created_at" });
});

test("whoever leaves a list asks for no more", async (t) => {
  const { sluice, seen } = await client(t, says(200, JSON.stringify({ data: [{ id: "a" }], pagination: { next_cursor: "c" } })));
  for await (const _ of sluice.allWebhooks()) break;
  assert.equal(seen.length, 1);
});

test("bytes are sent once, and no type of none", async (t) => {
  const { sluice, seen } = await client(t, says(200, "WEBVTT"), says(503));
  const answer = await sluice.captions("audio/wav", new TextEncoder().encode("RIFF"), { format: "vtt", language: "en" });
  assert.equal(await answer.text(), "WEBVTT");
  assert.deepEqual([seen[0].headers.accept, seen[0].headers["content-type"], seen[0].body, seen[0].url], ["*/*", "audio/wav", "RIFF", "/v1/captions?format=vtt&language=en"]);
  await assert.rejects(sluice.captions("", null, { asset_id: "vod_1" }));
  assert.equal(seen.length, 2);
  assert.equal(seen[1].headers["content-type"], undefined);
});
