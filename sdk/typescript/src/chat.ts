import { envelope, SluiceError } from "./errors.js";
import { serverEvents } from "./sse.js";
import type { components } from "./types.js";

/** A part of a completion. */
export type Chunk = components["schemas"]["ChatCompletionChunk"];

/** A completion as it is made: `for await (const chunk of stream)`, once. */
export class ChatStream implements AsyncIterable<Chunk> {
  readonly #answer: Response;

  constructor(answer: Response) {
    this.#answer = answer;
  }

  /** Ends the completion; so does leaving the loop. */
  async close(): Promise<void> {
    await this.#answer.body?.cancel();
  }

  /**
   * The chunks. A completion that failed on the way throws a SluiceError, one whose stream was
   * cut off an Error.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    if (this.#answer.body) {
      for await (const { data } of serverEvents(this.#answer.body)) {
        if (data === "[DONE]") return;
        if (envelope(data)) throw new SluiceError(0, this.#answer.headers, data);
        yield JSON.parse(data) as Chunk;
      }
    }
    throw new Error("the completion was cut off");
  }

  /** Reads the whole completion and returns what the first choice says. */
  async text(): Promise<string> {
    let all = "";
    for await (const chunk of this) all += textOf(chunk);
    return all;
  }
}

/** What a chunk adds to the first choice; empty where it adds none. */
export function textOf(chunk: Chunk): string {
  const delta = chunk.choices.find((choice) => choice.index === 0)?.delta as { content?: unknown } | undefined;
  return typeof delta?.content === "string" ? delta.content : "";
}
