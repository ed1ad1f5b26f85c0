"""Opens WebSockets through the gateway with the library `websockets` and prints what came of each."""

import asyncio
import json
import os

import websockets

BASE = os.environ["BASE"].replace("http", "ws", 1)
KEY = {"Authorization": "Bearer " + os.environ["KEY"]}


async def echo(**how):
    async with websockets.connect(BASE + "/open", **how) as ws:
        seen = []
        for message in ["text", b"bytes", "x" * 300_000]:
            await ws.send(message)
            answer = await ws.recv()
            seen.append(answer == message)
        await (await ws.ping())
        return {"same": all(seen), "protocol": ws.subprotocol, "compressed": bool(ws.protocol.extensions)}


async def refused(path, headers):
    try:
        async with websockets.connect(BASE + path, additional_headers=headers):
            return "let through"
    except websockets.InvalidStatus as e:
        return f"{e.response.status_code} {json.loads(e.response.body)['error']['code']}"


async def idle():
    async with websockets.connect(BASE + "/idle", additional_headers=KEY, ping_interval=None) as ws:
        try:
            await ws.recv()
        except websockets.ConnectionClosed as e:
            return e.rcvd is None


async def main():
    print(json.dumps({
        "header": await echo(additional_headers=KEY),
        "protocol": await echo(subprotocols=["chat", "sluice.bearer." + os.environ["KEY"]]),
        "none": await refused("/open", {}),
        "plain": await refused("/plain", KEY),
        "reset": await idle(),
    }))


asyncio.run(main())
