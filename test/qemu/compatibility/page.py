"""A page that draws, computes and fetches; prints its port and serves until it is ended."""
import http.server

PAGE = b"""<!doctype html><title>t</title><canvas id=c></canvas><p id=p>nothing</p><script>
document.getElementById('c').getContext('2d').fillRect(0, 0, 9, 9);
fetch('/data').then(r => r.text()).then(text => {
  let sum = 0;
  for (let i = 1; i <= 1000; i++) sum += i;
  document.getElementById('p').textContent = 'computed ' + sum + ' by script, fetched ' + text;
});
</script>"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = {"/": PAGE, "/data": b"data"}.get(self.path, b"")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
