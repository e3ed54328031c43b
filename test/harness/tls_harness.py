"""A codev-broker that listens on TCP, and the real relay in front of it.

`wire(...)` is a proxy between the two that records every byte of both directions, so that a test
can search the traffic for secrets, and cut, delay or corrupt it."""

import contextlib
import socket
import threading

import relay_harness
from relay_harness import PATIENCE, listen_tcp, running
from broker_harness import Broker, Client, fields_of


def address_of(text):
    """("127.0.0.1", 50123) of tcp:127.0.0.1:50123."""
    host, _, port = text.removeprefix("tcp:").rpartition(":")
    return host.strip("[]"), int(port)


class SecureBroker(Broker):
    """A broker that listens on TCP beside its Unix socket."""

    def __init__(self, folder, *arguments, options=(), listen=("tcp:127.0.0.1:0",), **more):
        for endpoint in listen:
            options = [*options, "--listen", endpoint]
        super().__init__(folder, *arguments, options=options, **more)
        self.endpoints = self.ready["listen"][1:]
        self.pin = self.ready["pin"].removeprefix("sha256:")

    @property
    def address(self):
        return address_of(self.endpoints[0])

    def connect(self):
        """A bare TCP connection to the port."""
        sock = socket.create_connection(self.address, timeout=PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


class AgentClient(Client):
    """Plain HTTP to the relay's listener; the relay sends the preface."""

    def __init__(self, front):  # pylint: disable=super-init-not-called
        self.socket = relay_harness.connect(front)
        self.pending = b""


@contextlib.contextmanager
def agent_to(broker, dials=None, **more):
    """(relay, its listener) with the broker's token and pin."""
    front = listen_tcp()
    forward = {
        "role": "broker",
        "fd": front,
        "dial": list(dials or broker.endpoints),
        "secret": broker.token,
        "pin": broker.pin,
        **more
    }
    with front, running([forward]) as agent:
        yield agent, front


class Wire:
    """A TCP proxy that records. `up` and `down` are what the relay and the broker sent."""

    def __init__(self, target, spoil=None):
        self.target, self.spoil = target, spoil
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.endpoint = f"tcp:127.0.0.1:{self.listener.getsockname()[1]}"
        self.up, self.down, self.sockets, self.threads = bytearray(), bytearray(), [], []
        self._start(self._accept)

    def _start(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                upper = socket.create_connection(self.target)
                self.sockets += [client, upper]
                for source, sink, record in ((client, upper, self.up), (upper, client, self.down)):
                    self._start(self._pass, source, sink, record)

    def _pass(self, source, sink, record):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.spoil:
                    data = self.spoil(record is self.up, len(record), data)
                record += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def cut(self):
        """Ends every connection without a TLS message."""
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def refuse(self):
        """Accepts no more connections."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Waits for the threads, so that none is in a call on a descriptor number that is
        reused."""
        self.refuse()
        self.threads[0].join(PATIENCE)
        self.cut()
        for thread in self.threads:
            thread.join(PATIENCE)
        for sock in [self.listener, *self.sockets]:
            sock.close()


# --- an upstream ----------------------------------------------------------------------------------

ZEROS = bytes(1 << 20)


def rules_of(upstream):
    return {"up": upstream.url}


def stream_of(peer, count):
    """Pieces of an answer without a known length."""
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for index in range(count):
        piece = b"piece %d\n" % index
        peer.send(b"%x\r\n%s\r\n" % (len(piece), piece))
    peer.send(b"0\r\n\r\n")


def echo_length(peer, head):
    """/stream/N: pieces; /zeros/N: N bytes; /deaf: reads no body; else the length of the body, and
    its digest where one is asked for."""
    target, fields = head.split(b" ")[1].decode(), fields_of(head)
    kind, _, number = target.strip("/").partition("/")
    if kind == "stream":
        stream_of(peer, int(number))
        return
    if kind == "zeros":
        left = int(number)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
        while left:
            peer.send(ZEROS[:left])
            left -= min(left, len(ZEROS))
        return
    if kind == "deaf":
        threading.Event().wait(5)
        raise EOFError("it has seen enough")
    length = int(fields.get("content-length", 0))
    peer.read(length)
    peer.answer(b"%d" % length)
