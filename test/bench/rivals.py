"""The programs with which ours are compared, each with the smallest reasonable configuration for
the same work, one worker and one thread."""
import contextlib
import pathlib
import subprocess

import bench

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
MODULES = "/usr/lib/nginx/modules"


@contextlib.contextmanager
def running(command, address, **more):
    """Starts a program and waits until it accepts; its pid. Shows its output when it does not
    start."""
    process = bench.subject(command, **{**QUIET, **more})
    try:
        def is_up():
            if process.poll() is not None:
                raise RuntimeError(
                    f"{command[0]} ended with {process.returncode}: {' '.join(map(str, command))}")
            return bench.accepts(address)
        bench.wait_until(is_up, command[0])
        yield process.pid
    finally:
        bench.end(process)


# --- relays: TCP on loopback to a Unix socket -----------------------------------------------------

def socat(folder, port, target):
    return running([
        "socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=4096",
        f"UNIX-CONNECT:{target}"
    ], port)


HAPROXY_RELAY = """\
global
    nbthread 1
    maxconn 4000
defaults
    mode {mode}
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    {more}
listen relay
    bind 127.0.0.1:{port} backlog 4096
    server target unix@{target}
"""


def haproxy(folder, port, target, mode):
    config = folder / f"haproxy-{mode}.cfg"
    more = "http-reuse always" if mode == "http" else ""
    config.write_text(HAPROXY_RELAY.format(mode=mode, port=port, target=target, more=more))
    return running(["haproxy", "-db", "-q", "-f", config], port)


NGINX_STREAM = """\
load_module {modules}/ngx_stream_module.so;
daemon off; user root; worker_processes 1; worker_rlimit_nofile 10000;
    pid {folder}/nginx-stream.pid; error_log {folder}/nginx-stream.log;
events {{ worker_connections 9000; }}
stream {{
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        tcp_nodelay on; proxy_timeout 1h;
        proxy_pass unix:{target};
    }}
}}
"""


def nginx_stream(folder, port, target):
    config = folder / "nginx-stream.conf"
    config.write_text(NGINX_STREAM.format(modules=MODULES, folder=folder, port=port, target=target))
    return running(["nginx", "-c", config, "-e", folder / "nginx-stream.log"], port)


# --- reverse proxies: HTTP on a Unix socket to TLS upstream ---------------------------------------
# They do the broker's header work: its credential instead of the client's, the client's cookies and
# key and hop-by-hop fields removed, the prefix /gateway removed; the upstream's certificate is
# verified; one line of log for each request.

NGINX_PROXY = """\
daemon off; user root; worker_processes 1; worker_rlimit_nofile 10000; pid {folder}/nginx.pid;
    error_log {folder}/nginx-error.log;
events {{ worker_connections 9000; }}
http {{
    access_log {folder}/nginx-access.log combined buffer=32k flush=1s;
    client_body_temp_path {folder}/nginx-body; proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-1; uwsgi_temp_path {folder}/nginx-2;
        scgi_temp_path {folder}/nginx-3;
    keepalive_requests 1000000000; keepalive_timeout 1h; client_max_body_size 0; tcp_nodelay on;
    upstream gateway {{ server 127.0.0.1:{upstream}; keepalive 1024; keepalive_requests 1000000000;
        keepalive_timeout 1h; }}
    proxy_http_version 1.1; proxy_request_buffering off; proxy_max_temp_file_size 0;
        proxy_read_timeout 1h;
    proxy_set_header Connection ""; proxy_set_header Host localhost;
    proxy_set_header Authorization "Bearer {secret}"; proxy_set_header X-Api-Key "";
        proxy_set_header Cookie "";
    proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; proxy_ssl_name localhost;
        proxy_ssl_server_name on;
    proxy_ssl_protocols TLSv1.2 TLSv1.3;
    server {{
        listen unix:{path} backlog=4096;
        location /gateway/ {{ proxy_pass https://gateway/; }}
        location /gateway/events {{ proxy_pass https://gateway/events; proxy_buffering off; }}
    }}
}}
"""


def nginx_proxy(folder, path, upstream, ca, secret):
    config = folder / "nginx.conf"
    config.write_text(
        NGINX_PROXY.format(folder=folder, path=path, upstream=upstream, ca=ca, secret=secret))
    pathlib.Path(path).unlink(missing_ok=True)
    return running(["nginx", "-c", config, "-e", folder / "nginx-error.log"], path)


HAPROXY_PROXY = """\
global
    nbthread 1
    maxconn 4000
    log stdout format raw local0
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    http-reuse always
frontend guest
    bind unix@{path} backlog 4096
    http-request replace-path /gateway/(.*) /\\1
    http-request set-header Authorization "Bearer {secret}"
    http-request del-header X-Api-Key
    http-request del-header Cookie
    http-request set-header Host localhost
    default_backend gateway
backend gateway
    server upstream 127.0.0.1:{upstream} ssl verify required ca-file {ca} \
        sni str(localhost) verifyhost localhost
"""


@contextlib.contextmanager
def haproxy_proxy(folder, path, upstream, ca, secret):
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY_PROXY.format(path=path, upstream=upstream, ca=ca, secret=secret))
    pathlib.Path(path).unlink(missing_ok=True)
    with open(folder / "haproxy.log", "wb") as log, \
            running(["haproxy", "-db", "-f", config], path, stdout=log) as pid:
        yield pid
