"""Asks one service for JSON.

The service and the secret are written here and listed in the proposal; the input chooses a path and a query and cannot
lead anywhere else. The secret goes to the service in a header that no redirect carries on, and a redirect to another place
is not followed.
"""

import json
import re
import time
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import BaseHandler, HTTPRedirectHandler, OpenerDirector, Request, build_opener

from fluffy_skill import BaseSkill

SERVICE = "https://api.github.com"
LARGEST = 1024 * 1024
SECONDS = 20.0
MOST_REDIRECTS = 3


class Refused(Exception):
    """The answer is not taken."""


class SamePlace(HTTPRedirectHandler):
    """Follows redirects within the service, a few of them, and no other."""

    max_redirections = MOST_REDIRECTS
    max_repeats = 1

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Gives the request that a redirect asks for, without the secret."""
        if place_of(urljoin(req.full_url, newurl)) != place_of(SERVICE):
            raise Refused("the service points to another place, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def place_of(url: str) -> tuple[str, str, int | None]:
    """Gives scheme, host and port of an address; whoever names a user there means another place."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise Refused("the service points to an address that is none") from error
    if parts.username is not None or parts.password is not None:
        raise Refused("the service points to an address with a user in it")
    usual = 443 if parts.scheme == "https" else 80
    return parts.scheme, (parts.hostname or "").lower(), usual if port is None else port


def address_of(resource: str, query: dict[str, str]) -> str:
    """Gives the address of a document of the service."""
    steps = resource.split("/")
    plain = re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", resource) is not None
    if not plain or any(step in (".", "..") for step in steps):
        raise ValueError("a resource is a plain path that begins with `/`")
    for name in query:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            raise ValueError("a name in the query is made of letters, digits, `_`, `.` and `-`")
    return SERVICE + resource + (f"?{urlencode(sorted(query.items()))}" if query else "")


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuses objects in which a name stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused("the answer has a name twice in one object")
    return found


def no_number(word: str) -> object:
    """Refuses NaN and its like, which are no JSON."""
    raise Refused(f"the answer holds {word}, which is no JSON")


def parsed(body: bytes) -> object:
    """Reads strict JSON."""
    if not body.strip():
        return None
    try:
        value: object = json.loads(body.decode("utf-8"), object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise Refused("the answer is no JSON") from error
    return value


def body_of(response: IO[bytes], deadline: float) -> bytes:
    """Reads an answer: of so many bytes, and until a moment."""
    parts, size = [], 0
    while part := response.read(64 * 1024):
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise Refused(f"the answer has more than {LARGEST} bytes")
        if time.monotonic() > deadline:
            raise Refused(f"the answer took more than {SECONDS:.0f} seconds")
    return b"".join(parts)


class HttpGetJsonSkill(BaseSkill):
    """Asks the service."""

    name = "http_get_json"
    description = (
        "Asks the service that it was built for (GitHub's API) for a document and gives the JSON of "
        "the answer. The service and the token are fixed; a caller chooses path and query alone."
    )
    side_effect_class = "SECRET_READ"

    def opener(self, *more: BaseHandler) -> OpenerDirector:
        """Gives what speaks HTTP."""
        return build_opener(SamePlace(), *more)

    def ask(self, opener: OpenerDirector, address: str) -> tuple[int, object]:
        """Asks, and gives status and document; an answer that says no is an answer."""
        headers = {"Accept": "application/json", "User-Agent": "fluffy-skill"}
        request = Request(address, headers=headers, method="GET")
        request.add_unredirected_header("Authorization", "Bearer " + self.secret("GITHUB_TOKEN"))
        deadline = time.monotonic() + SECONDS
        try:
            with opener.open(request, timeout=SECONDS / 2) as response:
                return response.status, parsed(body_of(response, deadline))
        except HTTPError as error:
            with error:
                return error.code, parsed(body_of(error, deadline))
        except (URLError, HTTPException, OSError) as error:
            raise Refused(f"the service cannot be reached: {type(error).__name__}") from None

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Gives what the service has there."""
        given = input.get("query", {})
        query = {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}
        status, document = self.ask(self.opener(), address_of(str(input["resource"]), query))
        return {"status": status, "json": document}
