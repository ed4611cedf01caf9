"""Against the real daemon: `LOCKSTEPD` names the binary, else it is looked for in target/."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.request

from lockstepd import Client, Rejected

ROOT = pathlib.Path(__file__).parents[3]
HANG_SECONDS = 60
LOCATIONS = [str(ROOT / "config" / "locations" / name) for name in ("town.json", "town-polygon.json")]


def binary() -> str | None:
    named = os.environ.get("LOCKSTEPD")
    found = [ROOT / "target" / profile / "lockstepd" for profile in ("release", "debug")]
    return named or next((str(path) for path in found if path.exists()), None)


def raw(value: float) -> int:
    """A printed decimal as its raw value."""
    return round(value * 65_536)


def recorded(character: dict) -> dict:
    """A character as `replay` prints it, in raw values, as far as observers know it."""
    point = lambda value: (raw(value["x"]), raw(value["z"]))  # noqa: E731
    known = {
        name: raw(character[name])
        for name in ("yaw", "walk_speed", "collision_radius", "movement_contact_radius")
    }
    known |= {name: point(character[name]) for name in ("position", "walk_target", "requested_walk_target")}
    known["path_waypoints"] = [point(waypoint) for waypoint in character["path_waypoints"]]
    for name in (
        "id", "kind", "name", "level", "alive", "enabled", "animation", "current_waypoint_index", "moved_last_tick",
        "movement_blocked_ticks", "blocked_by", "navigation_retry_cursor", "navigation_retry_remaining",
        "search_ran_out",
    ):
        known[name] = character[name]
    return known


@unittest.skipUnless(binary(), "no lockstepd: build it or name it in LOCKSTEPD")
class Daemon(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.data = tempfile.TemporaryDirectory()
        self.addCleanup(self.data.cleanup)
        self.listen = "127.0.0.1:0"
        self.start()
        self.addCleanup(self.stop)

    def start(self, http: str = "off", *more: str) -> None:
        arguments = ["serve", "--json", "--listen", self.listen, "--data-dir", self.data.name,
                     "--http", http, *more]
        self.process = subprocess.Popen([str(binary()), *arguments], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        greeting = json.loads(self.process.stdout.readline())
        self.listen, self.http = greeting["listening"], greeting["http"]
        host, _, port = self.listen.rpartition(":")
        self.address = (host, int(port))

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate()

    async def test_an_observer_sees_what_the_journal_says(self) -> None:
        for packed in (True, False):
            client, told, dropped = Client(*self.address, packed=packed), [], False
            async with asyncio.timeout(HANG_SECONDS):
                async for name, _ in client.messages():
                    if name in ("State", "PackedState"):
                        self.assertEqual(name == "PackedState", packed)
                        told.append((client.observer.tick, copy.deepcopy(client.observer.characters)))
                    if len(told) == 8 and not dropped:
                        client.drop_connection()
                        dropped = True
                    if len(told) >= 16:
                        client.leave()
            self.assertEqual(client.resumes, 1)
            self.check_against_the_journal(told)

    def check_against_the_journal(self, told: list[tuple[int | None, dict]]) -> None:
        for tick, seen in told:
            replay = ["replay", self.data.name, "--until", str(tick), "--print", "state", "--json"]
            states = [json.loads(line) for line in self.run_binary(*replay).splitlines()]
            state = next(state for state in states if state["tick"] == tick)
            self.assertEqual(list(seen.values()), [recorded(character) for character in state["characters"]], f"tick {tick}")

    async def test_a_player_walks_and_comes_back_after_a_kill(self) -> None:
        client = Client(*self.address, "Ann", role="Player")
        walk = second = None
        async with asyncio.timeout(HANG_SECONDS):
            async for name, fields in client.messages():
                if walk is None and name == "PackedState":
                    own = client.character
                    walk = client.command("MoveTo", x=raw(31), z=raw(30))
                arrived = name == "Event" and fields["event"] == ("Arrived", {"character": client.character})
                if arrived and second is None:
                    x, z = client.observer.characters[own]["position"]
                    self.assertLess(max(abs(x - raw(31)), abs(z - raw(30))), raw(0.05))
                    self.process.kill()
                    self.process.communicate()
                    second = client.command("Stop")
                    self.start()
                if second in client.answers:
                    client.leave()
        self.assertEqual((client.resumes, client.character, client.unanswered), (1, own, {}))
        for sequence in (walk, second):
            name, fields = client.answers[sequence]
            self.assertEqual((name, fields["outcome"]), ("Accepted", 0))

    async def test_it_goes_where_it_is_sent(self) -> None:
        self.stop()
        self.start("127.0.0.1:0", "--location", *LOCATIONS)
        client, sessions, stop = Client(*self.address, "Ann", role="Player"), [], None
        async with asyncio.timeout(HANG_SECONDS):
            async for name, _ in client.messages():
                if name == "Welcome":
                    sessions.append(client.welcome["session"])
                    if len(sessions) == 1:
                        await asyncio.to_thread(self.send_away, "town", sessions[0], "town-polygon")
                    else:
                        stop = client.command("Stop")
                if stop is not None and stop in client.answers:
                    client.leave()
        self.assertEqual((len(sessions), len(set(sessions)), client.resumes), (2, 1, 0))
        self.assertEqual(client.answers[stop][1]["outcome"], 0)

    async def test_a_ticket_alone_brings_it_back_to_where_it_was(self) -> None:
        self.stop()
        key = str(pathlib.Path(self.data.name, "tickets.pem"))
        self.run_binary("ticket", "key", key)
        ticket = self.run_binary(
            "ticket", "issue", "--key", key, "--subject", "ann", "--name", "Ann", "--location", "town-polygon",
        )
        self.start("off", "--ticket-key", f"{key}.pub", "--location", *LOCATIONS)
        client = Client(*self.address, role="Player", ticket=ticket.strip())
        async with asyncio.timeout(HANG_SECONDS):
            async for name, _ in client.messages():
                if name == "Welcome" and client.resumes == 0:
                    client.drop_connection()
                elif name == "Welcome":
                    client.leave()
        self.assertEqual((client.resumes, client.hello["location"]), (1, "town-polygon"))

    def run_binary(self, *arguments: str) -> str:
        return subprocess.run([str(binary()), *arguments], capture_output=True, text=True, check=True).stdout

    def send_away(self, place: str, session: int, to: str) -> None:
        body = json.dumps({"session": session, "to": to}).encode()
        urllib.request.urlopen(f"http://{self.http}/api/locations/{place}/travel", body, HANG_SECONDS).close()

    async def test_whoever_may_not_come_in_is_told_why(self) -> None:
        with self.assertRaises(Rejected) as caught:
            async for _ in Client(*self.address, " Ann ", role="Player").messages():
                self.fail("let in")
        self.assertEqual(caught.exception.code, 112)


if __name__ == "__main__":
    unittest.main()
