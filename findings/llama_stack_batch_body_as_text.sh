#!/bin/sh
# The batches of Llama Stack return each answer as a text that holds JSON.
#
# One would guess that `response.body` in a line of a batch's output file is the object
# that the endpoint returns, as in the files of OpenAI and of `vllm run-batch`. The
# provider inline::reference writes it as a string, which must be decoded once more. A
# request that the model's server refuses has no `response` at all, so no status: a 400,
# which is final, cannot be told from a 500 except by the words of the message.
#
#     {"custom_id": "0", "response": {"status_code": 200, "body": "{\"id\": ...}"}}
#     {"custom_id": "1", "error": {"type": "request_failed", "message": "..."}}
#
# Seen with llama-stack 0.7.3, Linux x86-64, Python 3.12. Exits with 1 if that changes.
# PYTHON names a Python of version 3.12 or later, which llama-stack needs.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.12}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet llama-stack==0.7.3 mcp==1.25.0
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON'
import asyncio
import json
from types import SimpleNamespace

from llama_stack.providers.inline.batches.reference.batches import ReferenceBatchesImpl
from llama_stack.providers.inline.batches.reference.config import (
    ReferenceBatchesImplConfig,
)
from llama_stack_api.batches import CreateBatchRequest, RetrieveBatchRequest


class Store(dict):
    async def get(self, key):
        return dict.get(self, key)

    async def set(self, key, value):
        self[key] = value


class Stand:
    """The files, the models and a model; the second request is refused."""

    def __init__(self):
        self.written = []

    async def openai_retrieve_file(self, request):
        return None

    async def openai_retrieve_file_content(self, request):
        message = {"role": "user", "content": "Name a colour."}
        body = {"model": "m", "messages": [message]}
        line = {"method": "POST", "url": "/v1/chat/completions", "body": body}
        lines = [json.dumps({"custom_id": str(n), **line}) for n in range(2)]
        return SimpleNamespace(body="\n".join(lines).encode())

    async def openai_upload_file(self, request, file):
        self.written += (await file.read()).decode().splitlines()
        return SimpleNamespace(id=f"file-{len(self.written)}")

    async def get_model(self, request):
        return None

    async def openai_chat_completion(self, request):
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked == 2:
            raise ValueError("Error code: 400 - the prompt is bad")
        answer = {"choices": [{"message": {"content": "Blue."}}]}
        return SimpleNamespace(model_dump_json=lambda: json.dumps(answer))


async def main():
    stand = Stand()
    config = ReferenceBatchesImplConfig.model_construct(
        max_concurrent_batches=1, max_concurrent_requests_per_batch=1
    )
    batches = ReferenceBatchesImpl(config, stand, stand, stand, Store())
    made = await batches.create_batch(
        CreateBatchRequest(
            input_file_id="file-0",
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )
    )
    while True:
        batch = await batches.retrieve_batch(RetrieveBatchRequest(batch_id=made.id))
        if batch.status in ("completed", "failed"):
            break
        await asyncio.sleep(0.1)
    print(batch.status, *stand.written, sep="\n")
    answered, refused = map(json.loads, stand.written)
    assert isinstance(answered["response"]["body"], str)
    assert json.loads(answered["response"]["body"])["choices"]
    assert refused["error"] and "response" not in refused


asyncio.run(main())
PYTHON
