// What JavaScript's jitdb answers where it is wrong: `node answers.js FOLDER`, one JSON object. The log in FOLDER is left there.
const path = require('path')
const bipf = require('bipf')
const AsyncLog = require('async-append-only-log')
const JITDB = require('jitdb')
const { query, fromDB, where, and, not, slowEqual, seqs, count, startFrom, live, toPromise, toAsyncIter } = require('jitdb/operators')
const folder = process.argv[2]
const call = (log, name, ...given) => new Promise((done, fail) => log[name](...given, (error, got) => (error ? fail(error) : done(got))))

async function main() {
  const log = AsyncLog(path.join(folder, 'log'), { blockSize: 4096 })
  const db = JITDB(log, path.join(folder, 'indexes'))
  await new Promise((done) => db.onReady(done))
  const values = [0, false, null, '', 1, '1', 'thread-a', 'thread-b', 'thread-a']
  const offsets = []
  for (const [n, a] of values.entries())
    offsets.push(await call(log, 'append', bipf.allocAndEncode({ a, timestamp: n, value: { timestamp: n, sequence: n } })))
  await call(log, 'onDrain')
  const ask = (...parts) => query(fromDB(db), ...parts, toPromise())
  const told = {}
  told.zero = await ask(where(slowEqual('a', 0)), count())
  told.false = (await ask(where(slowEqual('a', false)))).map((record) => record.a)
  told.one = await ask(where(slowEqual('a', 1)), count())
  told.textOne = (await ask(where(slowEqual('a', '1')))).map((record) => record.a)
  told.prefix = await ask(where(slowEqual('a', 'thread-a', { prefix: 32 })), count())
  told.startFrom = await ask(where(slowEqual('a', 'thread-b')), startFrom(5), count())
  await call(log, 'del', offsets[8])
  await call(log, 'onDeletesFlushed')
  told.deleted = await ask(count())
  told.notDeleted = await ask(where(not(slowEqual('a', 'thread-b'))), count())
  const limited = []
  log.stream({ limit: 0, values: false }).pipe({ paused: false, write: (offset) => limited.push(offset), end() {} })
  await new Promise((done) => setTimeout(done, 50))
  told.limitZero = limited.length
  told.appended = [await call(log, 'append', [bipf.allocAndEncode({ a: 'x' }), bipf.allocAndEncode({ a: 'y' })])].length
  await call(log, 'onDrain')
  await call(log, 'close')
  process.stdout.write(JSON.stringify(told), () => process.exit(0))
}
main().catch((error) => {
  console.error(error)
  process.exit(1)
})
