"""Checks bodies of requests against the types of Anthropic's own SDK.

Reads lines of {"kind": "turn" | "count", "body": ...} and answers each with a line: {"error": null} or
{"error": "what is wrong"}. A member that the SDK's types do not have is an error, and lists are read to their end.
"""

import json
import sys
import typing

# The SDK says `Iterable` where a list is sent; pydantic would look at the elements only when they are asked for.
typing.Iterable = typing.List

from anthropic.types.message_count_tokens_params import MessageCountTokensParams  # noqa: E402
from anthropic.types.message_create_params import MessageCreateParamsStreaming  # noqa: E402
from pydantic import BaseModel, TypeAdapter, ValidationError  # noqa: E402


def forbid_unknown_members():
    things = [
        thing
        for name, module in list(sys.modules.items())
        if name.startswith("anthropic.types") and not name.startswith("anthropic.types.beta")
        for thing in vars(module).values()
        if isinstance(thing, type)
    ]
    # Files, which a body never holds, are of no type that pydantic knows.
    config = {"extra": "forbid", "arbitrary_types_allowed": True}
    for thing in things:
        if hasattr(thing, "__required_keys__"):
            thing.__pydantic_config__ = config
    # What was received may be sent as it is, and the types of what is received allow members that they do not have.
    for thing in things:
        if issubclass(thing, BaseModel):
            thing.model_config = {**thing.model_config, **config}
            thing.__pydantic_complete__ = False
    for thing in things:
        if issubclass(thing, BaseModel):
            thing.model_rebuild(force=True)


forbid_unknown_members()
ADAPTERS = {
    "turn": TypeAdapter(MessageCreateParamsStreaming),
    "count": TypeAdapter(MessageCountTokensParams),
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
