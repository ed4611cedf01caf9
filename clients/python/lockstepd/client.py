"""A client over TCP: it joins, commands, observes, and comes back as who it was when the connection is lost."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

from .messages import CLAIMS, CLIENT, COMMAND, FRAME_BYTES_MAX, PACKED_STATES, SERVER, VERSION, Message
from .observer import Observer
from .wire import WireError, decode, encode

PING_SECONDS = 4.0
SILENCE_SECONDS = 15.0
# A location may need a minute for the snapshot that goes with a Welcome.
ANSWER_SECONDS = 70.0
# A server that has not got a whole Hello closes by then: one that keeps the connection for longer has read it.
HELLO_SECONDS = 5.0
RETRY_SECONDS = 0.2
SIGNATURE_BYTES = 64
# Worth another try (docs/PROTOCOL.md, Codes).
REJECTS_TO_RETRY = {103, 104, 118, 119}
CLOSES_TO_RETRY = {303, 304, 309, 311, 313}
MOVED = 310


class Rejected(Exception):
    """The server does not let this client in."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code


class Closed(Exception):
    """The server has closed the connection and does not want this client back."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code


class Client:
    """One session. Iterate over `messages()`; commands may be given at any time.

    feed is State (with `observer`) or Answers; the Lockstep feed would need the simulation.
    """

    def __init__(
        self,
        host: str,
        port: int,
        name: str = "",
        *,
        role: str = "Watcher",
        feed: str = "State",
        location: str = "",
        ticket: str | None = None,
        packed: bool = True,
        view: dict[str, Any] | None = None,
        patience: float = 30.0,
    ) -> None:
        self.address = (host, port)
        self.hello: dict[str, Any] = {
            "magic": b"LSTP", "version": VERSION, "features": PACKED_STATES if packed else 0,
            "client": "lockstepd python", "location": location, "role": (role, {}), "feed": (feed, {}), "view": view,
            "name": name, "ticket": ticket, "resume": None, "definition": ("No", {}),
        }
        self.patience = patience
        self.listened_at = 0.0
        self.observer = Observer()
        self.welcome: dict[str, Any] = {}
        self.resumes = 0
        self.next_sequence = 1
        self.unanswered: dict[int, dict[str, Any]] = {}
        self.answers: dict[int, Message] = {}
        self.writer: asyncio.StreamWriter | None = None
        self.connected = False
        self.leaving = False
        self.redirect: dict[str, Any] | None = None

    @property
    def character(self) -> int:
        """The first of its own characters."""
        return int(self.welcome["characters"][0])

    def command(self, name: str, at_tick: int | None = None, **fields: Any) -> int:
        """Gives a command for its own character, unless the fields say another; its sequence."""
        if COMMAND.has(name, "character") and "character" not in fields:
            fields["character"] = self.character
        sequence, self.next_sequence = self.next_sequence, self.next_sequence + 1
        given = {"sequence": sequence, "at_tick": at_tick, "command": (name, fields)}
        encode(CLIENT, ("Command", given))  # a mistake is found before anything is kept
        self.unanswered[sequence] = given
        if self.connected:
            self.send(("Command", given))
        return sequence

    def leave(self) -> None:
        """Leaves for good; `messages()` ends."""
        self.leaving = True
        self.send(("Goodbye", {}))

    def drop_connection(self) -> None:
        """As if the network had failed; the session is resumed."""
        if self.writer is not None:
            self.writer.transport.abort()

    def send(self, message: Message) -> None:
        """Sends a message, if there is a connection."""
        if self.writer is not None and not self.writer.is_closing():
            payload = encode(CLIENT, message)
            self.writer.write(len(payload).to_bytes(4, "little") + payload)

    async def messages(self) -> AsyncIterator[Message]:
        """Everything that comes, until it leaves. What it brings about is done before it is told."""
        self.listens()
        while True:
            try:
                async for message in self.connection():
                    self.listens()
                    yield message
            except (OSError, EOFError, TimeoutError) as error:
                silent = asyncio.get_running_loop().time() - self.listened_at
                if not self.leaving and not self.redirect and silent > self.patience:
                    raise ConnectionError(f"no connection: {error}") from error
            finally:
                self.connected = False
                if self.writer is not None:
                    self.writer.close()
                    self.writer = None
            if self.leaving:
                return
            # It has left there already, whatever became of the Close.
            if self.redirect:
                self.travel(self.redirect)
                self.listens()
            else:
                await asyncio.sleep(RETRY_SECONDS)

    def listens(self) -> None:
        """There is a server that listens: patience begins anew."""
        self.listened_at = asyncio.get_running_loop().time()

    async def connection(self) -> AsyncIterator[Message]:
        reader, writer = await asyncio.open_connection(*self.address)
        self.writer = writer
        self.send(("Hello", self.hello))
        name, fields = await self.answer(reader)
        if name == "Reject":
            rejected = Rejected(fields["code"], fields["message"])
            if rejected.code in REJECTS_TO_RETRY:
                raise ConnectionError(f"not let in: {rejected}")
            raise rejected
        if name != "Welcome":
            raise WireError(f"{name} instead of a Welcome")
        self.welcomed(fields)
        yield name, fields
        pings = asyncio.create_task(self.keep_alive())
        try:
            while True:
                async with asyncio.timeout(SILENCE_SECONDS):
                    name, fields = await receive(reader)
                if name in ("State", "PackedState"):
                    self.observer.apply(name, fields)
                elif name in ("Accepted", "Refused"):
                    self.unanswered.pop(fields["sequence"], None)
                    self.answers[fields["sequence"]] = (name, fields)
                elif name == "Redirect":
                    self.redirect = fields
                elif name == "Close" and not self.leaving:
                    moves = self.redirect and fields["code"] == MOVED
                    if not moves and fields["code"] not in CLOSES_TO_RETRY:
                        raise Closed(fields["code"], fields["message"])
                    return
                yield name, fields
        finally:
            pings.cancel()

    async def answer(self, reader: asyncio.StreamReader) -> Message:
        """What is said to the Hello. Nothing else comes before it, for a minute perhaps."""
        asked_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await receive(reader)
        finally:
            if asyncio.get_running_loop().time() - asked_at >= HELLO_SECONDS:
                self.listens()

    def welcomed(self, welcome: dict[str, Any]) -> None:
        resumed = bool(self.welcome) and self.welcome["session"] == welcome["session"]
        self.resumes += resumed
        self.welcome = welcome
        self.next_sequence = max(self.next_sequence, welcome["last_sequence"] + 1)
        if self.hello["ticket"] and not self.hello["location"]:
            # Who names no location begins where the ticket is for, and has to name it to come back.
            self.hello["location"] = location_of(self.hello["ticket"])
        # A position that cannot be right brings everything anew; a ticket admits once.
        self.hello["resume"] = {
            "session": welcome["session"], "token": welcome["token"], "run": welcome["run"], "next_tick": 0, "digest": 0,
        }
        self.hello["ticket"] = None
        self.observer = Observer()
        self.connected = True
        for given in self.unanswered.values():
            self.send(("Command", given))

    def travel(self, to: dict[str, Any]) -> None:
        """The session goes on elsewhere, with its name and number; what had no answer gets none."""
        self.redirect = None
        if to["address"]:
            host, _, port = to["address"].rpartition(":")
            self.address = (host.strip("[]"), int(port))
        self.unanswered.clear()
        self.welcome = {}
        self.hello.update(location=to["location"], ticket=to["ticket"], name="", resume=None)

    async def keep_alive(self) -> None:
        nonce = 0
        while True:
            await asyncio.sleep(PING_SECONDS)
            nonce += 1
            self.send(("Ping", {"nonce": nonce}))


def location_of(ticket: str) -> str:
    """Where a ticket is for."""
    packed = base64.urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4))
    return str(decode(CLAIMS, packed[SIGNATURE_BYTES:])["location"])


async def receive(reader: asyncio.StreamReader) -> Message:
    """The next message of a stream."""
    length = int.from_bytes(await reader.readexactly(4), "little")
    if not 1 <= length <= FRAME_BYTES_MAX:
        raise WireError(f"a frame of {length} bytes")
    message: Message = decode(SERVER, await reader.readexactly(length))
    return message
