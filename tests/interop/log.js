// Drives async-append-only-log: `node log.js FILE BLOCK_SIZE < commands`, one JSON command a line, one JSON answer each.
//   ["append", [hex...]]  ["transaction", [hex...]]  ["delete", [offset...]]  ["get", offset]  ["stream", {gt: ...}]
//   ["since"]  ["compact"]  ["drain"]
const AsyncLog = require('async-append-only-log')
const [file, blockSize] = process.argv.slice(2)
const commands = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean).map(JSON.parse)

const log = AsyncLog(file, { blockSize: Number(blockSize), writeTimeout: 1 })
const call = (name, ...args) =>
  new Promise((done, fail) => log[name](...args, (error, result) => (error ? fail(error) : done(result))))
const bytes = (hex) => Buffer.from(hex, 'hex')
const ready = () => new Promise((done) => log.since((value) => (value === null || value === undefined ? undefined : (done(), false))))

const actions = {
  append: async (records) => {
    const offsets = []
    for (const record of records) offsets.push(await call('append', bytes(record)))
    await call('onDrain')
    return offsets
  },
  transaction: async (records) => {
    const offsets = await call('appendTransaction', records.map(bytes))
    await call('onDrain')
    return offsets
  },
  delete: async (offsets) => {
    for (const offset of offsets) await call('del', offset)
    await call('onDeletesFlushed')
  },
  get: async (offset) => {
    try {
      return (await call('get', offset)).toString('hex')
    } catch (error) {
      return { code: error.code }
    }
  },
  stream: (options) =>
    new Promise((done, fail) => {
      const seen = []
      log.stream(options).pipe({
        paused: false,
        write: ({ offset, value }) => seen.push([offset, value && value.toString('hex')]),
        end: (error) => (error ? fail(error) : done(seen)),
      })
    }),
  since: async () => log.since.value,
  compact: () => call('compact'),
}

async function main() {
  await ready()
  const answers = []
  for (const [name, ...args] of commands) answers.push((await actions[name](...args)) ?? null)
  await call('close')
  process.stdout.write(JSON.stringify(answers))
}
main().catch((error) => {
  console.error(error)
  process.exit(1)
})
