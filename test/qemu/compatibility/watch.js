// Changes in a folder of the user's are seen.
const fs = require('fs');
const seen = new Set();
const watcher = fs.watch('.', (event, name) => {
  seen.add(name);
  if (seen.has('one') && seen.has('two')) {
    watcher.close();
    console.log('saw one and two');
  }
});
fs.writeFileSync('one', 'x');
fs.writeFileSync('three', 'x');
fs.renameSync('three', 'two');
