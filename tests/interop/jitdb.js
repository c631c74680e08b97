// Asks jitdb about a log: `node jitdb.js FILE INDEX_FOLDER < questions`, one JSON question a line, one JSON answer each:
//   {where, descending, arrival, start, limit, records} -> {total, offsets} or, with `records`, {total, records}
//   where: null, ["equal", path, value], ["and" | "or", where...], ["gt" | "gte" | "lt" | "lte", number, index]
const AsyncLog = require('async-append-only-log')
const JITDB = require('jitdb')
const operators = require('jitdb/operators')
const [file, folder] = process.argv.slice(2)
const questions = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean).map(JSON.parse)

const log = AsyncLog(file, { blockSize: 65536 })
const db = JITDB(log, folder)

function operation([name, ...args]) {
  if (name === 'equal') return operators.slowEqual(...args)
  if (name === 'and' || name === 'or') return operators[name](...args.map(operation))
  return operators[name](...args)
}

async function ask({ where, descending, arrival, start, limit, records }) {
  const begin = () => [operators.fromDB(db), where && operators.where(operation(where))] // modifiers change what they get
  const total = await operators.query(...begin(), operators.count(), operators.toPromise())
  const parts = begin()
  if (descending) parts.push(operators.descending())
  if (arrival) parts.push(operators.sortByArrival())
  if (start) parts.push(operators.startFrom(start))
  if (limit) parts.push(operators.paginate(limit))
  if (!records) parts.push(operators.asOffsets())
  const answer = await operators.query(...parts, operators.toPromise())
  const found = limit ? answer.results : answer
  return records ? { total, records: found } : { total, offsets: found }
}

async function main() {
  await new Promise((done) => db.onReady(done))
  const answers = []
  for (const question of questions) answers.push(JSON.stringify(await ask(question)) + '\n')
  process.stdout.write(answers.join(''), () => log.close(() => {})) // it ends when its indexes are saved
}
main().catch((error) => {
  console.error(error)
  process.exit(1)
})
