"""Runs the official Python clients against a runtime and prints what they saw,
one JSON object, for the end-to-end tests."""

import json
import os

import openai
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI

BASE, KEY = os.environ["BASE"], os.environ["KEY"]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def ask(prompt, **more):
    return {"model": "echo-1", "messages": [{"role": "user", "content": prompt}], **more}


def text(client):
    with client.chat.completions.stream(**ask("one two three")) as stream:
        done = stream.get_final_completion()
    usage = done.usage
    return {
        "text": done.choices[0].message.content,
        "finish": done.choices[0].finish_reason,
        "total": usage.total_tokens,
        "sum": usage.prompt_tokens + usage.completion_tokens,
    }


def tools(client):
    with client.chat.completions.stream(**ask("use get_weather", tools=[WEATHER])) as stream:
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    return call.function.name + call.function.arguments


def failures(client):
    def status(c, **request):
        try:
            list(c.chat.completions.create(stream=True, **request))
        except openai.APIStatusError as error:
            return error.status_code
        return 0

    wrong = openai.OpenAI(base_url=BASE, api_key="wrong", max_retries=0)
    return {
        "unknown": status(client, **{**ask("x"), "model": "none"}),
        "invalid": status(client, **{**ask("x"), "messages": []}),
        "key": status(wrong, **ask("x")),
    }


def cancel(client):
    stream = client.chat.completions.create(stream=True, **{**ask("one two three four five six"), "model": "echo-1-slow"})
    seen = [next(stream), next(stream)]
    stream.close()
    return len(seen) == 2


def langchain():
    model = ChatOpenAI(model="echo-1", base_url=BASE, api_key=KEY, streaming=True, stream_usage=True, max_retries=0)
    total = AIMessageChunk(content="")
    for chunk in model.stream("one two three"):
        total += chunk
    usage = total.usage_metadata
    call = model.bind_tools([WEATHER]).invoke("use get_weather").tool_calls[0]
    return {
        "text": {
            "text": total.content,
            "finish": total.response_metadata.get("finish_reason"),
            "total": usage["total_tokens"],
            "sum": usage["input_tokens"] + usage["output_tokens"],
        },
        "tools": call["name"] + json.dumps(call["args"], separators=(",", ":")),
    }


def main():
    client = openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0)
    seen = {
        "text": text(client),
        "tools": tools(client),
        "errors": failures(client),
        "cancel": cancel(client),
        "models": [m.id for m in client.models.list()],
    }
    print(json.dumps({"openai": seen, "langchain": langchain()}))


main()
