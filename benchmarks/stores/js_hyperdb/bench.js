// node bench.js FOLDER KEYS LOOKUPS: what the JavaScript hyperdb takes for the history of benchmarks/hyperdb.py; JSON.
const hyperdb = require('hyperdb')

const [folder, keys, lookups] = [process.argv[2], +process.argv[3], +process.argv[4]]
const key = (number) => `dir${number % 100}/key${number}`
const asked = (run) => new Promise((resolve, reject) => run((error, found) => (error ? reject(error) : resolve(found))))
const microseconds = async (count, run) => {
  const begin = process.hrtime.bigint()
  await run()
  return Number(process.hrtime.bigint() - begin) / 1e3 / count
}

async function main () {
  const figures = {}
  let db = hyperdb(folder, { valueEncoding: 'binary' })
  await asked((done) => db.ready(done))
  figures.batch = await microseconds(keys, async () => {
    for (let begin = 0; begin < keys; begin += 1000) {
      const batch = []
      for (let number = begin; number < begin + 1000; number++) {
        batch.push({ type: 'put', key: key(number), value: Buffer.from(`value ${number}`) })
      }
      await asked((done) => db.batch(batch, done))
    }
  })
  figures.put = await microseconds(200, async () => {
    for (let number = 0; number < 200; number++) {
      await asked((done) => db.put(`dir${number % 100}/new${number}`, Buffer.from('x'), done))
    }
  })
  db = hyperdb(folder, { valueEncoding: 'binary' })
  await asked((done) => db.ready(done))
  figures.get = await microseconds(lookups, async () => {
    for (let number = 0; number < lookups; number++) {
      const found = await asked((done) => db.get(key((number * 7919) % keys), done))
      if (found.length !== 1) throw new Error('a key is missing')
    }
  })
  const begin = process.hrtime.bigint()
  const listed = await asked((done) => db.list('dir7', done))
  figures.list = Number(process.hrtime.bigint() - begin) / 1e3 / listed.length
  console.log(JSON.stringify(figures))
  process.exit(0)
}

main()
