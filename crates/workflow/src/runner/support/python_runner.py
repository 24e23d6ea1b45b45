"""Runs tests of unittest or Django and writes what it found as JUnit XML, each test with its file.

The report is written when all is over. A file that cannot be loaded is a case without a class, as pytest has it.
"""

import importlib
import os
import re
import sys
import traceback
import unittest
from xml.sax.saxutils import escape, quoteattr

kind, report = sys.argv[1:3]
pattern = next((arg[len("--pattern="):] for arg in sys.argv[3:] if arg.startswith("--pattern=")), None)
root = os.getcwd()
del sys.argv[1:]
# The directory of this script is no place for modules.
sys.path[0] = root
SKIPPED = {"node_modules", "site-packages", "venv", "env", "build", "dist", "__pycache__"}
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def files_of_tests():
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        for name in sorted(names):
            if name.endswith(".py") and (name.startswith("test") or name.endswith("_test.py")):
                yield os.path.join(folder, name)


def module_of(path):
    """The module in a file, imported below the first directory above it that is no package."""
    folder, name = os.path.split(path)
    parts = [name[:-3]]
    while os.path.exists(os.path.join(folder, "__init__.py")) and folder != root:
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = ".".join(parts)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) != path:
        del sys.modules[name]
    return importlib.import_module(name)


def tests_in(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_in(test)
        else:
            yield test


def is_chosen(test):
    return pattern is None or re.search(pattern, name_of(test)) is not None


def name_of(test):
    return type(test).__qualname__ + "." + getattr(test, "_testMethodName", str(test))


def file_of(test):
    module = sys.modules.get(type(test).__module__)
    path = getattr(module, "__file__", None) or type(test).__module__
    return os.path.relpath(path, root) if os.path.isabs(path) else path


class Result(unittest.TestResult):
    """Every test with what became of it; of several things the worst counts."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        self.found = {}

    def enter(self, test, rank, text=""):
        kept = self.found.get(test, (-1, ""))
        if rank > kept[0]:
            self.found[test] = (rank, text)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.enter(test, 0)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.enter(test, 1)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.enter(test, 0)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.enter(test, 2, "it passed and was expected to fail")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.enter(test, 2, self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self.enter(test, 2, self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.enter(test, 2, self._exc_info_to_string(err, test))


def load():
    suite, broken = unittest.TestSuite(), []
    loader = unittest.TestLoader()
    for path in files_of_tests():
        try:
            found = loader.loadTestsFromModule(module_of(path))
            suite.addTests(test for test in tests_in(found) if is_chosen(test))
        except unittest.SkipTest:
            pass
        except BaseException:
            broken.append((os.path.relpath(path, root), traceback.format_exc()))
    return suite, broken


def settings_of_django():
    """The settings that `manage.py` names; the file itself is not run."""
    with open(os.path.join(root, "manage.py"), encoding="utf-8") as file:
        named = re.search(r"DJANGO_SETTINGS_MODULE['\"]\s*,\s*['\"]([\w.]+)['\"]", file.read())
    if named:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", named.group(1))


def run_django(result):
    try:
        import django
    except ModuleNotFoundError:
        sys.stderr.write("python3: No module named django\n")
        os._exit(127)
    from django.conf import settings
    from django.test.runner import DiscoverRunner

    settings_of_django()
    django.setup()
    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    settings.DEBUG = False
    suite, broken = load()
    aliases = runner.get_databases(suite) if hasattr(runner, "get_databases") else None
    databases = runner.setup_databases(aliases=aliases) if aliases is not None else runner.setup_databases()
    suite.run(result)
    runner.teardown_databases(databases)
    runner.teardown_test_environment()
    return broken


def write(result, broken):
    failed = sum(1 for rank, _ in result.found.values() if rank == 2)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    total = len(result.found) + len(broken)
    lines.append(f'<testsuite name="{kind}" tests="{total}" failures="{failed}" errors="{len(broken)}">')
    clean = lambda text: NO_XML.sub("?", text.encode("utf-8", "replace").decode("utf-8"))
    for file, text in broken:
        attributes = f'classname="" name={quoteattr(clean(file))} file={quoteattr(clean(file))}'
        error = f'<error message="collection failure">{escape(clean(text))}</error>'
        lines.append(f"<testcase {attributes}>{error}</testcase>")
    for test, (rank, text) in result.found.items():
        name = getattr(test, "_testMethodName", None) or str(test)
        file = file_of(test)
        module = file[:-3].replace("/", ".") if file.endswith(".py") else file
        class_name = f"{module}.{type(test).__qualname__}"
        body = {0: "", 1: "<skipped/>", 2: f"<failure message={quoteattr(clean(text))}/>"}[rank]
        attributes = " ".join(
            f"{key}={quoteattr(clean(value))}"
            for key, value in (("classname", class_name), ("name", name), ("file", file))
        )
        lines.append(f"<testcase {attributes}>{body}</testcase>")
    lines.append("</testsuite>")
    with open(report, "w", encoding="utf-8") as out:
        out.write("\n".join(lines))
    return failed + len(broken)


result = Result()
if kind == "django":
    broken = run_django(result)
else:
    suite, broken = load()
    suite.run(result)
bad = write(result, broken)
sys.stdout.flush()
sys.stderr.flush()
# Threads that tests left behind do not keep the run from its end.
os._exit(1 if bad else 0)
