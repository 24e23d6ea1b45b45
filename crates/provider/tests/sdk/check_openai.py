"""Checks bodies of requests against the types of OpenAI's own SDK.

Reads lines of {"kind": "chat" | "responses", "body": ...} and answers each with a line: {"error": null} or
{"error": "what is wrong"}. A member that the SDK's types do not have is an error, and lists are read to their end.
"""

import json
import sys
import typing

# The SDK says `Iterable` where a list is sent; pydantic would look at the elements only when they are asked for.
typing.Iterable = typing.List

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming  # noqa: E402
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming  # noqa: E402
from pydantic import TypeAdapter, ValidationError  # noqa: E402


def forbid_unknown_members():
    for name, module in list(sys.modules.items()):
        if name.startswith("openai.types"):
            for thing in vars(module).values():
                if isinstance(thing, type) and hasattr(thing, "__required_keys__"):
                    thing.__pydantic_config__ = {"extra": "forbid"}


forbid_unknown_members()
ADAPTERS = {
    "chat": TypeAdapter(CompletionCreateParamsStreaming),
    "responses": TypeAdapter(ResponseCreateParamsStreaming),
}


def problem(line):
    asked = json.loads(line)
    try:
        ADAPTERS[asked["kind"]].validate_python(asked["body"], strict=True)
    except ValidationError as error:
        return str(error)[:2000]
    return None


for line in sys.stdin:
    print(json.dumps({"error": problem(line)}), flush=True)
