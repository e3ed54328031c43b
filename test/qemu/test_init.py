"""codev-init on its control channel: stages, input and output, supervision, and all ways to end."""
import os
import re
import socket
import threading
import time

import pytest

import sanitizer_harness
from control_harness import CREDIT, PIECE, Guest, config
from machine_harness import GUEST, wait_for

STAGES = [
    "base", "config", "clock", "hostname", "account", "mounts", "network", "firewall", "cgroups",
    "relay", "self-test", "server"
]

# A witness starts its work when the server runs `sleep`; before, codev-init is still making /dev.
SERVER_SLEEPS = "until pidof sleep; do usleep 20000; done"


# --- the start ------------------------------------------------------------------------------------

def test_stages_in_order_and_then_ready():
    with Guest(config("true")) as guest:
        assert guest.run() == {"event": "exit", "code": 0}
        assert guest.events[0]["event"] == "hello" and guest.events[0]["protocol"] == 1
        assert [event["name"] for event in guest.named("stage")] == STAGES
        [ready] = guest.named("ready")
        assert ready["way_in"] == "vsock:4096" and ready["boot_ms"] > 0
        assert ready["checks"] and all(check["ok"] for check in ready["checks"])
        assert guest.events.index(ready) == 1 + len(STAGES)
        assert guest.named("warning") == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_failure_in_each_stage_is_an_orderly_end(stage):
    image = sanitizer_harness.fail_stage_image(GUEST)
    asked = config("true", env={sanitizer_harness.FAIL_STAGE: stage})
    with Guest(asked, image=image) as guest:
        failed = guest.run()
        assert (failed["event"], failed["stage"]) == ("failed", stage)
        assert guest.named("ready") == []


def test_a_wrong_key_is_named():
    wrong = config("true")
    wrong["server"]["prot"] = 4096
    with Guest(wrong) as guest:
        failed = guest.run()
        assert failed["stage"] == "config" and 'unknown key "prot"' in failed["error"]


def test_a_host_that_is_late_and_one_that_closes():
    with Guest(config("true"), listen=False) as guest:
        time.sleep(2)
        guest.listen()
        for _ in range(3):
            guest.listener.settimeout(60)
            guest.listener.accept()[0].close()
        assert guest.run() == {"event": "exit", "code": 0}
        assert [event["event"] for event in guest.events[:2]] == ["hello", "stage"]


def test_a_configuration_of_the_longest_kind():
    value = config(["sh", "-c", "echo $# ${#A}", "x", *["y" * 1000] * 800], env={"A": "z" * 100000})
    with Guest(value) as guest:
        assert guest.run() == {"event": "exit", "code": 0}
        assert guest.output["stdout"] == b"800 100000\n"


def test_a_configuration_beyond_the_limit():
    with Guest(None) as guest:
        guest.accept()
        guest.connection.sendall(b'{"protocol":1,' + b" " * (1 << 20))
        failed = guest.end()
        assert failed["stage"] == "config" and "longer than" in failed["error"]


def test_without_a_channel_the_console_is_told():
    with Guest(None, append="codev.control=vsock:no") as guest:
        guest.off()
        assert "stage config failed: kernel command line" in guest.console()


@pytest.mark.parametrize("argv, cwd, reason", [
    (["no-such-program"], "/", "no-such-program: command not found"),
    (["/etc/passwd"], "/", "execute /etc/passwd: Permission denied"),
    (["sh"], "/nowhere", "/nowhere: No such file"),
    (["sh"], "/root", "/root: "),
])
def test_a_server_that_cannot_start(argv, cwd, reason):
    with Guest(config(argv, cwd=cwd)) as guest:
        failed = guest.run()
        assert failed["stage"] == "server" and reason in failed["error"]


# --- ready ----------------------------------------------------------------------------------------

def test_ready_once_the_port_accepts():
    with Guest(config("sleep 2; exec nc -ll -p 4096 -e cat", port=4096)) as guest:
        guest.begin()
        assert guest.named("stage")[-1]["ms"] > 1500
        guest.send({"command": "shutdown"})
        assert guest.end() == {"event": "exit", "signal": 15}


def test_a_port_that_never_accepts():
    with Guest(config("sleep 1000", port=4096, ready_timeout_ms=500)) as guest:
        failed = guest.run()
        assert (failed["stage"], failed["error"]) == ("server",
                                                      "port 4096 does not accept after 500 ms")


def test_an_end_before_ready_is_an_exit():
    with Guest(config("exit 3", port=4096)) as guest:
        assert guest.run() == {"event": "exit", "code": 3}
        assert guest.named("ready") == []


# --- input and output -----------------------------------------------------------------------------

def test_standard_files_can_be_opened_by_name():
    with Guest(
            config("echo a >/dev/stdout; echo b >/dev/stderr; cat /dev/stdin; echo c >>/dev/fd/1")
    ) as guest:
        guest.begin()
        guest.type(b"typed\n")
        guest.send({"command": "input", "eof": True})
        assert guest.end() == {"event": "exit", "code": 0}
        assert (guest.output["stdout"], guest.output["stderr"]) == (b"a\ntyped\nc\n", b"b\n")


def test_no_byte_beyond_the_credit_and_none_lost():
    size = CREDIT + 60000
    with Guest(config(f"head -c {size} /dev/zero; exit 4")) as guest:
        guest.begin()
        while len(guest.output["stdout"]) < CREDIT:
            guest.event(credit=False)
        with pytest.raises(
                TimeoutError):  # the leader ended long ago, the rest of the output waits for credit
            guest.event(credit=False, seconds=3)
        assert len(guest.output["stdout"]) == CREDIT
        guest.send({"command": "credit", "stream": "stdout", "bytes": size})
        assert guest.end() == {"event": "exit", "code": 4}
        assert len(guest.output["stdout"]) == size


def test_input_beyond_its_credit_is_refused():
    with Guest(config("sleep 1000")) as guest:
        guest.begin()
        for _ in range(CREDIT // PIECE + 5):  # the pipe takes some of it, for which credit is given
            guest.type(b"x" * PIECE)
        assert "beyond the credit" in guest.until("warning")["text"]
        guest.send({"command": "shutdown", "grace_ms": 0})
        guest.end()


def test_log_drops_whole_lines_and_counts_them():
    count = 200000  # about 9 MB: far more than all buffers on the way hold
    # is alive until the host reads again
    text = f"seq {count} | sed 's/.*/line & and some more words to fill/'; sleep 10"
    with Guest(config(text, stdio="log"),
               witness=f"{SERVER_SLEEPS}; echo all is written >/dev/console") as guest:
        guest.begin()
        wait_for(lambda: "all is written" in guest.console(),
                 "the writer, which does not wait for a host that does not read")
        assert guest.end() == {"event": "exit", "code": 0}
        lines = guest.output["stdout"].decode().splitlines()
        dropped = sum(event["lines"] for event in guest.named("dropped"))
        assert dropped > 0 and len(lines) + dropped == count
        assert all(re.fullmatch(r"line \d+ and some more words to fill", line) for line in lines)
        numbers = [int(line.split()[1]) for line in lines]
        assert numbers == sorted(numbers)


def test_a_terminal():
    with Guest(config(["sh", "-i"], stdio="tty", rows=33, cols=77)) as guest:
        guest.begin()
        guest.type(b"stty size; ls -l $(tty); echo to-stderr >/dev/stderr\n")
        guest.see(b"33 77\r\n", "tty")
        guest.see(b"crw-------", "tty")
        guest.see(b"\nto-stderr\r\n", "tty")
        guest.send({"command": "resize", "rows": 50, "cols": 132})
        guest.type(b"stty size\n")
        guest.see(b"50 132\r\n", "tty")
        guest.type(b"sh -c 'echo up; sleep 1000'\n")  # printed once it has the terminal
        guest.see(b"\nup\r\n", "tty")
        guest.send({"command": "signal", "name": "SIGINT"})
        guest.type(b"echo status=$?\n")
        guest.see(b"status=130\r\n~ $ ",
                  "tty")  # wait for the prompt, so that the shell reads the end of input
        guest.send({"command": "input", "eof": True})
        assert guest.end()["event"] == "exit"


# --- supervision ----------------------------------------------------------------------------------

def test_ten_thousand_instant_exits_every_status_right():
    text = (
        "i=0; while [ $i -lt 10000 ]; do (exit $((i % 256))) & wait $!; s=$?; "
        "[ $s = $((i % 256)) ] || { echo $i $s; exit 1; }; i=$((i+1)); [ $((i % 500)) = 0 ] && "
        "echo $i >&2; done; echo done"
    )
    with Guest(config(text)) as guest:
        assert guest.run() == {"event": "exit", "code": 0}
        assert guest.output["stdout"] == b"done\n"


def test_a_thousand_orphans_leave_no_zombie():
    text = (
        "i=0; while [ $i -lt 1000 ]; do ( (sleep 0.2; exit 3) & ); i=$((i+1)); done; "
        "while [ $(cat /sys/fs/cgroup/codev/t1/server/pids.current) -gt 3 ]; do sleep 0.1; done; "
        "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; cat "
        "/sys/fs/cgroup/codev/t1/server/pids.peak 2>/dev/null"
    )
    with Guest(config(text)) as guest:
        assert guest.run() == {"event": "exit", "code": 0}
        assert guest.output["stdout"].splitlines()[0] == b"0"


def test_zombies_of_root_are_reaped_too():
    count = "for s in /proc/[0-9]*/stat; do cat $s; done 2>/dev/null | grep -c ') Z '"
    witness = (f"{SERVER_SLEEPS}; (true &); (true &); usleep 1500000; echo zombies: $({count}) "
               ">/dev/console; kill $(pidof sleep)")
    with Guest(config("sleep 1000"), witness=witness) as guest:
        guest.run()
        assert "zombies: 0" in guest.console()


def test_the_agent_is_started_again():
    text = ("i=0; while [ $i -lt 9 ]; do nslookup -type=a example.com 127.0.0.1 2>&1 | grep -c "
            "NXDOMAIN; sleep 0.5; i=$((i+1)); done")
    lives = "until pidof codev-agent; do usleep 20000; done"
    witness = (f"{SERVER_SLEEPS}; kill -9 $(pidof codev-agent); sleep 1; {lives}; kill -9 $(pidof "
               "codev-agent)")
    with Guest(config(text), witness=witness) as guest:
        assert guest.run() == {"event": "exit", "code": 0}
        assert guest.output["stdout"] == b"1\n" * 9
        assert [event["text"] for event in guest.named("warning")] == [
            "codev-agent ended (signal 9) and is started again"] * 2


def test_an_agent_that_keeps_dying_ends_the_sandbox():
    witness = "while :; do kill -9 $(pidof codev-agent); usleep 50000; done 2>/dev/null"
    with Guest(config("sleep 1000"), witness=f"{SERVER_SLEEPS}; {witness}") as guest:
        failed = guest.run()
        assert failed["stage"] == "relay" and "after 10 restarts within 30 s" in failed["error"]


@pytest.mark.skipif(bool(sanitizer_harness.IMAGE),
                    reason="a sanitizer's memory is not the program's")
def test_resident_memory():
    """At most 1 MiB, also after a long configuration and much input and output."""
    witness = (f"{SERVER_SLEEPS}; grep -E 'VmRSS|VmHWM' /proc/1/status >/dev/console; kill $(pidof "
               "sleep)")
    value = config("cat >/dev/null; head -c 4000000 /dev/zero; sleep 1000; true",
                   env={f"V{i}": "x" * 1000
                        for i in range(300)})
    with Guest(value, witness=witness) as guest:
        guest.begin()
        for _ in range(CREDIT // PIECE):
            guest.type(os.urandom(PIECE))
        guest.send({"command": "input", "eof": True})
        assert guest.end() == {"event": "exit", "code": 0}
        values = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", guest.console()))
        assert 50 < int(values["VmRSS"]) <= 1024, values


# --- commands -------------------------------------------------------------------------------------

def test_what_is_not_understood_is_a_warning():
    with Guest(config("read line")) as guest:
        guest.begin()
        guest.send({"command": "dance"})
        guest.connection.sendall(b"nonsense\n[]\n")
        guest.send({"command": "signal", "name": "SIGSEGV"})
        guest.send({"command": "input", "data": "$$$$"})
        guest.send({"command": "credit", "stream": "tty", "bytes": 1})
        guest.send({"command": "resize", "rows": 1, "cols": 1})
        guest.send({"command": "relay", "relay": None})
        guest.type(b"\n")
        assert guest.end() == {"event": "exit", "code": 0}
        texts = [event["text"] for event in guest.named("warning")]
        assert len(texts) == 8, texts
        assert texts[0] == "unknown command: dance"


def test_the_guest_asks_for_the_time():
    """One question at a time. The answer may be as old as the question; an old time does not set a
    correct clock back."""
    with Guest(config("while read line; do echo now $(date +%s).; done")) as guest:
        def seconds():
            before = len(guest.output["stdout"])
            guest.type(b"\n")
            while b"." not in guest.output["stdout"][before:]:
                guest.event()
            return int(guest.output["stdout"][before:].split()[1].rstrip(b"."))

        guest.begin()
        guest.send({"command": "time", "unix_ns": time.time_ns()})
        guest.question(1)
        asked, before = time.time_ns(), time.time()
        time.sleep(8)  # longer than the time between an answer and the next question
        assert seconds() >= int(before) + 6 and len(guest.questions) == 1
        guest.send({"command": "time", "unix_ns": asked, "number": 1})
        assert seconds() >= int(before) + 6
        guest.question(2)
        guest.send({"command": "time", "unix_ns": 2000000000 * 10**9, "number": 2})
        assert 0 <= seconds() - 2000000000 < 60
        for number in (2, 7, 0, "3"):
            guest.send({"command": "time", "unix_ns": 1900000000 * 10**9, "number": number})
        guest.question(3)
        assert 0 <= seconds() - 2000000000 < 60
        guest.send({"command": "time", "unix_ns": time.time_ns(), "number": 3})
        assert abs(seconds() - time.time()) < 60
        texts = [event["text"] for event in guest.named("warning")]
        assert len(texts) == 4 and all("number" in text for text in texts), texts
        guest.send({"command": "input", "eof": True})
        assert guest.end() == {"event": "exit", "code": 0}


def test_time():
    with Guest(config("read line; date +%s")) as guest:
        guest.begin()
        guest.send({"command": "time", "unix_ns": 2000000000 * 10**9})
        guest.type(b"\n")
        guest.end()
        assert 0 <= int(guest.output["stdout"]) - 2000000000 < 60


def test_signals_reach_the_group():
    with Guest(config(
            "trap 'echo got usr1; exit 5' USR1; echo up; while :; do sleep 0.1; done")) as guest:
        guest.begin()
        guest.see(b"up\n")
        guest.send({"command": "signal", "name": "SIGUSR1"})
        assert guest.end() == {"event": "exit", "code": 5}
        assert guest.output["stdout"] == b"up\ngot usr1\n"


# --- the end --------------------------------------------------------------------------------------

@pytest.mark.parametrize("signal", [9, 11])
def test_death_by_signal(signal):
    with Guest(config(f"kill -{signal} $$")) as guest:
        assert guest.run() == {"event": "exit", "signal": signal}


@pytest.mark.parametrize("child", ["sleep 1000", "trap '' TERM HUP; while :; do :; done"])
def test_a_child_that_holds_the_output_does_not_hold_the_end(child):
    with Guest(config(f"({child}) & echo last; exit 5")) as guest:
        assert guest.run() == {"event": "exit", "code": 5}
        assert guest.output["stdout"] == b"last\n"


def test_what_a_child_still_says_at_the_end_arrives():
    with Guest(config("(while kill -0 $$; do :; done 2>/dev/null; echo late) & exit 0")) as guest:
        assert guest.run() == {"event": "exit", "code": 0}
        assert guest.output["stdout"] == b"late\n"


def test_shutdown_lets_the_server_end_itself():
    with Guest(config(
            "trap 'echo ending; exit 9' TERM; echo up; while :; do sleep 0.1; done")) as guest:
        guest.begin()
        guest.see(b"up\n")
        guest.send({"command": "shutdown", "grace_ms": 60000})
        assert guest.end() == {"event": "exit", "code": 9}
        assert guest.output["stdout"] == b"up\nending\n"


def test_shutdown_kills_after_the_grace():
    with Guest(config("trap '' TERM; echo up; while :; do :; done")) as guest:
        guest.begin()
        guest.see(b"up\n")
        guest.send({"command": "shutdown", "grace_ms": 700})
        assert guest.end() == {"event": "exit", "signal": 9}


def test_shutdown_of_an_interactive_shell():
    with Guest(config(["sh", "-i"], stdio="tty")) as guest:
        guest.begin()
        guest.send({"command": "shutdown", "grace_ms": 600000})
        assert guest.end(
        )["event"] == "exit"  # although it ignores TERM, and long before the grace period is over


def test_the_end_of_the_channel_is_a_shutdown():
    with Guest(config("trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")) as guest:
        guest.begin()
        guest.see(b"up\n")
        guest.connection.close()
        guest.off()


def test_a_host_that_never_acknowledges():
    with Guest(config("true")) as guest:
        guest.accept()
        guest.until("exit")
        guest.off()


def test_a_host_that_does_not_read_a_log_does_not_hold_the_end():
    with Guest(config("head -c 3000000 /dev/zero | tr '\\0' '\\n'; exit 6", stdio="log")) as guest:
        guest.begin()
        time.sleep(3)
        assert guest.end() == {"event": "exit", "code": 6}


# --- the relay ------------------------------------------------------------------------------------

class Broker(threading.Thread):
    """Answers every connection as a broker answers GET /, and records the token that came first on
    it."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.tokens, self.listener = [], socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.start()

    def run(self):
        body = b'{"type":"error","error":{"type":"codev_not_found","message":"no such route"}}'
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                self.tokens.append(lines.readline().decode().strip())
                while lines.readline().strip():
                    pass
                connection.sendall(
                    b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: "
                    b"close\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.join(10)


def relay(port, token):
    return {"transport": [f"vsock:2:{port}"], "token": token}


def test_a_broker_that_was_restarted():
    """After the command `relay`, connections go to the new broker with its token, and the old token
    is no longer sent."""
    asks = "wget -q -O - http://127.0.0.1:8788/ 2>&1 | grep -o 404; "
    value = config(f"{asks} read line; {asks}")
    value["relay"], value["egress"] = relay(50117, "1" * 64), ["gateway"]
    with Guest(value) as guest:
        first, second = Broker(guest.folder / "vsock_50117"), Broker(guest.folder / "vsock_50118")
        try:
            guest.begin()
            guest.see(b"404\n")
            before = len(first.tokens)
            guest.send({"command": "relay", "relay": relay(50118, "2" * 64)})
            guest.type(b"\n")
            assert guest.end() == {"event": "exit", "code": 0}
            assert guest.output["stdout"] == b"404\n404\n"
            assert guest.named("warning") == []
            assert set(first.tokens) == {"CODEV/1 " + "1" * 64} and len(first.tokens) == before
            assert second.tokens == ["CODEV/1 " + "2" * 64]
        finally:
            first.stop()
            second.stop()
