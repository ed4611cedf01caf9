"""The golden vectors of the protocol, decoded and encoded again."""

import pathlib
import unittest

from lockstepd.messages import CLIENT, SERVER
from lockstepd.wire import WireError, decode, encode

VECTORS = pathlib.Path(__file__).parents[3] / "protocol" / "vectors"


class Vectors(unittest.TestCase):
    def test_every_message_is_understood_and_made(self) -> None:
        for file, kind in (("client", CLIENT), ("server", SERVER)):
            lines = (VECTORS / f"{file}.hex").read_text().splitlines()
            seen = set()
            for line in lines:
                name, _, hexadecimal = line.partition(" = ")
                data = bytes.fromhex(hexadecimal)
                with self.subTest(name):
                    message = decode(kind, data)
                    self.assertTrue(name.startswith(message[0]))
                    self.assertEqual(encode(kind, message).hex(), hexadecimal)
                    self.check_damage(kind, data)
                    seen.add(message[0])
            self.assertEqual(seen, set(kind.numbers), "a vector of every message")

    def check_damage(self, kind, data: bytes) -> None:
        """Cut short or longer it is no message."""
        for end in range(len(data)):
            with self.assertRaises(WireError):
                decode(kind, data[:end])
        with self.assertRaises(WireError):
            decode(kind, data + b"\0")

    def test_fields_are_what_the_documentation_says(self) -> None:
        data = bytes.fromhex("0107000003fc00000300fcffff0300")
        command = ("MoveTo", {"character": 3, "x": 98_304, "z": -131_072})
        self.assertEqual(decode(CLIENT, data), ("Command", {"sequence": 7, "at_tick": None, "command": command}))


if __name__ == "__main__":
    unittest.main()
