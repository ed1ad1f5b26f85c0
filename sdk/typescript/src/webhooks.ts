/** What a webhook endpoint receives. */
export interface WebhookEvent {
  /** The same in each attempt: handle it once. */
  id: string;
  event: string;
  /** ISO 8601. */
  timestamp: string;
  stream_id?: string;
  recording_id?: string;
  /** As the catalogue of events says. */
  data: Record<string, unknown>;
}

/** Why what came to a webhook endpoint is not believed. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

/** How far the timestamp of a delivery may be from the present, in seconds. */
export const webhookTolerance = 300;

/** How many signatures of a request are looked at. */
const maxSignatures = 16;

/**
 * Returns the event of a request to a webhook endpoint, if it was signed with one of the secrets
 * not long ago; else throws a WebhookError. Give the new and the previous secret while one is
 * rotated. Compares take constant time.
 *
 * @param headers of the request: those of fetch, or Node's
 * @param body of the request, byte for byte
 * @param now the present, in seconds since 1970
 */
export async function verifyWebhook(
  headers: Headers | Record<string, string | string[] | undefined>,
  body: Uint8Array | ArrayBuffer | string,
  secrets: string | string[],
  now: number = Date.now() / 1000,
): Promise<WebhookEvent> {
  const id = header(headers, "webhook-id");
  const at = header(headers, "webhook-timestamp");
  if (!/^\d+$/.test(at) || Math.abs(now - Number(at)) > webhookTolerance) {
    throw new WebhookError("the webhook's timestamp is missing or too far from the present");
  }
  const text = new TextEncoder();
  const raw = typeof body === "string" ? text.encode(body) : new Uint8Array(body);
  const head = text.encode(`${id}.${at}.`);
  const signed = new Uint8Array(head.length + raw.length);
  signed.set(head);
  signed.set(raw, head.length);

  const given = header(headers, "webhook-signature").split(/\s+/).slice(0, maxSignatures);
  let good = false;
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    if (secret === "") continue; // whoever knows nothing could sign with it
    const key = await crypto.subtle.importKey("raw", keyOf(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const g of given) {
      const signature = g.startsWith("v1,") ? bytesOf(g.slice(3)) : undefined;
      if (signature && (await crypto.subtle.verify("HMAC", key, signature, signed))) good = true;
    }
  }
  if (!good) throw new WebhookError("no signature of the webhook is by a known secret");
  return JSON.parse(new TextDecoder().decode(raw)) as WebhookEvent;
}

function header(headers: Headers | Record<string, string | string[] | undefined>, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? "";
}

/** What a secret signs with: the bytes for which whsec_… stands, or the text itself. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const decoded = secret.startsWith("whsec_") ? bytesOf(secret.slice("whsec_".length)) : undefined;
  return decoded && decoded.length > 0 ? decoded : new TextEncoder().encode(secret);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
