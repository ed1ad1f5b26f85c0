/** One fault of a request. */
export interface Detail {
  /** Its place, such as url, or timeline.clips[2].in. */
  field: string;
  issue: string;
  expected?: string;
}

/** A refusal: what the API says of it. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  /** Of HTTP; 0 where a stream broke off with an error. */
  readonly status: number;
  /** Decide by this one; empty where the answer is not of the gateway's form. */
  readonly code: string;
  /** All faults of the request. */
  readonly details: Detail[] = [];
  /** Quote it when you ask for help. */
  readonly requestId: string;
  /** Says what to do. */
  readonly documentationUrl: string = "";
  /** Seconds to wait before another try; 0: the answer does not say. */
  readonly retryAfter: number;
  readonly headers: Headers;

  /** @param text the body: the API's envelope, or what somebody in between says */
  constructor(status: number, headers: Headers, text: string) {
    const said = envelope(text);
    super(said?.message ?? `the answer is ${status}`);
    this.status = status;
    this.headers = headers;
    this.code = said?.code ?? "";
    this.details = said?.details ?? [];
    this.requestId = said?.request_id ?? headers.get("x-request-id") ?? "";
    this.documentationUrl = said?.documentation_url ?? "";
    this.retryAfter = retryAfter(headers.get("retry-after"), Date.now());
  }
}

interface Envelope {
  code: string;
  message: string;
  details?: Detail[];
  request_id?: string;
  documentation_url?: string;
}

/** What the API's error envelope says; undefined where text is none. */
export function envelope(text: string): Envelope | undefined {
  try {
    const said = JSON.parse(text)?.error;
    return typeof said?.code === "string" && typeof said.message === "string" ? said : undefined;
  } catch {
    return undefined;
  }
}

/** Seconds of a Retry-After, which has them or a date (RFC 9110, 10.2.3). */
export function retryAfter(text: string | null, now: number): number {
  if (text === null || text.trim() === "") return 0;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(seconds, 0) : 0;
}
