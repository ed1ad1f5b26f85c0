/**
 * The client of a Sluice gateway: a method for each operation of its API, and what every caller
 * needs around them. It needs nothing but fetch and Web Crypto.
 *
 * @module
 */

import { ChatStream } from "./chat.js";
import type { CallOptions } from "./core.js";
import { Operations } from "./operations.js";
import type { components } from "./types.js";

export { ChatStream, type Chunk, textOf } from "./chat.js";
export type { CallOptions, ClientOptions } from "./core.js";
export { type Detail, SluiceError } from "./errors.js";
export { type ServerEvent, serverEvents } from "./sse.js";
export { version } from "./version.js";
export { verifyWebhook, WebhookError, type WebhookEvent, webhookTolerance } from "./webhooks.js";

/** The objects of the API by name: `Schemas["Webhook"]`. */
export type Schemas = components["schemas"];

/** Calls one gateway with one credential. */
export class Sluice extends Operations {
  /**
   * Begins a completion, which always comes as a stream. It ends when the stream is left, and
   * what was not read then is neither made nor paid. An idempotencyKey changes that: the
   * completion goes on when its caller leaves, is paid in whole, and a repetition with the key
   * gets it; that is why this call alone has no key by itself, and without one is not repeated.
   * `POST /v1/chat/completions` of the chat runtime
   */
  async createChatCompletion(body: Schemas["ChatCompletionRequest"], options: CallOptions = {}): Promise<ChatStream> {
    return new ChatStream(await this.raw({ method: "POST", path: "/v1/chat/completions", json: body, chat: true, accept: "text/event-stream" }, options));
  }

  /**
   * Calls a path that there is no method for, such as one of your own API behind the gateway,
   * with the credential, retries and errors of every other call. A POST is repeated if it has
   * an idempotencyKey.
   */
  request(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Response> {
    return this.raw({ method, path, json: body }, options);
  }
}
