"""usage: stream.py BASE: does the same as stream.mjs, with Debian's python3-requests."""
import json
import sys

import requests


def say(**value):
    print(json.dumps(value), flush=True)


answer = requests.post(sys.argv[1] + "/v1/messages", json={}, stream=True, timeout=60,
                       headers={"x-api-key": "codev-sandbox"}, proxies={"http": "", "https": ""})
if not answer.ok:
    say(status=answer.status_code, error=answer.text)
    sys.exit()
for line in answer.iter_lines(chunk_size=1):
    if line.startswith(b"data: "):
        event = json.loads(line[6:])
        if event["type"] == "content_block_delta":
            say(text=event["delta"]["text"])
say(end=True)
