import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { withDeadline } from '../support/deadline.ts'
import { readDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { bodyOf } from './gated-bench.ts'

/** A count at the gateway does not show the order of commits; the rows of admitted calls, open or ended, do. */

const CALLERS = 12
const ROUNDS = 8

class Tally {
  #count = 0
  #waiting: { readonly count: number; resolve(): void }[] = []

  get count(): number {
    return this.#count
  }

  add(): number {
    this.#count += 1
    for (const each of this.#waiting) if (each.count <= this.#count) each.resolve()
    this.#waiting = this.#waiting.filter((each) => each.count > this.#count)
    return this.#count
  }

  reaches(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#count >= count) resolve()
    else this.#waiting.push({ count, resolve })
    return withDeadline(promise, () => `${this.#count} of ${count}`)
  }
}

function hammer(url: string, key: string, sent: Tally, served: Tally) {
  const answers: { readonly number: number; readonly status: number }[] = []
  let over = false
  const callers = Array.from({ length: CALLERS }, async (_, i) => {
    const isMessages = i % 2 === 0
    while (!over) {
      const number = sent.add()
      const response = await fetch(url + (isMessages ? '/v1/messages' : '/v1/chat/completions'), {
        method: 'POST',
        headers: {
          ...(isMessages ? { 'x-api-key': key } : { authorization: `Bearer ${key}` }),
          'x-call': String(number),
          'x-simulator': 'tokens=3',
        },
        body: bodyOf(isMessages ? 'messages' : 'chat', 50, i % 3 === 0),
      })
      await response.arrayBuffer()
      answers.push({ number, status: response.status })
      if (response.status === 200) served.add()
    }
  })
  return {
    answers,
    async stop() {
      over = true
      await Promise.all(callers)
    },
  }
}

test('no call of a busy key is admitted after its revocation has been answered', async () => {
  const [sent, served] = [new Tally(), new Tally()]
  const upstreamNumbers: number[] = []
  await using bench = await startBillingBench(
    {},
    {
      onRequest: ({ headersRaw }) => {
        upstreamNumbers.push(Number(headersRaw[headersRaw.indexOf('x-call') + 1]))
      },
    },
  )
  const admitted = async (id: string) => {
    const ofKey = `WHERE key_id = '${id}'`
    const rows = await readDatabase(
      bench.gateway,
      `SELECT id FROM call ${ofKey} UNION SELECT id FROM hold ${ofKey} ORDER BY id`,
    )
    return rows.map((row) => row['id'])
  }
  let admittedInAll = 0
  for (let round = 0; round < ROUNDS; round++) {
    const { id, key } = await bench.gateway.createKey(`round ${round}`, {
      monthly_budget_usd: round % 2 === 0 ? null : 5,
    })
    const enough = served.reaches(served.count + CALLERS * 2 + round)
    const hammering = hammer(bench.gateway.url, key, sent, served)
    await enough
    await bench.gateway.revokeKey(id)
    const sentBefore = sent.count
    const admittedBefore = await admitted(id)
    await sent.reaches(sentBefore + CALLERS * 3)
    await hammering.stop()

    assert.deepEqual(await admitted(id), admittedBefore, 'a call was admitted after the answer')
    admittedInAll += admittedBefore.length
    const late = hammering.answers.filter(({ number }) => number > sentBefore)
    assert.ok(late.length >= CALLERS * 3)
    assert.ok(late.every(({ status }) => status === 401))
    assert.deepEqual(
      upstreamNumbers.filter((number) => number > sentBefore),
      [],
      'a call that was sent after the answer reached upstream',
    )
    assert.equal(upstreamNumbers.length, admittedInAll, 'each call that was admitted was sent once')
  }
  await bench.assertBalanced()
})
