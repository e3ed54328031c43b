"""The folder of the third-party test suites: $CODEV_SUITES, or ../shared/suites beside the
checkout."""
import base64
import json
import os
import pathlib

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SUITES = pathlib.Path(os.environ.get("CODEV_SUITES", TOP.parent / "shared" / "suites"))


def suite(name):
    """The path of a file or folder of the suites; skips the test where it is absent."""
    path = SUITES / name
    if not path.exists():
        pytest.skip(f"no {path} (CODEV_SUITES names its folder)")
    return path


def raw_requests():
    """The cases of http1/cases.jsonl, each with its bytes as case["raw"]."""
    cases = [json.loads(line) for line in suite("http1/cases.jsonl").read_text().splitlines()]
    for case in cases:
        case["raw"] = base64.b64decode(case["raw_b64"])
    return cases
