import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { NO_USAGE } from '../../src/kernel/usage.ts'
import type { CallClosing, Settled } from '../../src/ledger/call.ts'
import { NOTHING_RECORDED } from '../../src/ledger/call-columns.ts'
import type { ChildCall, DeferredObject } from '../../src/ledger/deferred.ts'
import type { Metered } from '../../src/metering/meter.ts'
import { type ObjectBillDependencies, ObjectBills } from '../../src/objects/object-bills.ts'
import { versionAt } from '../../src/pricing/price-book.ts'
import { shippedBook } from '../../src/pricing/price-list.ts'
import { createLogLines } from '../support/log-lines.ts'
import { test } from '../support/suite.ts'

const { id: versionId, entry } = versionAt(shippedBook(), Date.now())

const batch: DeferredObject = {
  ...{ surface: 'messages', scope: '', objectId: 'msgbatch_1', kind: 'message_batch' },
  call: {
    ...NOTHING_RECORDED,
    ...{ requestId: 'req_1', state: 'deferred', surface: 'messages', priceVersion: versionId },
    ...{ holdNanos: 700n, holdListNanos: 900n },
    rating: JSON.stringify({
      ...{ surface: 'messages', modelAsked: null, endpoint: '/v1/messages', regional: false, batch: true },
      discount: '0',
    }),
  },
}

const SECRET = 'svc_live_secret'

const ended = {
  ...{ containerIds: [], inputKnown: true, outputKnown: true },
  usage: { stopReason: 'ended' },
  requestsFor: '/v1/messages',
} as unknown as Metered

const lineOf = (model: string) =>
  JSON.stringify({
    custom_id: model,
    result: {
      type: 'succeeded',
      message: {
        type: 'message',
        model,
        stop_reason: 'end_turn',
        usage: { input_tokens: 9, output_tokens: 5 },
      },
    },
  })

function bench(answer: (closing: CallClosing) => Settled | null, openChildren: readonly string[] = []) {
  const story: string[] = []
  const opened: ChildCall[] = []
  const store = {
    readPriceVersion: async () => JSON.stringify(entry),
    async openChildren(children: readonly ChildCall[]) {
      opened.push(...children)
      story.push(`${children.length} opened`)
    },
    listOpenChildren: async () =>
      openChildren.map((requestId) => ({ requestId, holdNanos: 30n, holdListNanos: 40n })),
    async countBatchAsRequest() {},
  }
  const outbox = {
    async settle(closing: CallClosing) {
      const settled = answer(closing)
      const who = closing.requestId === 'req_1' ? 'batch' : (closing.modelServed ?? closing.requestId)
      const cost = closing.estimated ? ` at ${closing.costNanos}, estimated` : ''
      story.push(`${who} ${settled === null ? 'waits' : closing.state}${cost}`)
      return settled
    },
  }
  const { log } = createLogLines()
  const parts = {
    store,
    outbox,
    clock: systemClock,
    log,
    names: { redact: (text: string) => text.replaceAll(SECRET, '…') },
  }
  return { bills: new ObjectBills(parts as unknown as ObjectBillDependencies), story, opened }
}

const reading = (models: readonly string[]) => async (take: (chunk: Buffer) => void) => {
  take(Buffer.from(`${models.map(lineOf).join('\n')}\n`))
  return 'read' as const
}
const readResults = reading(['claude-haiku-5-5', 'claude-sonnet-4-5'])

const SETTLED: Settled = { balanceNanos: 0n, applied: true }

test('a batch is closed after all of its parts', async () => {
  const { bills, story } = bench(() => SETTLED)
  assert.equal(await bills.settleBatch(batch, ended, readResults, null), true)
  assert.deepEqual(story, [
    ...['2 opened', 'claude-haiku-5-5 settled', 'claude-sonnet-4-5 settled', 'batch settled'],
  ])
})

test('while a part of a batch waits for the store, the batch stays open and settles later', async () => {
  const { bills, story } = bench(({ modelServed }) => (modelServed === 'claude-haiku-5-5' ? null : SETTLED))
  assert.equal(await bills.settleBatch(batch, ended, readResults, null), false)
  assert.deepEqual(story, ['2 opened', 'claude-haiku-5-5 waits', 'claude-sonnet-4-5 settled'])
})

test('an object whose settlement waits for the store is not reported as settled', async () => {
  const { bills, story } = bench(() => null)
  await bills.giveUp(batch)
  assert.deepEqual(story, ['batch waits'])
  const usage = { ...NO_USAGE, modelServed: 'claude-haiku-5-5' }
  assert.equal(await bills.settle(batch, { ...ended, usage }, null), false)
  assert.equal(await bills.settleBatch(batch, ended, null, null), false)
})

test('a batch that is given up also closes its opened, unsettled parts', async () => {
  const { bills, story } = bench(() => SETTLED, ['req_1a', 'req_1b'])
  await bills.giveUp(batch)
  assert.deepEqual(story, [...['req_1a interrupted', 'req_1b interrupted', 'batch interrupted']])
})
