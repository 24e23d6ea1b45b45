//! What the policy gate says of single lines.

use fluffy_forge::SideEffect::{FileWrite, Messaging, Network, ReadOnly, SecretRead};
use fluffy_forge::{ScanRules, SideEffect, scan};

use crate::skill::{broken, file, judge, plain_tests, proposal, rules, subject, told};

fn check(effect: SideEffect, top: &str, body: &str, expected: &[&str]) {
    assert_eq!(broken(effect, top, body), expected, "{effect}: {top} | {body}");
}

#[test]
fn for_6_imports_are_seen_however_they_are_written() {
    for top in [
        "import subprocess",
        "import subprocess as text",
        "import json, subprocess",
        "from subprocess import run",
        "from subprocess import run as call",
        "from subprocess import *",
        "import concurrent.futures, multiprocessing.pool",
        "from multiprocessing import pool",
        "if False:\n    import subprocess",
        "def f() -> None:\n    import subprocess",
        "class A:\n    import subprocess",
        "for x in []:\n    pass\nelse:\n    import subprocess",
        "with open('a') as f:\n    import subprocess",
        "match 1:\n    case 1:\n        import subprocess",
        "from os import *",
        "from json import *",
        "from . import x",
        "from .. import x",
        "import urllib.request",
        "from urllib import request",
        "import ssl, http.client",
        "import tempfile",
        "import shutil",
        "import pytest",
    ] {
        check(ReadOnly, top, "pass", &["forbidden_import"]);
    }
    for effect in [Network, SecretRead, Messaging, SideEffect::Money] {
        check(effect, "import urllib.request, http.client, ssl", "pass", &[]);
    }
    check(FileWrite, "import shutil, tempfile", "pass", &[]);
}

#[test]
fn for_6_names_of_modules_are_an_open_list_only_where_the_module_is_harmless() {
    for (top, body) in [
        ("import os", "os.kill(1, 9)"),
        ("import os", "os.remove('a')"),
        ("from os import kill", "kill(1, 9)"),
        ("import sys", "sys.exit(0)"),
        ("import sys", "sys._getframe()"),
        ("import json", "json.codecs"),
        ("import json", "json.decoder.scanner"),
        ("import io", "io.FileIO('a')"),
        ("import types", "types.FunctionType"),
        ("import dataclasses", "dataclasses.types.FunctionType"),
        ("import asyncio", "asyncio.create_subprocess_exec"),
        ("import random", "random._os.system('id')"),
        ("import collections", "collections._sys.modules"),
        ("import urllib.parse", "urllib.request.urlopen('x')"),
    ] {
        let rules = broken(ReadOnly, top, body);
        let harmless = body == "json.decoder.scanner";
        assert_eq!(rules.is_empty(), harmless, "{top} {body}: {rules:?}");
    }
}

#[test]
fn for_6_a_module_is_no_value() {
    for (top, body) in [
        ("import pathlib\np = pathlib", "p.os"),
        ("import json", "print(json)"),
        ("import json", "x = [json]"),
        ("import json", "x = {'a': json}"),
        ("import json", "x = (json for _ in [1])"),
        ("import json", "x = lambda m=json: m"),
        ("import json", "x = json if input else None"),
        ("import json", "(x := json)"),
        ("import json", "return {'a': json}"),
        ("import json", "x = getattr(json, 'dumps')"),
        ("import os.path as p", "x = p"),
        ("from xml.etree import ElementTree", "x = ElementTree"),
    ] {
        assert!(
            broken(ReadOnly, top, body).contains(&"module_as_value".to_owned()),
            "{top} {body}"
        );
    }
}

#[test]
fn for_6_attributes_that_lead_out_are_seen_in_every_place() {
    for body in [
        "().__class__",
        "input.__dict__",
        "self.execute.__globals__",
        "self.execute.__func__.__code__",
        "''.__class__.__mro__",
        "x = [y.__subclasses__() for y in [object]]",
        "f'{self.__dict__}'",
        "f'{1:{self.__dict__}}'",
        "del self.__dict__",
        "self.__class__ = object",
        "match input:\n    case object(__dict__=d):\n        pass",
        "(lambda: 0).__closure__",
        "getattr(self, '__dict__')",
        "setattr(self, '__class__', object)",
        "object.__getattribute__(self, 'x')",
        "type(self).mro()",
        "__builtins__",
        "__loader__.load_module('os')",
        "__spec__.loader",
    ] {
        assert!(broken(ReadOnly, "", body).contains(&"interpreter_access".to_owned()), "{body}");
    }
    check(ReadOnly, "", "x = type(self).__name__ + self.__class__.__name__ + __name__", &[]);
}

#[test]
fn for_6_definitions_that_change_python_are_seen() {
    for top in [
        "def __getattr__(name):\n    return name",
        "__builtins__ = {}",
        "__path__ = []",
        "class A:\n    def __init_subclass__(cls):\n        pass",
        "class A:\n    def __getattribute__(self, n):\n        return n",
        "class A:\n    def __class_getitem__(cls, n):\n        return n",
        "class A:\n    def __del__(self):\n        pass",
        "class A:\n    def __set_name__(self, a, b):\n        pass",
        "import json as __builtins__",
        "def f(__builtins__):\n    pass",
        "for __loader__ in []:\n    pass",
        "try:\n    pass\nexcept ValueError as __spec__:\n    pass",
        "def f():\n    global __builtins__",
        "match 1:\n    case __builtins__:\n        pass",
        "def f[__builtins__]():\n    pass",
    ] {
        check(ReadOnly, top, "pass", &["forbidden_definition"]);
    }
    check(ReadOnly, "class A(type):\n    pass", "pass", &["dynamic_class"]);
    check(ReadOnly, "class A(metaclass=print):\n    pass", "pass", &["dynamic_class"]);
    check(ReadOnly, "class A(**{}):\n    pass", "pass", &["dynamic_class"]);
    check(ReadOnly, "", "x = type('A', (), {})", &["dynamic_class"]);
    check(ReadOnly, "", "x = type(*input)", &["dynamic_class"]);
    check(ReadOnly, "", "x = type(self)", &[]);
}

#[test]
fn for_6_texts_that_are_read_as_code_are_code() {
    for top in [
        "x: \"__import__('os')\" = 1",
        "x: \"list[print(1)]\" = 1",
        "def f(a: 'eval') -> 'int':\n    return 1",
        "def f() -> \"(lambda: 1)()\":\n    return 1",
        "x: list[\"print()\"] = []",
        "x: 'int | print()' = 1",
        "x: 'a b' = 1",
        "x: '(((' = 1",
        "x: \"[a for a in b]\" = 1",
    ] {
        assert!(broken(ReadOnly, top, "pass").contains(&"hidden_code".to_owned()), "{top}");
    }
    check(ReadOnly, "", "x = '{0.__class__}'.format(self)", &["hidden_name"]);
    check(ReadOnly, "", "x = '__glo' 'bals__'", &["hidden_name"]);
    check(ReadOnly, "x: 'list[int] | None' = None", "y: \"dict[str, 'int']\" = {}", &[]);
}

#[test]
fn for_6_files_are_opened_as_the_side_effects_say() {
    let path = "path = self.folder('notes') / 'a.md'\n";
    for body in [
        "open(path, 'w')",
        "open(path, mode='a')",
        "open(path, 'r+')",
        "path.open('x')",
        "path.open(mode='wb')",
        "path.write_text('a')",
        "path.write_bytes(b'a')",
        "path.unlink()",
        "path.touch()",
        "path.rename(path)",
        "path.mkdir()",
    ] {
        check(ReadOnly, "", &format!("{path}{body}"), &["write_not_declared"]);
        check(Network, "", &format!("{path}{body}"), &["write_not_declared"]);
        check(FileWrite, "", &format!("{path}{body}"), &[]);
    }
    for body in ["open(path, str(input))", "open(*input)", "open(**input)", "path.open(str(input))"]
    {
        check(ReadOnly, "", &format!("{path}{body}"), &["computed_mode"]);
    }
    check(
        ReadOnly,
        "",
        &format!("{path}open(path)\nopen(path, 'rb')\npath.open('rb')\npath.read_text()"),
        &[],
    );
}

#[test]
fn for_6_paths_stay_below_a_folder() {
    for body in [
        "open('/x')",
        "open('/x' + str(input))",
        "open(f'/{input}')",
        "open(b'/x')",
        "open('../x')",
        "open('a/../../x')",
        "Path('/x')",
        "Path('~')",
        "Path('a', '/x')",
        "self.folder('notes') / '..' / 'x'",
        "self.folder('notes') / '/x'",
        "self.folder('notes') / f'../{input}'",
        "self.folder('notes').joinpath('..')",
        "self.folder('notes').glob('../*')",
        "self.folder('notes').rglob('/x')",
        "os.path.join('/', 'x')",
        "os.listdir('/')",
        "os.walk('..')",
    ] {
        check(FileWrite, "import os\nfrom pathlib import Path", body, &["write_path"]);
    }
    check(FileWrite, "", "open('x', 'w')", &["write_path"]);
    check(ReadOnly, "", "x = '/api/v1/items'\ny = 'a/..b'\nz = 1 / 2", &[]);
    check(ReadOnly, "", "x = '/proc/self/environ'", &["system_path"]);
}

#[test]
fn for_6_secrets_are_not_shown_in_any_way_that_can_be_seen() {
    let key = "key = self.secret('API_KEY')\n";
    for body in [
        "print(key)",
        "print('key', key)",
        "print(f'{key}')",
        "print('%s' % key)",
        "print('{}'.format(key))",
        "print(*[key])",
        "print(str(key).upper())",
        "raise ValueError(key)",
        "raise ValueError(f'no {key}') from None",
        "raise ValueError('a' + key)",
        "assert key == 'a', key",
        "return {'key': key}",
        "return {'key': f'{key}'}",
        "return {'key': str(key)}",
        "header = 'Bearer ' + key\nprint(header)",
        "a = key\nb = a\nprint(b)",
        "if (b := key):\n    print(b)",
        "self.kept = key\nprint(self.kept)",
        "log.warning(key)",
        "log.debug('x %s', key)",
        "out.write(key)",
    ] {
        check(SecretRead, "log = input\nout = input", &format!("{key}{body}"), &["secret_leak"]);
    }
    check(SecretRead, "", "print(self.secret('API_KEY'))", &["secret_leak"]);
    check(SecretRead, "", "self.secret('OTHER')", &["secret_not_declared"]);
    check(SecretRead, "", "self.secret(str(input))", &["secret_not_declared"]);
    let used = "headers = {'Authorization': f'Bearer {key}'}\nprint(len(headers), key == '', 'yes' if key else 'no', not key)\nreturn self.ask(headers)";
    check(SecretRead, "", &format!("{key}{used}"), &[]);
    for text in [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "sk-abcdefghijklmnopqrstuv",
        "AKIAABCDEFGHIJKLMNOP",
    ] {
        check(ReadOnly, "", &format!("# {text}\npass"), &["secret_literal"]);
        check(ReadOnly, "", &format!("x = '{text}'"), &["secret_literal"]);
    }
    check(ReadOnly, "import os", "os.environ['A']", &["forbidden_attribute", "interpreter_access"]);
    check(ReadOnly, "from os import environ as e", "e['A']", &["forbidden_attribute"]);
}

#[test]
fn for_6_comments_do_not_silence_other_gates() {
    for comment in [
        "# ruff: noqa",
        "#ruff: noqa: F401",
        "# mypy: ignore-errors",
        "# flake8: noqa",
        "# type: ignore",
        "# noqa",
    ] {
        check(ReadOnly, comment, "pass", &["gate_silenced"]);
    }
    check(ReadOnly, "x = 1  # noqa: E501", "y = 1  # type: ignore[assignment]", &[]);
}

#[test]
fn for_6_a_project_forbids_more_and_allows_nothing() {
    let yaml = "forbidden_imports: [decimal]\nforbidden_calls: [random.random, 'hashlib.md*', print]\n\
                patterns:\n  - { name: internal_host, pattern: 'intranet\\.', why: skills do not know our hosts }\n";
    let rules_of = |top: &str, body: &str| {
        let proposal = proposal("subject", ReadOnly);
        let rules_made = ScanRules::parse(yaml).unwrap().for_proposal(&proposal);
        rules(&scan(&[subject(ReadOnly, top, body), plain_tests(&proposal)], &rules_made))
    };
    assert_eq!(rules_of("import decimal", "pass"), ["forbidden_import"]);
    assert_eq!(rules_of("from decimal import Decimal", "pass"), ["forbidden_import"]);
    assert_eq!(rules_of("import random as r", "r.random()"), ["forbidden_call"]);
    assert_eq!(rules_of("from random import random as r", "x = [r]"), ["forbidden_call"]);
    assert_eq!(rules_of("import hashlib", "hashlib.md5(b'')"), ["forbidden_call"]);
    assert_eq!(rules_of("", "print(1)"), ["forbidden_call"]);
    assert_eq!(rules_of("", "x = 'http://intranet.example'"), ["internal_host"]);
    assert_eq!(rules_of("import random", "random.randint(1, 2)"), Vec::<String>::new());
    for wrong in [
        "allowed_imports: [os]\n",
        "patterns: [{ name: a, pattern: '(', why: b }]\n",
        "patterns: 1\n",
    ] {
        assert!(ScanRules::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn for_6_rules_that_were_made_for_no_proposal_allow_nothing() {
    let files = [subject(
        FileWrite,
        "import urllib.request",
        "(self.folder('a') / 'b').write_text(self.secret('API_KEY'))",
    )];
    let found = rules(&scan(&files, &ScanRules::default()));
    assert_eq!(
        found,
        ["forbidden_import", "secret_leak", "secret_not_declared", "write_not_declared"]
    );
}

#[test]
fn for_6_a_module_is_not_handed_from_file_to_file() {
    let proposal = proposal("subject", ReadOnly);
    for (settings, top, body) in [
        ("import os as o", "from support import settings", "settings.o.system('id')"),
        ("import os as o", "from support.settings import o", "o.system('id')"),
        ("import os", "import support.settings", "support.settings.os.system('id')"),
        ("import os", "import support.settings as s", "s.os"),
    ] {
        let files = [
            subject(ReadOnly, top, body),
            file("support/settings.py", settings),
            plain_tests(&proposal),
        ];
        let answers = judge(&files, &proposal);
        assert!(!answers.policy.passed, "{settings} {top} {body}");
    }
    let files = [
        subject(ReadOnly, "from support import settings", "settings.LIMIT"),
        file("support/settings.py", "import os\nLIMIT = os.sep\n"),
        plain_tests(&proposal),
    ];
    let answers = judge(&files, &proposal);
    assert!(answers.policy.passed, "{}", told(&answers.policy.findings));
}
