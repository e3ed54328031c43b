"""The coding agent's session of test_agent_session.py in a WSL distribution: the Debian-flavoured
image (rootfs-debian.erofs), the same script, the same checks. Unlike there, folders are drives, and
traffic to the broker passes the distribution's network card, where every packet is recorded."""
import test_agent_session
from machine_harness import SANDBOX_WSL
from wsl_rig_harness import needs_rig

UPLOADED = 20_000_000
SAID = (b"twenty million", b"codev-demo", b"look around", b"application/octet-stream"
        )  # as the script reports it


def test_an_agents_session_in_wsl():
    needs_rig()
    assert all(words in test_agent_session.SCRIPT.read_bytes() for words in SAID)
    dumps = []

    def watch(sandbox):
        ready = sandbox.wait_event("ready")
        assert all(check["ok"] for check in ready["checks"])
        dumps.append(open(sandbox.run_folder() / "eth0.pcap",
                          "rb"))  # it is removed with the sandbox

    try:
        test_agent_session.session(SANDBOX_WSL, watch)
        wire = dumps[0].read()
    finally:
        for dump in dumps:
            dump.close()
    assert len(wire) > UPLOADED, "all of it came by the card"
    assert [words for words in SAID if words in wire] == [], "and none of it in the clear"
