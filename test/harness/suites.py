"""Cases that others wrote, in the folder that $CODEV_SUITES names."""
import base64
import json
import os
import pathlib

import pytest

SUITES = os.environ.get("CODEV_SUITES")


def suite(name):
    """The path of a file or folder of the suites; skips the test where it is absent."""
    if not SUITES:
        pytest.skip("CODEV_SUITES names no folder with the suites of others")
    path = pathlib.Path(SUITES) / name
    assert path.exists(), f"CODEV_SUITES: no {path}"
    return path


def raw_requests():
    """The cases of http1/cases.jsonl, each with its bytes as case["raw"]."""
    cases = [json.loads(line) for line in suite("http1/cases.jsonl").read_text().splitlines()]
    for case in cases:
        case["raw"] = base64.b64decode(case["raw_b64"])
    return cases
