"""Runs the independent verifier on a recorded bundle, on changes of it, and on published vectors.

    python3 -m unittest tests/independent/test_verify_bundle.py
"""

import base64
import copy
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import verify_bundle as v  # noqa: E402

FIXTURE = HERE.parent / "fixtures" / "kernels" / "strict-session.json"


def recorded():
    return json.loads(FIXTURE.read_text(encoding="utf-8"))["bundle"]


def verdict(bundle):
    return v.verify(json.dumps(bundle).encode("utf-8"))


class OfTheChain(unittest.TestCase):
    def refused(self, bundle, start=""):
        with self.assertRaises(v.Problem) as caught:
            verdict(bundle)
        self.assertTrue(str(caught.exception).startswith(start), str(caught.exception))

    def test_the_recorded_bundle_holds_and_nobody_signed_it(self):
        self.assertEqual(verdict(recorded()), (10, False))

    def test_a_changed_field_is_found_at_its_entry(self):
        for number in range(10):
            for field in v.HASHED:
                bundle = recorded()
                bundle["ledger_entries"][number][field] = "forged"
                self.refused(bundle, f"entry {number}: ")

    def test_a_relabelled_entry_is_found(self):
        for field in v.LINK:
            for forged in (99, None, "0" * 63 + "1", [], True):
                bundle = recorded()
                bundle["ledger_entries"][1][field] = forged
                self.refused(bundle, "entry 1: ")

    def test_a_missing_and_an_additional_field_are_found(self):
        for field in v.HASHED + v.LINK:
            bundle = recorded()
            del bundle["ledger_entries"][4][field]
            self.refused(bundle, "entry 4: ")
        bundle = recorded()
        bundle["ledger_entries"][4]["note"] = None
        self.refused(bundle, "entry 4: ")

    def test_dropped_repeated_and_swapped_entries_are_found(self):
        for number in range(9):
            changed = recorded()
            del changed["ledger_entries"][number]
            self.refused(changed, f"entry {number}: ")
            changed = recorded()
            entries = changed["ledger_entries"]
            entries.insert(number, copy.deepcopy(entries[number]))
            self.refused(changed, f"entry {number + 1}: ")
            changed = recorded()
            entries = changed["ledger_entries"]
            entries[number], entries[number + 1] = entries[number + 1], entries[number]
            self.refused(changed, f"entry {number}: ")

    def test_a_list_under_another_name_and_no_entries_under_a_root_are_refused(self):
        bundle = recorded()
        bundle["items"] = bundle.pop("ledger_entries")
        self.refused(bundle)
        bundle = recorded()
        bundle["ledger_entries"] = []
        self.refused(bundle, "root_hash")

    def test_the_second_list_must_be_the_same(self):
        bundle = recorded()
        bundle["entries"] = copy.deepcopy(bundle["ledger_entries"])
        self.assertEqual(verdict(bundle), (10, False))
        bundle["entries"].pop()
        self.refused(bundle, "`entries`")

    def test_a_part_of_a_signature_is_refused(self):
        for key, value in (("version", 1), ("seal", "x"), ("checkpoint", "x"), ("details", {})):
            bundle = recorded()
            bundle[key] = value
            self.refused(bundle)

    def test_what_json_readers_differ_about_is_refused(self):
        text = json.dumps(recorded())
        for bad in (
            text.replace('"actor": "alice"', '"actor": "alice", "actor": "alice"', 1),
            text.replace('"ts_ms": 1005', '"ts_ms": 1005.0', 1),
            text.replace('"ts_ms": 1005', '"ts_ms": NaN', 1),
            text.replace('"kernel_id": "golden"', '"kernel_id": "\\ud800"', 1),
            text.replace("}]", "}]x", 1),
            "[" * 100_000,
            "",
            "[]",
            text + "x",
        ):
            with self.assertRaises(v.Problem):
                v.verify(bad.encode("utf-8"))
        with self.assertRaises(v.Problem):
            v.verify(b"\xff" + text.encode("utf-8"))

    def test_the_program_says_one_line_and_exits_accordingly(self):
        def run(data):
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                file.write(data)
                file.flush()
                command = [sys.executable, str(HERE / "verify_bundle.py"), file.name]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                return done.returncode, done.stdout

        good = json.dumps(recorded())
        self.assertEqual(run(good.encode()), (0, "ok 10 entries, unsigned\n"))
        forged = good.replace("mallory", "alice", 1)
        code, said = run(forged.encode())
        self.assertEqual((code, said.count("\n"), said[:8]), (1, 1, "entry 1:"))


class OfTheMathematics(unittest.TestCase):
    def test_ed25519_holds_for_the_vectors_of_rfc_8032(self):
        vectors = (
            (
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
        )
        for public, message, signature in vectors:
            public, message = bytes.fromhex(public), bytes.fromhex(message)
            signature = bytes.fromhex(signature)
            self.assertTrue(v.ed25519_holds(public, message, signature))
            self.assertFalse(v.ed25519_holds(public, message + b"x", signature))
            for at in (0, 31, 32, 63):
                bad = bytearray(signature)
                bad[at] ^= 1
                self.assertFalse(v.ed25519_holds(public, message, bytes(bad)))
            s = int.from_bytes(signature[32:], "little") + v.L
            second = signature[:32] + s.to_bytes(32, "little")
            self.assertFalse(v.ed25519_holds(public, message, second))

    def test_the_tree_is_that_of_rfc_6962(self):
        def by_definition(leaves):
            if len(leaves) == 1:
                return hashlib.sha256(b"\x00" + leaves[0]).digest()
            k = 1
            while k * 2 < len(leaves):
                k *= 2
            parts = by_definition(leaves[:k]) + by_definition(leaves[k:])
            return hashlib.sha256(b"\x01" + parts).digest()

        self.assertEqual(v.merkle_root([]), hashlib.sha256(b"").digest())
        for size in range(1, 70):
            leaves = [bytes([n]) * 32 for n in range(size)]
            self.assertEqual(v.merkle_root(leaves), by_definition(leaves), size)

    def test_the_published_note_of_the_go_project_is_opened(self):
        key = v.read_key("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
        body = (
            "If you think cryptography is the answer to your problem,\n"
            "then you don't know what your problem is.\n"
        )
        line = (
            "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfq"
            "dngotpRZb6KE6RyyBwJnAM=\n"
        )
        self.assertEqual(v.open_note(f"{body}\n{line}", key, "note"), body)
        with self.assertRaises(v.Problem):
            v.open_note(f"{body.upper()}\n{line}", key, "note")

    def test_base64_has_one_spelling(self):
        self.assertEqual(v.base64_exact("AQ==", "it"), b"\x01")
        for text in ("AR==", "AQ", "A Q==", "AQ==\n", "é"):
            with self.assertRaises(v.Problem):
                v.base64_exact(text, "it")
        self.assertEqual(base64.b64decode("AR=="), b"\x01")


if __name__ == "__main__":
    unittest.main()
