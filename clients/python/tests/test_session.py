"""Against a server that does what a test says: where a client goes, and how long it tries."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

from lockstepd import Client, Closed
from lockstepd.messages import CLIENT, SERVER, Message
from lockstepd.wire import decode, encode

HANG_SECONDS = 60
# The example of docs/PROTOCOL.md, for the location "town".
TICKET = (
    "EweZF5Wu3pREZDUfFG1VF4LL52mECbOlvqBT1T3jZD8vgy_yWRVZOyzUfQNULFUP9PYsIS2rfzs_GCd3atA0DiH-Md-hVKJhCWxvY2tzdGVwZAR0b3du"
    "CWFjY291bnQtMQNBbm4AAPzi0Ulr_FjUSWswMTIzNDU2Nzg5YWJjZGVm"
)
GOODBYE = bytes.fromhex("0100000005")
WELCOME: Message = ("Welcome", {
    "version": 1, "features": 0, "run": bytes(16), "session": 7, "token": bytes(16), "characters": [1], "next_tick": 1,
    "tick_rate": 10, "ruleset": 1, "ruleset_hash": 1, "definition": bytes(32), "grace_ms": 30_000, "last_sequence": 0,
})


class Peer:
    """One connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, name: str, fields: dict[str, Any]) -> None:
        payload = encode(SERVER, (name, fields))
        self.writer.write(len(payload).to_bytes(4, "little") + payload)

    async def drop(self) -> None:
        """Everything that was sent arrives, and then the end."""
        await self.writer.drain()
        self.writer.close()


Play = Callable[[Peer], Awaitable[None]]


async def wait(peer: Peer) -> None:
    """Says nothing until the client goes."""
    await peer.reader.read()


async def let_in(peer: Peer) -> None:
    peer.send(*WELCOME)
    await peer.reader.readuntil(GOODBYE)


async def let_in_and_drop(peer: Peer) -> None:
    peer.send(*WELCOME)


def reject(code: int) -> Play:
    async def play(peer: Peer) -> None:
        peer.send("Reject", {"code": code, "min_version": 1, "max_version": 1, "message": "no"})

    return play


def redirect(address: str, close: int | None) -> Play:
    async def play(peer: Peer) -> None:
        peer.send(*WELCOME)
        peer.send("Redirect", {"location": "yard", "address": address, "ticket": "travel"})
        if close is not None:
            peer.send("Close", {"code": close, "message": ""})

    return play


class Session(unittest.IsolatedAsyncioTestCase):
    async def serve(self, *plays: Play) -> tuple[str, list[dict[str, Any]]]:
        """A server that plays these, one a connection; its address, and the Hellos that it gets."""
        hellos: list[dict[str, Any]] = []

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            length = int.from_bytes(await reader.readexactly(4), "little")
            name, hello = decode(CLIENT, await reader.readexactly(length))
            self.assertEqual(name, "Hello")
            hellos.append(hello)
            peer = Peer(reader, writer)
            await plays[min(len(hellos), len(plays)) - 1](peer)
            await peer.drop()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.addCleanup(server.close)
        return "{}:{}".format(*server.sockets[0].getsockname()), hellos

    def client(self, address: str, **more: Any) -> Client:
        host, _, port = address.rpartition(":")
        return Client(host, int(port), **more)

    async def welcomed(self, client: Client, times: int) -> None:
        """Runs it until it has been welcomed so often."""
        async with asyncio.timeout(HANG_SECONDS):
            async for name, _ in client.messages():
                times -= name == "Welcome"
                if times == 0:
                    client.leave()

    async def test_a_ticket_alone_says_where_the_session_is(self) -> None:
        address, hellos = await self.serve(let_in_and_drop, let_in)
        await self.welcomed(self.client(address, ticket=TICKET), 2)
        seen = [(hello["location"], hello["ticket"], hello["resume"] is not None) for hello in hellos]
        self.assertEqual(seen, [("", TICKET, False), ("town", None, True)])

    async def test_it_goes_where_it_is_sent_whatever_becomes_of_the_close(self) -> None:
        for close in (310, 309, None):
            with self.subTest(close):
                there, hellos = await self.serve(let_in)
                here, _ = await self.serve(redirect(there, close))
                await self.welcomed(self.client(here, name="Ann", role="Player"), 2)
                seen = [(hello["location"], hello["name"], hello["ticket"], hello["resume"]) for hello in hellos]
                self.assertEqual(seen, [("yard", "", "travel", None)])

    async def test_whoever_is_sent_away_and_then_kicked_goes_nowhere(self) -> None:
        there, hellos = await self.serve(let_in)
        here, _ = await self.serve(redirect(there, 307))
        with self.assertRaises(Closed) as caught:
            await self.welcomed(self.client(here), 2)
        self.assertEqual((caught.exception.code, hellos), (307, []))

    async def test_commands_wait_for_the_welcome_and_have_the_fields_that_they_have(self) -> None:
        async def late(peer: Peer) -> None:
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await peer.reader.read(1)
            peer.send(*WELCOME)
            heard = []
            for _ in range(2):
                length = int.from_bytes(await peer.reader.readexactly(4), "little")
                heard.append(decode(CLIENT, await peer.reader.readexactly(length))[1]["command"])
            self.assertEqual(heard, [("SwitchMap", {"map": "day"}), ("Stop", {"character": 3})])
            await peer.reader.readuntil(GOODBYE)

        address, _ = await self.serve(late)
        client = self.client(address)
        client.command("SwitchMap", map="day")
        client.command("Stop", character=3)
        await self.welcomed(client, 1)

    async def test_a_location_that_lets_nobody_in_is_not_asked_for_ever(self) -> None:
        for code in (103, 104, 118, 119):
            with self.subTest(code):
                address, _ = await self.serve(reject(code))
                with self.assertRaisesRegex(ConnectionError, f"{code} no"):
                    await self.welcomed(self.client(address, patience=0.1), 1)

    async def test_a_server_that_has_its_hello_may_take_its_time(self) -> None:
        address, hellos = await self.serve(wait, let_in)
        with mock.patch.multiple("lockstepd.client", ANSWER_SECONDS=1.0, HELLO_SECONDS=0.9):
            await self.welcomed(self.client(address, patience=0.5), 1)
        self.assertEqual(len(hellos), 2)


if __name__ == "__main__":
    unittest.main()
