"""Watches or publishes a stream by MoQ with the bindings of moq-dev's implementation."""

import asyncio
import json
import os
import struct
import time

import moq


def boxes(film):
    """The boxes of a fragmented MP4: its header, and each fragment."""
    at, header, fragments = 0, b"", []
    while at < len(film):
        (size,) = struct.unpack(">I", film[at : at + 4])
        kind, box = film[at + 4 : at + 8], film[at : at + size]
        at += size
        if kind in (b"ftyp", b"moov"):
            header += box
        elif kind == b"moof":
            fragments.append(box)
        elif kind == b"mdat":
            fragments[-1] += box
    return header, fragments


async def watch(client):
    broadcast = await client.announced_broadcast(os.environ["STREAM"])
    catalog = await broadcast.catalog()
    seen = {}
    for name, track in [*catalog.video.items(), *catalog.audio.items()]:
        frames, keys = [], []
        async with await broadcast.subscribe_media(name, track) as media:
            async for frame in media:
                frames.append(frame.timestamp_us)
                keys.append(frame.keyframe)
                if len(frames) == 40:
                    break
        seen[name] = {"codec": track.codec, "frames": len(frames), "begins_with_key": keys[0], "seconds": (max(frames) - min(frames)) / 1e6}
    print(json.dumps(seen))


async def publish(client):
    header, fragments = boxes(open(os.environ["FILM"], "rb").read())
    broadcast = client.create_broadcast(os.environ["STREAM"])
    out = broadcast.publish_container(moq.ContainerFormat.FMP4)
    out.write(header)
    broadcast.announce()
    began, seconds = time.monotonic(), float(os.environ["SECONDS_OF_FILM"])
    for i, fragment in enumerate(fragments):
        out.write(fragment)
        await asyncio.sleep(max(0, began + seconds * i / len(fragments) - time.monotonic()))


async def main():
    async with moq.Client(os.environ["URL"], tls_fingerprints=os.environ["HASHES"].split(","), websocket_enabled=False, reconnect=False) as client:
        await (publish if "FILM" in os.environ else watch)(client)


asyncio.run(asyncio.wait_for(main(), 120))
