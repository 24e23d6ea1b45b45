"""Checks bodies of requests against the types of Google's own SDK.

Reads lines of {"kind": "turn" | "count", "body": ...} and answers each with a line: {"error": null} or
{"error": "what is wrong"}. The SDK's types forbid members that they do not have. It has no type for the body as a
whole, whose members are therefore named here.
"""

import json
import sys
import warnings

from google.genai import types
from pydantic import ValidationError

# A value of another type than the SDK expects is said in a warning.
warnings.simplefilter("error")

MEMBERS = {
    "contents": [types.Content],
    "systemInstruction": types.Content,
    "tools": [types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}


def check(kind, value):
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise ValueError("not a list")
        for item in value:
            check(kind[0], item)
    else:
        kind.model_validate_json(json.dumps(value))


def problem(line):
    asked = json.loads(line)
    body = asked["body"]
    try:
        if asked["kind"] == "count":
            if set(body) != {"generateContentRequest"}:
                raise ValueError("not a count")
            body = dict(body["generateContentRequest"])
            if not isinstance(body.pop("model"), str):
                raise ValueError("no model")
        if "contents" not in body:
            raise ValueError("no contents")
        for name, value in body.items():
            if name not in MEMBERS:
                raise ValueError(f"unknown member {name}")
            check(MEMBERS[name], value)
    # The SDK's own look at enumerations falls over values that are no texts.
    except (ValidationError, ValueError, AttributeError, Warning) as error:
        return str(error)[:2000]
    return None


for line in sys.stdin:
    print(json.dumps({"error": problem(line)}), flush=True)
