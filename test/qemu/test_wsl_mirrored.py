"""Mirrored networking: 127.0.0.1 is Windows, by an interface and routing rules that precede those
of the loopback interface.

The same properties hold as with NAT, and the relay finds the broker without other settings: the
list of addresses is the same."""
import contextlib
import re
import socket

import pytest

from machine_harness import PATIENCE, Gateway, SpiedBroker, wait_for
from wsl_rig_harness import (PROGRAMS, RIG_SOURCE, Listener, Rig, WslSandbox, escapes, look_in,
                             no_name_is_found, none_escapes, outsider_has_its_network,
                             outsider_servers, put_glibc)


# Waits for a router's advertisement, from which the kernel makes a route.
ROUTER_FIRST = """
ip link set eth0 up
tries=0
until ip -6 route | grep -q '^default' || [ $tries = 1000 ]; do
    usleep 50000
    tries=$((tries + 1))
done
echo "a router said: $(ip -6 route | grep '^default')" >/dev/ttyS0
"""


class Place:
    pass


@pytest.mark.parametrize("network", ["nat", "mirrored"])
def test_a_router_that_speaks_first_does_not_stop_the_rig(network):
    start = (RIG_SOURCE / "start").read_text()
    # runs before the rig's own network set-up
    before, line, after = re.split(r"(?m)^(echo .*/ping_group_range.*)$", start)
    with Rig(network=network, start=before + line + ROUTER_FIRST + after) as rig:
        routes = rig.system("ip -6 route").splitlines()
        assert [route for route in routes if route.startswith("default via fec0::2 ")], routes
        said = (rig.folder / "console").read_text(errors="replace")
        assert "a router said: default via fe80::" in said, said


@pytest.fixture(scope="module")
def place():
    with contextlib.ExitStack() as stack:
        here = Place()
        here.rig = stack.enter_context(Rig("--cgroup", "nested", network="mirrored"))
        here.rig.install_outsider()
        here.windows = stack.enter_context(Listener())
        here.windows_v6 = stack.enter_context(Listener(socket.AF_INET6))
        stack.enter_context(outsider_servers(here.rig))
        outsider_has_its_network(here.rig, here.windows)
        here.gateway = stack.enter_context(Gateway())
        look = look_in(here.rig, "a")
        here.spied = SpiedBroker(look.folder.parent)
        options = [
            "--server-port", 4096, *here.gateway.options, *here.spied.options, *put_glibc(here.rig)
        ]
        here.a = stack.enter_context(
            WslSandbox(here.rig, f"{PROGRAMS}/probe serve 4096 http & {look.CODEV}", options,
                       look)).started()
        yield here


def test_the_relay_finds_the_broker(place):
    assert place.a.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
        "HTTP/1.1 200 ")
    assert place.gateway.stats()["requests"] >= 1


def test_a_distribution_in_a_group_of_its_own(place):
    """No cgroup controller is available: that is reported, and the sandbox runs, in cgroups below
    the distribution's."""
    warnings = [event["text"] for event in place.a.events() if event["event"] == "warning"]
    assert any("cgroup" in text or "limits" in text or "pids" in text
               for text in warnings), warnings
    groups = place.rig.system("find /sys/fs/cgroup -type d -path '*/codev/*'").split()
    assert groups and all(
        group.startswith("/sys/fs/cgroup/wsl-user/distro-codev/codev/") for group in groups)
    assert ".." not in place.a.codev("cat /proc/self/cgroup") and "wsl-user" not in place.a.codev(
        "cat /proc/self/cgroup")


def test_windows_is_on_the_loopback(place):
    """Checks the rig itself: here the outsider's connections to 127.0.0.1 reach Windows, and the
    default gateway is a router that does not answer."""
    before = len(place.windows.seen)
    status, text = place.rig.outsider(f"nc -w 5 127.0.0.1 {place.windows.port}; ip rule | head -1",
                                      "1000")
    assert text.splitlines()[0] == "WINDOWS" and "loopback0" in text and len(
        place.windows.seen) == before + 1
    for gateway in ("192.168.77.77", "192.168.77.1"):
        text = place.rig.outsider(f"/mnt/c/probe connect {gateway} {place.windows.port}", "1000")[1]
        assert "worked" not in text and "connect" in text


def test_the_way_in(place):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(place.a.wait_event("way_in")["path"])
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_nothing_leaves(place):
    seen = len(place.windows.seen), len(place.windows_v6.seen), len(place.rig.record())
    none_escapes(place.a, escapes(place.rig, place.windows, place.windows_v6, []))
    assert seen == (len(place.windows.seen), len(place.windows_v6.seen), len(place.rig.record()))


def test_no_names(place):
    before = place.rig.record()
    no_name_is_found(place.a)
    assert place.rig.record() == before


def test_nothing_is_added_to_what_is_shared(place):
    text = place.rig.outsider("nft list ruleset; ip -o link | wc -l; ip rule | wc -l")[1]
    assert text.split() == ["3", "9"], text


def test_the_wire_shows_nothing_in_clear(place):
    assert place.a.codev(
        f"{PROGRAMS}/probe http GET /gateway/v1/models --header 'X-Mark: mark-of-this-test'"
    ).startswith("HTTP/1.1 200 ")
    wait_for(lambda: b"\x16\x03\x03" in place.rig.dump(), "TLS in the dump", 10)
    for secret in (place.spied.token(), place.gateway.token, "mark-of-this-test", "CODEV/1",
                   "/gateway/"):
        assert secret.encode() not in place.rig.dump(), secret


def test_the_outsider_keeps_its_network(place):
    """While sandboxes run, and after they have ended; the last test here."""
    outsider_has_its_network(place.rig, place.windows)
    place.a.process.terminate()
    place.a.process.wait(PATIENCE)
    outsider_has_its_network(place.rig, place.windows)
