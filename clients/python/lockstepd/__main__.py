"""`python3 -m lockstepd HOST:PORT`: watches a location, one JSON object a state."""

from __future__ import annotations

import asyncio
import json
import sys

from .client import Client


async def watch(host: str, port: int) -> None:
    client = Client(host, port)
    async for name, _ in client.messages():
        if name in ("State", "PackedState"):
            observer = client.observer
            characters = list(observer.characters.values())
            print(json.dumps({"tick": observer.tick, "characters": characters}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or ":" not in sys.argv[1]:
        sys.exit("usage: python3 -m lockstepd HOST:PORT")
    address, _, number = sys.argv[1].rpartition(":")
    try:
        asyncio.run(watch(address, int(number)))
    except (KeyboardInterrupt, BrokenPipeError):
        pass
