// Runs the official JavaScript clients against a runtime and prints what they
// saw, one JSON object, for the end-to-end tests.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

const { BASE: baseURL, KEY: apiKey } = process.env;
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { type: "function", function: { name: "get_weather", parameters } };
const ask = (content, more) => ({ model: "echo-1", messages: [{ role: "user", content }], ...more });

async function openai() {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const done = await client.chat.completions.stream(ask("one two three")).finalChatCompletion();
  const called = await client.chat.completions.stream(ask("use get_weather", { tools: [weather] })).finalChatCompletion();
  const call = called.choices[0].message.tool_calls[0].function;
  return {
    text: {
      text: done.choices[0].message.content,
      finish: done.choices[0].finish_reason,
      total: done.usage.total_tokens,
      sum: done.usage.prompt_tokens + done.usage.completion_tokens,
    },
    tools: call.name + call.arguments,
    errors: {
      unknown: await status(client, ask("x", { model: "none" })),
      invalid: await status(client, ask("x", { messages: [] })),
      key: await status(new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }), ask("x")),
    },
    cancel: await cancel(client),
    models: (await client.models.list()).data.map((m) => m.id),
  };
}

async function status(client, request) {
  try {
    for await (const _ of await client.chat.completions.create({ ...request, stream: true }));
  } catch (error) {
    return error.status;
  }
  return 0;
}

async function cancel(client) {
  const stream = await client.chat.completions.create({ ...ask("one two three four five six"), model: "echo-1-slow", stream: true });
  let seen = 0;
  for await (const _ of stream) if (++seen === 2) break; // which aborts the request
  return stream.controller.signal.aborted;
}

async function langchain() {
  const model = new ChatOpenAI({ model: "echo-1", apiKey, configuration: { baseURL }, streaming: true, streamUsage: true, maxRetries: 0 });
  let total;
  for await (const chunk of await model.stream("one two three")) total = total ? total.concat(chunk) : chunk;
  const usage = total.usage_metadata;
  const call = (await model.bindTools([weather]).invoke("use get_weather")).tool_calls[0];
  return {
    text: {
      text: total.content,
      finish: total.response_metadata.finish_reason,
      total: usage.total_tokens,
      sum: usage.input_tokens + usage.output_tokens,
    },
    tools: call.name + JSON.stringify(call.args),
  };
}

async function aisdk() {
  const model = createOpenAICompatible({ name: "sluice", baseURL, apiKey, includeUsage: true })("echo-1");
  const done = streamText({ model, prompt: "one two three", maxRetries: 0 });
  const text = await done.text;
  const usage = await done.usage;
  const called = streamText({ model, prompt: "use get_weather", tools: { get_weather: tool({ inputSchema: jsonSchema(parameters) }) }, maxRetries: 0 });
  const call = (await called.toolCalls)[0];
  return {
    text: { text, finish: await done.finishReason, total: usage.totalTokens, sum: usage.inputTokens + usage.outputTokens },
    tools: call.toolName + JSON.stringify(call.input),
  };
}

console.log(JSON.stringify({ openai: await openai(), langchain: await langchain(), aisdk: await aisdk() }));
