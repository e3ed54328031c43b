"""Uses parts of Python's library that programs need: processes, shared memory, threads, sockets,
SQLite, TLS."""
import asyncio
import multiprocessing
import socket
import sqlite3
import ssl
import subprocess
import tempfile


def square(number):
    return number * number


async def echo():
    server = await asyncio.start_server(lambda r, w: w.write(b"hello\n"), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.readline() == b"hello\n"
    writer.close()


def main():
    assert subprocess.run(["sh", "-c", "cat; exit 3"], input=b"in",
                          capture_output=True).returncode == 3
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(20)) == [n * n for n in range(20)]
    asyncio.run(echo())
    database = sqlite3.connect("d")
    database.execute("create table t(x)")
    database.executemany("insert into t values(?)", [(n,) for n in range(100)])
    database.commit()
    assert database.execute("select sum(x) from t").fetchone() == (4950,)
    with tempfile.TemporaryFile() as file:
        assert file.write(b"x") == 1
    assert socket.getaddrinfo("localhost", 80)
    roots = len(ssl.create_default_context().get_ca_certs())
    assert roots > 100
    print(
        f"subprocess, multiprocessing, asyncio, sqlite3, {ssl.OPENSSL_VERSION[:12]} with {roots} "
        "roots"
    )


if __name__ == "__main__":
    main()
