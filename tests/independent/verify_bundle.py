#!/usr/bin/env python3
"""Verifies an evidence bundle of fluffy, or of a peer, with the standard library alone.

Usage: verify_bundle.py FILE...

Prints one line `ok N entries` (with `unsigned` where nobody vouches for the bundle) and exits 0,
or the first problem with the number of its entry and exits 1. With several files, each has its line.

Written from the text of DESIGN ("Ledger", "Evidence bundle"), RFC 6962, RFC 8032 and
https://c2sp.org/signed-note; it shares no code with the program that writes bundles.
"""

import base64
import hashlib
import json
import os
import stat
import sys

GENESIS = "0" * 64
HASHED = (
    "request_id", "actor", "intent", "decision", "state_from", "state_to", "ts_ms", "tool_name",
    "params_hash", "evidence_hash", "error", "permit_digest", "permit_verification",
    "permit_denial_reasons", "proposal_hash", "permit_nonce", "permit_issuer", "permit_subject",
    "permit_max_executions",
)
LINK = ("ledger_seq", "prev_hash", "entry_hash")
OF_PEERS = ("ledger_entries", "entries", "root_hash", "exported_at_ms", "kernel_id", "variant")
OURS = ("details", "checkpoint", "public_key", "version", "seal")
SEAL_MARK = b',"seal":'


class Problem(Exception):
    """What is wrong, and at which entry."""

    def __init__(self, text, entry=None):
        super().__init__(text if entry is None else f"entry {entry}: {text}")


def demand(holds, text, entry=None):
    if not holds:
        raise Problem(text, entry)


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


def is_hash(value):
    return isinstance(value, str) and len(value) == 64 and all(c in "0123456789abcdef" for c in value)


# --- JSON, strictly ------------------------------------------------------------------------------


def read_json(data):
    def members(pairs):
        result = dict(pairs)
        demand(len(result) == len(pairs), "a key stands twice in an object")
        return result

    def integer(text):
        value = int(text) if len(text) <= 20 else None
        in_range = value is not None and -(2**63) <= value < 2**64 and text != "-0"
        demand(in_range, "a number is not an integer of 64 bits")
        return value

    def refused(text):
        raise Problem("a number is not an integer")

    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=members, parse_int=integer,
                           parse_float=refused, parse_constant=refused)
        # Half a surrogate pair is no text.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (UnicodeError, ValueError, RecursionError) as error:
        raise Problem(f"the bundle cannot be read: {error}") from error


# --- Chain ---------------------------------------------------------------------------------------


def entry_hash(prev, entry):
    hashed = {key: entry[key] for key in HASHED}
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256_hex((prev + ":" + text).encode("ascii"))


def check_chain(entries):
    """Follows the chain; gives the hash of its last entry."""
    demand(isinstance(entries, list), "the entries are not a list")
    prev = GENESIS
    for number, entry in enumerate(entries):
        demand(isinstance(entry, dict), "the entry is not an object", number)
        for key in HASHED + LINK:
            demand(key in entry, f"field `{key}` is missing", number)
        for key in entry:
            demand(key in HASHED + LINK, f"field `{key}` is under no hash", number)
        seq = entry["ledger_seq"]
        demand(type(seq) is int and seq == number, "ledger_seq is not its place", number)
        demand(entry["prev_hash"] == prev, "the entry does not follow the one before it", number)
        demand(entry["entry_hash"] == entry_hash(prev, entry),
               "the entry's fields do not give its hash", number)
        prev = entry["entry_hash"]
    return prev


# --- RFC 6962 ------------------------------------------------------------------------------------


def merkle_root(leaves):
    """MTH of the data in `leaves`."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        above = [hashlib.sha256(b"\x01" + left + right).digest()
                 for left, right in zip(level[::2], level[1::2])]
        # An odd one at the end is the right part of the next split as it is.
        level = above + level[len(level) - len(level) % 2:]
    return level[0]


# --- RFC 8032, Ed25519, verification only --------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def recover_x(y, sign):
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if x2 == 0:
        return None if sign else 0
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - x2) % P:
        return None
    return P - x if x & 1 != sign else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = recover_x(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)
NEUTRAL = (0, 1, 1, 0)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(n, p):
    result = NEUTRAL
    while n:
        if n & 1:
            result = add(result, p)
        p, n = add(p, p), n >> 1
    return result


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def decompress(data):
    value = int.from_bytes(data, "little")
    y, sign = value & (2**255 - 1), value >> 255
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def is_small(p):
    return same(multiply(8, p), NEUTRAL)


def ed25519_holds(public, message, signature):
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r = decompress(public), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L or is_small(a) or is_small(r):
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return same(multiply(s, BASE), add(r, multiply(h, a)))


# --- C2SP signed notes ---------------------------------------------------------------------------


def base64_exact(text, what):
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeError, ValueError) as error:
        raise Problem(f"{what} is not base64") from error
    demand(base64.b64encode(data).decode("ascii") == text, f"{what} is not base64 as it should be")
    return data


def key_name_fits(name):
    return name != "" and not any(c.isspace() or c == "+" or is_control(c) for c in name)


def is_control(character):
    return ord(character) < 32 or 127 <= ord(character) < 160


def read_key(text):
    """The name, the id and the 32 bytes of a key `<name>+<id>+<base64>`."""
    demand(isinstance(text, str), "public_key is not a text")
    parts = text.split("+", 2)
    demand(len(parts) == 3, "public_key is not of the form <name>+<id>+<base64>")
    name, key_id, encoded = parts
    demand(key_name_fits(name), "the name of public_key cannot be one")
    data = base64_exact(encoded, "public_key")
    demand(len(data) == 33 and data[0] == 1, "public_key is not an Ed25519 key")
    expected = hashlib.sha256(name.encode("utf-8") + b"\n" + data).digest()[:4]
    demand(key_id == expected.hex(), "the id of public_key is not its own")
    point = decompress(data[1:])
    demand(point is not None and not is_small(point), "public_key is no usable key")
    return name, expected, data[1:]


def open_note(note, key, what):
    """The text of a note, if `key` signed it."""
    name, key_id, public = key
    demand(isinstance(note, str), f"{what} is not a text")
    demand(len(note.encode("utf-8")) <= 64 * 1024, f"{what} is too long")
    demand(not any(is_control(c) and c != "\n" for c in note), f"{what} has control characters")
    divider = note.rfind("\n\n")
    demand(divider >= 0, f"{what} has no signature")
    body, lines = note[: divider + 1], note[divider + 2:]
    demand(lines.endswith("\n"), f"{what} does not end with a signature")
    signed = False
    for line in lines[:-1].split("\n"):
        demand(line.startswith("\u2014 "), f"{what} has a line that is no signature")
        signer, _, encoded = line[2:].partition(" ")
        demand(key_name_fits(signer), f"{what} has a line that is no signature")
        data = base64_exact(encoded, f"a signature of {what}")
        demand(len(data) > 4, f"{what} has a line that is no signature")
        if signer == name and data[:4] == key_id:
            holds = ed25519_holds(public, body.encode("utf-8"), data[4:])
            demand(holds, f"the signature of {what} does not hold")
            signed = True
    demand(signed, f"{what} is not signed by the bundle's key")
    return body


def check_checkpoint(note, key, entries):
    body = open_note(note, key, "checkpoint")
    lines = body.split("\n")
    demand(len(lines) == 4 and lines[0] != "", "checkpoint has not the three lines of one")
    size, root = lines[1], base64_exact(lines[2], "the root of checkpoint")
    demand(size == str(len(entries)),
           f"there are {len(entries)} entries, but {size} were signed",
           min(len(entries), int(size)) if size.isdecimal() and len(size) < 20 else None)
    leaves = [bytes.fromhex(entry["entry_hash"]) for entry in entries]
    demand(root == merkle_root(leaves), "the entries are not those that were signed")


def check_seal(data, seal, key):
    at = data.rfind(SEAL_MARK)
    demand(at >= 0, "the seal does not end the bundle")
    written = json.dumps(seal, ensure_ascii=False).encode("utf-8")
    demand(data[at + len(SEAL_MARK):] == written + b"}\n", "the seal does not end the bundle")
    body = open_note(seal, key, "seal")
    demand(body == f"fluffy-evidence-v1\n{sha256_hex(data[:at])}\n",
           "the bundle was changed after it was sealed")
    demand(seal.count("\n") == 4, "the seal has more than one signature")


# --- Bundle --------------------------------------------------------------------------------------


def check_details(details, entries):
    demand(isinstance(details, dict), "details are not an object")
    for number, entry in enumerate(entries):
        name = entry["evidence_hash"]
        demand(is_hash(name) and name in details, "its detail is missing", number)
        text = details[name]
        demand(text is None or isinstance(text, str), "its detail is not a text", number)
        # A withheld detail is null: its hash stays, and with it the proof.
        if text is not None:
            demand(sha256_hex(text.encode("utf-8")) == name, "its detail was changed", number)
    demand(len(details) <= len(entries), "there are details that no entry names")
    # In the same order, so that both can be read in step.
    for number, (name, entry) in enumerate(zip(details, entries)):
        demand(name == entry["evidence_hash"], "the detail at its place is of another", number)


def check_head(bundle):
    demand(isinstance(bundle, dict), "the bundle is not an object")
    for key in bundle:
        demand(key in OF_PEERS + OURS, f"`{key}` is not a field of a bundle")
    for key in ("ledger_entries", "root_hash", "exported_at_ms", "kernel_id", "variant"):
        demand(key in bundle, f"the bundle has no `{key}`")
    for key in ("kernel_id", "variant", "root_hash"):
        demand(isinstance(bundle[key], str), f"`{key}` is not a text")
    exported = bundle["exported_at_ms"]
    demand(type(exported) is int and exported >= 0, "`exported_at_ms` is not a time")


def verify(data):
    """The number of entries and whether the bundle is signed; raises the first `Problem`."""
    bundle = read_json(data)
    check_head(bundle)
    entries = bundle["ledger_entries"]
    last = check_chain(entries)
    demand(bundle["root_hash"] == last, "root_hash is not the hash of the last entry")
    if "entries" in bundle:
        check_chain(bundle["entries"])
        demand(bundle["entries"] == entries, "`entries` and `ledger_entries` differ")
    if "details" in bundle:
        check_details(bundle["details"], entries)
    if not any(key in bundle for key in OURS):
        return len(entries), False
    for key in OURS:
        demand(key in bundle, f"the bundle has lost its `{key}`")
    version = bundle["version"]
    demand(type(version) is int and version == 1, "the bundle is not of version 1")
    key = read_key(bundle["public_key"])
    check_checkpoint(bundle["checkpoint"], key, entries)
    check_seal(data, bundle["seal"], key)
    return len(entries), True


def judge(path):
    """Whether the file holds, and the line that says so."""
    try:
        # A pipe could not be opened without waiting for its other end.
        demand(stat.S_ISREG(os.stat(path).st_mode), "the bundle is not a file")
        with open(path, "rb") as file:
            count, signed = verify(file.read())
    except (Problem, OSError) as problem:
        return False, str(problem).replace("\n", " ")
    return True, f"ok {count} entries" if signed else f"ok {count} entries, unsigned"


def main(paths):
    if not paths:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    verdicts = [judge(path) for path in paths]
    for path, (_, line) in zip(paths, verdicts):
        text = line if len(paths) == 1 else f"{path}: {line}"
        print(text.encode("ascii", "backslashreplace").decode("ascii"))
    return 0 if all(holds for holds, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
