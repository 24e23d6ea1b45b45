"""Runs one skill once, from the bytes that it is sent.

Started as `python3 -I -S -B -c …` in a sandbox. One frame comes in: the modules as texts, the name of the class, the
input, and what the skill may have. Frames go out on a descriptor of their own: questions to the model, and one answer.
A frame is a length of four bytes, big-endian, and JSON.

Nothing here is a wall. The skill runs in this very process and can do to it what it likes; whatever comes out is judged
by the kernel as the skill's own word.
"""

import json
import os
import sys

MAX_FRAME = 8 << 20
MAX_MESSAGE = 2000


class Channel:
    """The two pipes to the kernel, out of the way of whoever prints."""

    def __init__(self):
        self.source = os.dup(0)
        self.sink = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def take(self, count):
        parts = []
        while count:
            part = os.read(self.source, min(count, 1 << 20))
            if not part:
                raise EOFError("the kernel is gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def receive(self):
        size = int.from_bytes(self.take(4), "big")
        return json.loads(self.take(size).decode())

    def send(self, message):
        text = json.dumps(message, allow_nan=False, separators=(",", ":"))
        payload = text.encode("ascii")
        if len(payload) > MAX_FRAME:
            raise ValueError(f"the message has {len(payload)} bytes, and {MAX_FRAME} are allowed")
        rest = len(payload).to_bytes(4, "big") + payload
        while rest:
            rest = rest[os.write(self.sink, rest) :]


class Sources:
    """Finds the modules that were sent, before any other, and compiles them from exactly those texts."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=any(m.startswith(name + ".") for m in self.modules))

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__spec__.name
        module.__file__ = name.replace(".", "/") + ".py"
        text = self.modules[name]
        exec(compile(text, module.__file__, "exec", dont_inherit=True, optimize=0), module.__dict__)


def asking(base, channel):
    """A model that is asked through the kernel."""

    class Asked(base.Model):
        def _ask(self, question):
            channel.send(question)
            answer = channel.receive()
            if "answer" in answer:
                return answer["answer"]
            raise base.ModelUnavailable(str(answer.get("unavailable", "it did not answer")))

        def generate(self, prompt):
            return self._ask({"ask": "generate", "prompt": prompt})

        def embed(self, texts):
            return self._ask({"ask": "embed", "texts": list(texts)})

    return Asked()


def stay_with_hosts():
    """Makes urllib refuse redirects to another host: what was sent to one is not for another."""
    import urllib.error
    import urllib.parse
    import urllib.request

    class SameHost(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, request, fp, code, msg, headers, newurl):
            def place(url):
                parts = urllib.parse.urlsplit(url)
                return parts.scheme, parts.hostname, parts.port

            if place(request.full_url) != place(newurl):
                why = "redirects to another host are not followed"
                raise urllib.error.HTTPError(request.full_url, code, why, headers, fp)
            return super().redirect_request(request, fp, code, msg, headers, newurl)

    urllib.request.install_opener(urllib.request.build_opener(SameHost))


def told(error, own):
    """An exception as the kernel is told of it: what, and on which line of which module of the skill's."""
    line = None
    module = None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__")
        if name in own:
            line, module = trace.tb_lineno, name
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and line is None:
        line = error.lineno
    try:
        message = str(error)
    except BaseException:
        message = "its message cannot be had"
    return {
        "type": str(type(error).__name__)[:100],
        "message": message[:MAX_MESSAGE].encode("utf-8", "replace").decode(),
        "line": line,
        "module": module,
    }


def perform(order, channel):
    sys.meta_path.insert(0, Sources(order["modules"]))
    base = __import__("fluffy_skill")
    if order["hosts"]:
        stay_with_hosts()
    module = __import__(order["module"])
    kind = getattr(module, order["class"])
    if not (isinstance(kind, type) and issubclass(kind, base.BaseSkill)):
        raise TypeError(f"{order['class']} is no skill")
    model = asking(base, channel) if order["model"] else None
    skill = kind(folders=order["folders"], secrets=order["secrets"], model=model)
    return skill.execute(order["input"])


def main():
    channel = Channel()
    order = channel.receive()
    try:
        channel.send({"output": perform(order, channel)})
    except BaseException as error:
        channel.send({"error": told(error, order["modules"])})
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
