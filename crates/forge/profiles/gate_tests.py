"""Runs the tests of a skill and says what became of each.

The tests are a stranger's, and they run in this process. Therefore every line that is said bears a number and a tag
that only a holder of the key can make; the key comes on standard input and is read before anything of the stranger's
is. What has to be run is said first, from the source alone: a process that ends early, for whatever reason and with
whatever code, has not said that those tests passed.
"""

import ast
import hashlib
import json
import os
import sys

LONGEST = 2000


def speaker(key):
    """Gives the one function that speaks. The key is nowhere but in it, and so is all that sees the key."""
    channel = os.dup(1)
    os.dup2(2, 1)
    write, sha256, quoted = os.write, hashlib.sha256, json.encoder.encode_basestring_ascii
    getpid, own, count = os.getpid, os.getpid(), 0

    def say(**words):
        nonlocal count
        if getpid() != own:
            # A test forked, and its child goes on as if it were the one that is waited for.
            return
        pairs = [f'"n":{count:d}']
        for name, value in words.items():
            pairs.append(f'"{name}":{value:d}' if type(value) is int else f'"{name}":{quoted(value)}')
        text = ("{" + ",".join(pairs) + "}").encode()
        tag = sha256(key + sha256(key + text).digest()).hexdigest()
        line = f"{tag} ".encode() + text + b"\n"
        count += 1
        while line:
            line = line[write(channel, line) :]

    return say


def tests_of(body, names):
    """Finds what looks like a test, wherever it stands but inside a function."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("test"):
                yield "::".join([*names, node.name]), node.lineno
        elif isinstance(node, ast.ClassDef):
            yield from tests_of(node.body, [*names, node.name])
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from tests_of(getattr(node, part, []), names)
            for part in ("handlers", "cases"):
                for inner in getattr(node, part, []):
                    yield from tests_of(inner.body, names)


def crash_of(report):
    """Where and why it failed, as far as the report knows."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return {"file": str(crash.path), "line": crash.lineno, "message": crash.message[:LONGEST]}
    return {"message": str(report.longrepr or "")[-LONGEST:]}


class Reporter:
    """Hears what becomes of every test."""

    def __init__(self, say):
        def pytest_runtest_logreport(report):
            outcome = "xfail" if hasattr(report, "wasxfail") else report.outcome
            words = {} if outcome == "passed" else crash_of(report)
            say(id=report.nodeid, phase=report.when, outcome=outcome, **words)

        def pytest_collectreport(report):
            if not report.passed:
                say(id=report.nodeid, phase="collect", outcome=report.outcome, **crash_of(report))

        def pytest_deselected(items):
            for item in items:
                say(id=item.nodeid, phase="collect", outcome="deselected")

        self.pytest_runtest_logreport = pytest_runtest_logreport
        self.pytest_collectreport = pytest_collectreport
        self.pytest_deselected = pytest_deselected


def main():
    """Says what has to be run, runs it, and says how that ended."""
    with open(0, "rb", closefd=False) as words:
        key = words.read()
    say = speaker(key)
    del key
    tests, paths = sys.argv[1].split(os.pathsep), sys.argv[2].split(os.pathsep)
    for test in tests:
        with open(test, "rb") as source:
            tree = ast.parse(source.read())
        for name, line in tests_of(tree.body, [test]):
            say(expected=name, line=line)
    say(begin=len(tests))
    # At the end: nothing of a stranger's can stand for a module that is there already.
    sys.path.extend(paths)
    import pytest

    sys.argv[1:] = []
    options = [
        *("-c", os.devnull, "--rootdir", os.getcwd(), "--noconftest", "--import-mode=importlib"),
        *("--strict-markers", "-q", "--no-header", "--no-summary", "--tb=short"),
        *("-p", "no:cacheprovider", "-p", "no:debugging", "-p", "no:doctest", "-p", "no:junitxml"),
        *("-p", "no:pastebin", "-p", "no:pytester", "-p", "no:setuponly", "-p", "no:stepwise"),
    ]
    code = pytest.main([*options, "--", *tests], plugins=[Reporter(say)])
    say(end=int(code))


main()
