import { SluiceError } from "./errors.js";
import { version } from "./version.js";

/** The settings of a client. */
export interface ClientOptions {
  /** Address of the gateway, such as https://api.example.com. */
  baseUrl: string;
  /** What lets in: an API key (slk_…), an access token or a person's session. */
  key: string;
  /** Where chat completions are served; default: at baseUrl. */
  runtimeUrl?: string | undefined;
  /**
   * How often a request is repeated; default: 3. What is repeated are GET, DELETE and any POST
   * with an Idempotency-Key, after 429, 502, 503, 504 and failures of the connection, and after
   * a 409 that says that the first try is still under way. A Retry-After of more than a minute
   * is not waited for.
   */
  retries?: number | undefined;
  /** Name of the program that calls, before that of this package. Browsers send their own. */
  userAgent?: string | undefined;
  /** Makes the requests; default: fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Waits between two tries; default: by the clock. */
  pause?: ((milliseconds: number, signal?: AbortSignal) => Promise<void>) | undefined;
}

/** The settings of one call. */
export interface CallOptions {
  /** Ends the call: AbortSignal.timeout(10_000) after ten seconds. */
  signal?: AbortSignal | undefined;
  /** Has a POST take effect once, however often the program asks; creates have one by themselves. */
  idempotencyKey?: string | undefined;
  /** Has a change made only if what is changed is still of this ETag. */
  ifMatch?: string | undefined;
  headers?: Record<string, string> | undefined;
}

/** One operation with what it is given. */
export interface Call {
  method: string;
  path: string;
  query?: Record<string, unknown> | undefined;
  json?: unknown;
  bytes?: BodyInit | null | undefined;
  contentType?: string | undefined;
  accept?: string | undefined;
  /** It takes an Idempotency-Key. */
  once?: boolean | undefined;
  /** It goes to the chat runtime. */
  chat?: boolean | undefined;
}

/** The longest Retry-After that is waited for, in seconds. */
const longestWait = 60;

/** What all methods have in common. */
export abstract class Core {
  readonly #options: ClientOptions;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** Makes a call and reads its JSON. */
  protected json<T>(call: Call, options: CallOptions): Promise<T> {
    return this.#tried(call, options, async (answer) => JSON.parse(await answer.text()) as T);
  }

  /** Makes a call that answers nothing. */
  protected none(call: Call, options: CallOptions): Promise<void> {
    return this.#tried(call, options, async (answer) => void (await answer.arrayBuffer()));
  }

  /** Makes a call and gives its answer as it is. */
  protected raw(call: Call, options: CallOptions): Promise<Response> {
    return this.#tried({ accept: "*/*", ...call }, options, async (answer) => answer);
  }

  /** Makes a call, again where that is safe and may help, and reads its success. */
  async #tried<T>(call: Call, options: CallOptions, read: (answer: Response) => Promise<T>): Promise<T> {
    const headers = this.#headers(call, options);
    const safe = ["GET", "HEAD", "DELETE"].includes(call.method) || (call.method === "POST" && headers.has("Idempotency-Key"));
    const address = this.#address(call);
    const most = safe && call.bytes === undefined ? (this.#options.retries ?? 3) : 0;
    // Whether an earlier try may have had effect.
    for (let retries = 0, unsure = false; ; retries++) {
      let wait = backoff(retries);
      try {
        const answer = await this.#fetch(address, {
          method: call.method,
          headers,
          body: call.bytes ?? (call.json === undefined ? null : JSON.stringify(call.json)),
          signal: options.signal ?? null,
        });
        if (answer.ok) return await read(answer);
        throw new SluiceError(answer.status, answer.headers, await answer.text());
      } catch (failure) {
        const refused = failure instanceof SluiceError ? failure : undefined;
        // What it was to delete is gone, by a try of which no answer came.
        if (refused?.status === 404 && unsure && call.method === "DELETE") return await read(new Response(null, { status: 204 }));
        const passes = refused ? mayPass(refused) : !(failure instanceof SyntaxError);
        if (retries >= most || !passes || options.signal?.aborted) throw failure;
        unsure ||= refused === undefined || refused.status === 502 || refused.status === 504;
        if (refused && refused.retryAfter > longestWait) throw failure;
        if (refused && refused.retryAfter > 0) wait = 1000 * (refused.retryAfter + Math.random() * Math.min(refused.retryAfter / 4, 1));
        await (this.#options.pause ?? pause)(wait, options.signal);
      }
    }
  }

  #headers(call: Call, options: CallOptions): Headers {
    const headers = new Headers(options.headers);
    headers.set("Authorization", `Bearer ${this.#options.key}`);
    if (!headers.has("Accept")) headers.set("Accept", call.accept ?? "application/json");
    // Browsers send their own, and ask the server first about another.
    if ("process" in globalThis && !("window" in globalThis)) headers.set("User-Agent", `${this.#options.userAgent ? `${this.#options.userAgent} ` : ""}sluice-typescript/${version}`);
    if (call.json !== undefined) headers.set("Content-Type", "application/json");
    if (call.contentType !== undefined && call.bytes) headers.set("Content-Type", call.contentType);
    if (options.ifMatch !== undefined) headers.set("If-Match", options.ifMatch);
    if (options.idempotencyKey !== undefined) headers.set("Idempotency-Key", options.idempotencyKey);
    else if (call.once && !headers.has("Idempotency-Key")) headers.set("Idempotency-Key", crypto.randomUUID());
    return headers;
  }

  #address(call: Call): string {
    const base = (call.chat ? this.#options.runtimeUrl : undefined) ?? this.#options.baseUrl;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined && value !== null) query.set(name, String(value)); // an array with commas
    }
    return base.replace(/\/+$/, "") + call.path + (query.size > 0 ? `?${query}` : "");
  }
}

/** Whether the same request may succeed a little later. */
function mayPass(refused: SluiceError): boolean {
  // The first try of a POST, whose answer was lost, is still under way.
  const underWay = refused.status === 409 && refused.retryAfter > 0;
  return underWay || [429, 502, 503, 504].includes(refused.status);
}

/** Milliseconds to wait after a number of retries, half of them random. */
export function backoff(retries: number): number {
  const most = Math.min(500 * 2 ** retries, 8000);
  return most / 2 + (Math.random() * most) / 2;
}

function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", over);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", over, { once: true });
  });
}

/** Goes through a list page by page: get reads the page of its parameters. */
export async function* each<P extends { cursor?: string | undefined; offset?: number | undefined }, T>(
  params: P,
  get: (params: P) => Promise<[T[], string | null | undefined]>,
): AsyncGenerator<T, void, undefined> {
  for (let p = { ...params }; ; ) {
    const [entries, next] = await get(p);
    yield* entries;
    if (!next) return;
    p = { ...p, cursor: next };
    delete p.offset; // a cursor stands for the place
  }
}
