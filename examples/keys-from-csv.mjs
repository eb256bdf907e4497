// Creates a key for each row of a file `name,team,monthly_budget_usd`, and prints `name,key`. Run it again after a failure: the same
// row has the same Idempotency-Key for 24 hours, so that no key is created twice.
//   node keys-from-csv.mjs keys.csv > secrets.csv
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const { TOLLGATE_URL, TOLLGATE_ADMIN_KEY } = process.env
const rows = readFileSync(process.argv[2], 'utf8').trim().split('\n').slice(1)

for (const row of rows) {
  const [name, team, budget] = row.split(',')
  const response = await fetch(`${TOLLGATE_URL}/v1/keys`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOLLGATE_ADMIN_KEY}`,
      'content-type': 'application/json',
      'idempotency-key': createHash('sha256').update(row).digest('hex'),
    },
    body: JSON.stringify({ name, monthly_budget_usd: Number(budget), metadata: { team } }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${name}: ${answer.error.message}`)
  // A repetition does not show the secret again.
  console.log(`${name},${answer.key ?? `created before as ${answer.id}`}`)
}
