// Compactions by async-append-only-log, that may not come to their end.
//   node compaction.js run FILE BLOCK_SIZE         says "begun", and compacts
//   node compaction.js resume BLOCK_SIZE FILE...   opens each log, which finishes its compaction
const fs = require('fs')
const AsyncLog = require('async-append-only-log')
const [mode, ...args] = process.argv.slice(2)

const call = (log, name, ...given) =>
  new Promise((done, fail) => log[name](...given, (error, result) => (error ? fail(error) : done(result))))

async function main() {
  if (mode === 'resume') {
    const blockSize = Number(args.shift())
    for (const file of args) {
      const log = AsyncLog(file, { blockSize })
      await call(log, 'onDrain')
      await call(log, 'close')
    }
    return
  }
  const [file, blockSize] = args
  const log = AsyncLog(file, { blockSize: Number(blockSize) })
  await call(log, 'onDrain')
  fs.writeSync(1, 'begun\n')
  await call(log, 'compact')
  await call(log, 'close')
}
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  }
)
