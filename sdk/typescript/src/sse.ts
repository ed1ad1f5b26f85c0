/** One server-sent event. */
export interface ServerEvent {
  /** Empty where the stream names none. */
  name: string;
  /** The data lines, joined by newlines. */
  data: string;
}

/** The longest event that is read, in characters. */
const maxEvent = 4 << 20;

/**
 * Reads server-sent events (WHATWG HTML, 9.2) as they come. Whoever leaves the loop ends the
 * stream. It holds one event, and throws where that is longer than 4 MiB.
 */
export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder(); // drops the byte order mark
  let rest = "";
  let scanned = 0;
  let cr = false;
  let event: { name: string; data: string[]; size: number } = { name: "", data: [], size: 0 };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return; // an event that the end cuts off does not count
      rest += decoder.decode(value, { stream: true });
      let at = 0;
      for (;;) {
        if (cr && at < rest.length) {
          if (rest[at] === "\n") at++;
          cr = false;
        }
        const end = lineEnd(rest, Math.max(at, scanned));
        if (end < 0) break;
        const line = rest.slice(at, end);
        cr = rest[end] === "\r";
        at = end + 1;
        if (line === "") {
          if (event.data.length > 0) yield { name: event.name, data: event.data.join("\n") };
          event = { name: "", data: [], size: 0 };
          continue;
        }
        take(event, line);
      }
      rest = rest.slice(at);
      scanned = rest.length;
      if (rest.length + event.size > maxEvent) throw new RangeError("an event of the stream is too long");
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it is over either way
  }
}

function lineEnd(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 10 || c === 13) return i;
  }
  return -1;
}

function take(event: { name: string; data: string[]; size: number }, line: string): void {
  const colon = line.indexOf(":");
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
  if (field === "event") event.name = value;
  if (field === "data") {
    event.data.push(value);
    event.size += value.length + 1;
  }
}
