// Children with pipes, signals, exit codes, a message channel.
const assert = require('assert');
const { execFileSync, spawn, spawnSync, fork } = require('child_process');
if (process.send) process.on('message', (text) => {
  process.send(text.toUpperCase());
  process.disconnect();
});
else {
  assert.strictEqual(execFileSync('cat', { input: 'through a pipe' }).toString(), 'through a pipe');
  assert.strictEqual(spawnSync('sh', ['-c', 'exit 7']).status, 7);
  const child = spawn('sleep', ['100']);
  child.on('exit', (code, signal) => {
    assert.strictEqual(signal, 'SIGTERM');
    const other = fork(__filename);
    other.on('message', (text) => console.log(`pipe, status 7, ${signal}, ${text}`));
    other.send('message');
  });
  child.kill();
}
