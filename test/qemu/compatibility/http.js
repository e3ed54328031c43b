// A server and its client on loopback; what the network looks like from here.
const assert = require('assert'), http = require('http'), os = require('os');
const body = Buffer.alloc(1 << 20, 'x');
const server = http.createServer((request, response) => request.pipe(response));
server.listen(0, '127.0.0.1', async () => {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`,
    { method: 'POST', body });
  assert.strictEqual(answer.status, 200);
  assert.ok(body.equals(Buffer.from(await answer.arrayBuffer())));
  const interfaces = os.networkInterfaces();
  assert.deepStrictEqual(Object.keys(interfaces), ['lo']);
  assert.ok(interfaces.lo.some((one) => one.address === '127.0.0.1'));
  const refused = await fetch('http://192.0.2.1/').catch((error) => error.cause.code);
  assert.ok(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EACCES'].includes(refused), refused);
  console.log(`${process.version}: 1 MiB there and back, interfaces: lo, outside: ${refused}`);
  server.close();
  server.closeAllConnections();
});
