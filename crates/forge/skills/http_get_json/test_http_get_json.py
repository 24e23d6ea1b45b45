"""Tests of asking a service, with the library's own opener and answers that are made up."""

from email.message import Message
from io import BytesIO
from urllib.error import URLError
from urllib.request import BaseHandler, Request

import pytest
from fluffy_skill import NotDeclared
from http_get_json import SERVICE, HttpGetJsonSkill, Refused, address_of, parsed, place_of


class Answer(BytesIO):
    """An answer of a server."""

    def __init__(self, status: int, body: bytes, location: str | None = None) -> None:
        super().__init__(body)
        self.status = self.code = status
        self.msg = "made up"
        self.headers = Message()
        if location is not None:
            self.headers["Location"] = location

    def info(self) -> Message:
        return self.headers


class Server(BaseHandler):
    """Answers in place of the network, and remembers what it was asked."""

    handler_order = 100

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str | None]] = []

    def https_open(self, req: Request) -> Answer:
        self.asked.append((req.full_url, req.get_header("Authorization")))
        if not self.answers:
            raise URLError("nobody is there")
        return self.answers.pop(0)

    http_open = https_open


def ask(*answers: Answer) -> tuple[Server, tuple[int, object]]:
    server = Server(*answers)
    skill = HttpGetJsonSkill(secrets={"GITHUB_TOKEN": "of-the-api"})
    return server, skill.ask(skill.opener(server), address_of("/repos/a", {}))


def test_a_document_is_asked_for_with_the_token_and_given() -> None:
    server, told = ask(Answer(200, b'{"a": [1, 2.5, null, "\\u00e9"]}'))
    assert told == (200, {"a": [1, 2.5, None, "é"]})
    assert server.asked == [(f"{SERVICE}/repos/a", "Bearer of-the-api")]


def test_an_answer_that_says_no_is_an_answer() -> None:
    assert ask(Answer(404, b'{"message": "Not Found"}'))[1] == (404, {"message": "Not Found"})
    assert ask(Answer(204, b""))[1] == (204, None)


def test_a_redirect_within_the_service_is_followed_without_the_token() -> None:
    server, told = ask(Answer(301, b"", "/repos/b"), Answer(200, b"{}"))
    assert told == (200, {})
    assert server.asked == [(f"{SERVICE}/repos/a", "Bearer of-the-api"), (f"{SERVICE}/repos/b", None)]


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/x",
        "http://api.github.com/x",
        "https://api.github.com:8443/x",
        "https://api.github.com.evil.example/x",
        "https://api.github.com@evil.example/x",
        "//evil.example/x",
        "https://user@api.github.com/x",
        "https://api.github.com:port/x",
    ],
)
def test_a_redirect_to_another_place_is_not_followed(location: str) -> None:
    server = Server(Answer(302, b"", location), Answer(200, b"{}"))
    skill = HttpGetJsonSkill(secrets={"GITHUB_TOKEN": "of-the-api"})
    with pytest.raises(Refused):
        skill.ask(skill.opener(server), address_of("/repos/a", {}))
    assert len(server.asked) == 1


def test_redirects_have_an_end() -> None:
    again = [Answer(302, b"[]", f"/repos/{number}") for number in range(20)]
    server, told = ask(*again)
    assert told[0] == 302
    assert len(server.asked) <= 5


@pytest.mark.parametrize(
    "body", [b"<html>", b"{'a': 1}", b'{"a": NaN}', b"[Infinity]", b'{"a": 1, "a": 2}', b'"\xff"', b"{} {}", b"[" * 99999]
)
def test_what_is_no_strict_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        parsed(body)


def test_an_answer_without_end_is_refused() -> None:
    with pytest.raises(Refused, match="more than 1048576 bytes"):
        ask(Answer(200, b" " * (1024 * 1024 + 1)))


def test_a_service_that_is_not_there_is_said_without_the_token() -> None:
    with pytest.raises(Refused, match="cannot be reached: URLError"):
        ask()


@pytest.mark.parametrize(
    "resource", ["repos", "//evil.example/x", "/a/../b", "/a?b=c", "/a#b", "/a b", "/a@b", "/", "/%2e%2e", "/a\r\nX: y"]
)
def test_a_resource_is_a_plain_path(resource: str) -> None:
    with pytest.raises(ValueError, match="plain path"):
        address_of(resource, {})


def test_a_query_is_quoted_and_in_order() -> None:
    address = address_of("/search", {"q": "a&b=c#d é", "page": "1"})
    assert address == f"{SERVICE}/search?page=1&q=a%26b%3Dc%23d+%C3%A9"
    assert place_of(address) == place_of(SERVICE)
    with pytest.raises(ValueError, match="a name in the query"):
        address_of("/search", {"a b": ""})


def test_without_its_secret_nothing_is_asked() -> None:
    server = Server(Answer(200, b"{}"))
    skill = HttpGetJsonSkill()
    with pytest.raises(NotDeclared):
        skill.ask(skill.opener(server), address_of("/repos/a", {}))
    assert server.asked == []
