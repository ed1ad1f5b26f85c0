import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { verifyWebhook, WebhookError } from "../dist/index.js";

const now = 1_800_000_000;
const body = JSON.stringify({ id: "evt_1", event: "stream.started", timestamp: "2027-01-15T08:00:00.000Z", data: { title: "Morning" } });
const current = "the secret of today!";
const previous = "the secret of before";
const encoded = `whsec_${Buffer.from(current).toString("base64")}`;

/** What Standard Webhooks 1.0.0 wants of a sender. */
function signed(at, text, ...keys) {
  const signatures = keys.map((k) => `v1,${createHmac("sha256", k).update(`evt_1.${at}.${text}`).digest("base64")}`);
  return { "webhook-id": "evt_1", "webhook-timestamp": String(at), "webhook-signature": signatures.join(" ") };
}

for (const [name, headers, secrets, good] of [
  ["by the secret", signed(now, body, current), current, true],
  ["by a secret that is encoded", signed(now, body, current), encoded, true],
  ["by the first of two", signed(now, body, current, previous), [current], true],
  ["by the second of two", signed(now, body, current, previous), [previous], true],
  ["while the receiver has two", signed(now, body, previous), [current, previous], true],
  ["headers of fetch", new Headers(signed(now, body, current)), current, true],
  ["four minutes ago", signed(now - 240, body, current), current, true],
  ["by another secret", signed(now, body, "another"), current, false],
  ["another body", signed(now, "{}", current), current, false],
  ["no secret is known", signed(now, body, current), [], false],
  ["by an empty secret", signed(now, body, ""), "", false],
  ["no base64", { ...signed(now, body, current), "webhook-signature": "v1,*** v2,x" }, current, false],
  ["no signature", { "webhook-id": "evt_1", "webhook-timestamp": String(now) }, current, false],
  ["six minutes ago", signed(now - 360, body, current), current, false],
  ["in six minutes", signed(now + 360, body, current), current, false],
  ["no time", {}, current, false],
]) {
  test(`a webhook: ${name}`, async () => {
    for (const raw of [body, Buffer.from(body), new TextEncoder().encode(body).buffer]) {
      const call = verifyWebhook(headers, raw, secrets, now);
      if (good) assert.deepEqual(await call, JSON.parse(body));
      else await assert.rejects(call, WebhookError);
    }
  });
}

test("the example of Standard Webhooks", async () => {
  const headers = { "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" };
  await verifyWebhook(headers, '{"test": 2432232314}', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330);
});
