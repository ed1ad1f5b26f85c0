"""Reads the agent card at BASE with the installed version of the official library, and prints what it has seen."""

import asyncio
import json
import os

import httpx
from a2a.client import A2ACardResolver


async def main():
    async with httpx.AsyncClient() as client:
        card = await A2ACardResolver(client, os.environ["BASE"]).get_agent_card()
    old = hasattr(card, "url")
    url = card.url if old else card.supported_interfaces[0].url
    return {"Name": card.name, "URL": url, "Skills": [s.id for s in card.skills], "Schemes": list(card.security_schemes)}


print(json.dumps(asyncio.run(main())))
