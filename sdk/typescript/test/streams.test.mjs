import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { serverEvents, Sluice, SluiceError, textOf } from "../dist/index.js";

const chunk = (content) => `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }] })}\n\n`;

async function completion(t, answer) {
  const server = createServer(answer);
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const sluice = new Sluice({ baseUrl: "http://127.0.0.1:1", runtimeUrl: `http://127.0.0.1:${server.address().port}`, key: "k" });
  return sluice.createChatCompletion({ model: "echo-1", messages: [{ role: "user", content: "Hello" }] });
}

const sends = (text) => (_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(text);

test("a completion", async (t) => {
  const stream = await completion(t, sends(`: waiting\n\n${chunk("Hel")}${chunk("lo")}data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n`));
  assert.equal(await stream.text(), "Hello");
});

test("a completion that is cut off", async (t) => {
  const stream = await completion(t, sends(chunk("Hel")));
  await assert.rejects(stream.text(), /cut off/);
});

test("a completion that fails on the way", async (t) => {
  const stream = await completion(t, sends(`${chunk("Hel")}data: {"error":{"code":"provider_failed","message":"m","request_id":"r"}}\n\n`));
  const e = await stream.text().catch((e) => e);
  assert.ok(e instanceof SluiceError);
  assert.deepEqual([e.status, e.code, e.requestId], [0, "provider_failed", "r"]);
});

test("leaving a completion ends it", async (t) => {
  let left;
  const over = new Promise((resolve) => (left = resolve));
  const stream = await completion(t, (_, response) => {
    response.on("close", left);
    response.writeHead(200).write(chunk("one"));
  });
  for await (const c of stream) {
    assert.equal(textOf(c), "one");
    break;
  }
  await over;
});

const streamOf = (parts) =>
  new ReadableStream({
    start(c) {
      for (const p of parts) c.enqueue(p);
      c.close();
    },
  });

for (const [body, want] of [
  ["data: a\n\ndata: b\n\n", ["a", "b"]],
  ["data:a\r\n\r\ndata: b\r\r", ["a", "b"]],
  ["\ufeffdata: a\n\n", ["a"]],
  ["event: x\ndata: 1\ndata: 2\nid: 3\n\n", ["x:1\n2"]],
  [": nothing\n\nevent: x\n\ndata: a\n\n", ["a"]],
  ["data: cut off\n", []],
  ["data: \u00e4\n\ndata: [DONE]", ["\u00e4"]],
]) {
  test(`events of ${JSON.stringify(body)}`, async () => {
    const bytes = new TextEncoder().encode(body);
    for (const parts of [[bytes], [...bytes].map((b) => Uint8Array.of(b))]) {
      const got = [];
      for await (const e of serverEvents(streamOf(parts))) got.push(e.name ? `${e.name}:${e.data}` : e.data);
      assert.deepEqual(got, want);
    }
  });
}

test("an event without end", async () => {
  const part = new TextEncoder().encode("data: " + "x".repeat(1 << 20));
  await assert.rejects(async () => {
    for await (const _ of serverEvents(streamOf(Array(6).fill(part))));
  }, RangeError);
});
