"""A short run of soak_broker.py; `make soak` runs it for ten minutes."""
import os

import soak_broker


def test_soak(tmp_path):
    figures, faults = soak_broker.soak(float(os.environ.get("SOAK_SECONDS", "20")), tmp_path)
    print(figures)
    assert faults == []
    assert figures["deeds"] > 100 and figures["clients left"] > 10 and figures[
        "resets"] > 10 and figures["hangups"] > 10
