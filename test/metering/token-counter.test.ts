import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { countMessagesTokens, createTokenCounter } from '../../src/metering/token-counter.ts'

const counter = createTokenCounter()
after(() => counter.close())

test('text is counted with the o200k vocabulary, each piece on its own', async () => {
  // " tokenizer" is one token of o200k, "Hello" and "," are one each.
  assert.equal(await counter.countChat(['Hello, tokenizer']), 3)
  assert.equal(await counter.countChat(['Hello', 'Hello']), 2)
})

test('nothing is no token, and needs no counting', async () => {
  assert.equal(await counter.countChat([]), 0)
  assert.equal(await counter.countChat(['', '']), 0)
})

test('text that looks like a special token is counted as the text it is', async () => {
  assert.ok((await counter.countChat(['<|endoftext|>'])) > 1)
})

test('what is too long to be counted is taken at four characters a token', async () => {
  assert.equal(await counter.countChat(['x'.repeat(8 * 1024 * 1024)]), 2 * 1024 * 1024)
})

test('the thread ends when nobody has needed it for a while, and another one counts for whoever comes next', async () => {
  const letGo = Promise.withResolvers<void>()
  const ends: Promise<unknown>[] = []
  const onWorker = (worker: Worker) => {
    ends.push(once(worker, 'exit'))
    const terminate = worker.terminate.bind(worker)
    worker.terminate = () => {
      letGo.resolve()
      return terminate()
    }
  }
  process.on('worker', onWorker)
  const hasty = createTokenCounter(1)
  // Nothing but this test keeps the process: neither the thread nor its timer does.
  const awake = setInterval(() => {}, 1_000)
  try {
    const texts = ['Hello', 'Hello, tokenizer']
    assert.deepEqual(await Promise.all(texts.map((text) => hasty.countChat([text]))), [1, 3])
    assert.equal(ends.length, 1)
    await letGo.promise
    // The first one is still ending while the second begins.
    assert.deepEqual(await Promise.all(texts.map((text) => hasty.countChat([text]))), [1, 3])
    assert.equal(ends.length, 2)
    await ends[0]
  } finally {
    clearInterval(awake)
    process.off('worker', onWorker)
    await hasty.close()
  }
})

test('a thread that dies leaves nobody waiting, and the next one counts again', async () => {
  const born = once(process, 'worker') as Promise<[Worker]>
  const hapless = createTokenCounter()
  try {
    const first = hapless.countChat(['Hello, tokenizer'])
    const [worker] = await born
    await worker.terminate()
    assert.equal(await first, 4, 'at four characters a token')
    assert.equal(await hapless.countChat(['Hello, tokenizer']), 3)
  } finally {
    await hapless.close()
  }
})

test('Messages text is taken at 3.5 characters a token, rounded up', () => {
  assert.equal(countMessagesTokens(0), 0)
  assert.equal(countMessagesTokens(7), 2)
  assert.equal(countMessagesTokens(8), 3)
})
