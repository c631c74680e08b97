// Compactions by async-append-only-log that do not come to their end.
//   node compaction.js trace FILE BLOCK_SIZE AHEAD   what it writes, one JSON object a line, in the order in which it reaches the
//                                                    disk; each block of the log only when AHEAD later ones are announced
//   node compaction.js run FILE BLOCK_SIZE           says "begun", and compacts
//   node compaction.js resume BLOCK_SIZE FILE...     opens each log, which finishes its compaction
const fs = require('fs')
const AsyncLog = require('async-append-only-log')
const [mode, ...args] = process.argv.slice(2)

const call = (log, name, ...given) =>
  new Promise((done, fail) => log[name](...given, (error, result) => (error ? fail(error) : done(result))))

function tracing(file, blockSize, ahead) {
  const { write, ftruncate, unlink } = fs
  const isState = new Map() // descriptor -> whether it is the state's file
  const open = fs.open
  fs.open = (path, flags, done) =>
    open(path, flags, (error, fd) => {
      if (!error) isState.set(fd, { [file]: false, [file + '.compaction']: true }[path]) // descriptors are used again
      done(error, fd)
    })
  const tell = (what) => fs.writeSync(1, JSON.stringify(what) + '\n')
  let announced = 0
  let last = 0 // when it wrote last: a held write is let go when nothing else is left to do
  fs.write = function attempt(fd, data, from, length, at, done) {
    const state = isState.get(fd)
    if (state === undefined) return write(fd, data, from, length, at, done)
    const perform = () => {
      last = Date.now()
      tell({ state, at, data: data.toString('base64', from, from + length) })
      if (state) announced = data.readUInt32LE(12)
      write(fd, data, from, length, at, done)
    }
    const wait = () => (announced > at / blockSize + ahead || Date.now() > last + 20 ? perform() : setImmediate(wait))
    if (state || ahead === 0) perform()
    else wait()
  }
  fs.ftruncate = (fd, size, done) => {
    tell({ state: false, size })
    ftruncate(fd, size, done)
  }
  fs.unlink = (path, done) => {
    tell({ state: true, size: -1 })
    unlink(path, done)
  }
}

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
  const [file, blockSize, ahead] = args
  if (mode === 'trace') tracing(file, Number(blockSize), Number(ahead))
  const log = AsyncLog(file, { blockSize: Number(blockSize) })
  await call(log, 'onDrain')
  if (mode === 'run') fs.writeSync(1, 'begun\n')
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
