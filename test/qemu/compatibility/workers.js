// Threads that share memory.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const COUNT = 3, ROUNDS = 1000;
if (isMainThread) {
  const shared = new SharedArrayBuffer(4), counter = new Int32Array(shared);
  let left = COUNT;
  for (let i = 0; i < COUNT; i++)
    new Worker(__filename, { workerData: shared }).on('message', () => {
      if (--left === 0) {
        if (counter[0] !== COUNT * ROUNDS) process.exit(1);
        const cpus = require('os').cpus().length;
        console.log(`${COUNT} workers, ${counter[0]} additions, cpus: ${cpus}`);
      }
    });
} else {
  const counter = new Int32Array(workerData);
  for (let i = 0; i < ROUNDS; i++) Atomics.add(counter, 0, 1);
  parentPort.postMessage('done');
}
