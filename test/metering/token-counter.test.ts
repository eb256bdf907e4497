import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { after, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { type Transferable, Worker } from 'node:worker_threads'
import { limits } from '../../src/kernel/limits.ts'
import type { CountOrder } from '../../src/metering/count-turns.ts'
import { createTokenCounter, type TokenCounter } from '../../src/metering/token-counter.ts'

/** A long timeout: a busy machine may take long to load the vocabulary. */
const PATIENT = { countMs: 120_000 }
const counter = createTokenCounter(PATIENT)
// Neither the thread nor its timers keep the process alive, so this timer does.
const awake = setInterval(() => {}, 1_000)
after(async () => {
  clearInterval(awake)
  await counter.close()
})

const chatBody = (text: string) =>
  Buffer.from(JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: text }] }))

/** A counter whose thread never gets its orders, and those orders. */
function startDeaf(t: TestContext): { deaf: TokenCounter; sent: CountOrder[] } {
  const sent: CountOrder[] = []
  t.mock.method(Worker.prototype, 'postMessage', (order: CountOrder) => sent.push(order))
  const deaf = createTokenCounter()
  t.after(() => deaf.close())
  return { deaf, sent }
}

test('text is counted with the o200k vocabulary, each piece on its own', async () => {
  // " tokenizer" is one token of o200k, "Hello" and "," are one each.
  assert.equal(await counter.countChat(['Hello, tokenizer']), 3)
  assert.equal(await counter.countChat(['Hello', 'Hello']), 2)
})

test('nothing is no token, and needs no counting', async () => {
  assert.equal(await counter.countChat([]), 0)
  assert.equal(await counter.countChat(['', '']), 0)
  assert.equal(await counter.countRequest('chat', []), 0)
  assert.equal(await counter.countRequest('chat', Buffer.alloc(0)), 0)
})

test('text that looks like a special token is counted as the text it is', async () => {
  assert.ok((await counter.countChat(['<|endoftext|>'])) > 1)
})

test('the prompt text of a body is counted by the surface it is for, however the body lies in memory', async () => {
  const body = chatBody('Hello, tokenizer')
  assert.equal(await counter.countRequest('chat', body), 3)
  const pieces = [body.subarray(0, 50), Buffer.alloc(0), body.subarray(50)]
  assert.equal(await counter.countRequest('chat', pieces), 3)
  assert.equal(await counter.countRequest('messages', chatBody('x'.repeat(350))), 100)
})

test('a body that is no JSON object is taken at four bytes a token', async () => {
  assert.equal(await counter.countRequest('chat', Buffer.from('p=Hello')), 2)
  assert.equal(await counter.countRequest('messages', Buffer.from('{"prompt":"x"')), 4)
})

test('a large body goes over in small copies, one at a time, and nothing of it is parsed here', async (t) => {
  const parse = t.mock.method(JSON, 'parse')
  const sizes: number[] = []
  let underWay = 0
  let mostUnderWay = 0
  const post = Worker.prototype.postMessage
  t.mock.method(
    Worker.prototype,
    'postMessage',
    function (this: Worker, order: CountOrder, list: Transferable[]) {
      if (order.kind === 'body') sizes.push(order.piece.length)
      mostUnderWay = Math.max(mostUnderWay, ++underWay)
      post.call(this, order, list)
    },
  )
  const onWorker = (worker: Worker) => worker.prependListener('message', () => underWay--)
  process.on('worker', onWorker)
  const watched = createTokenCounter(PATIENT)
  try {
    const body = chatBody('Hello, tokenizer'.padEnd(5 * limits.countedPieceBytes, ' again'))
    const slabs: Buffer[] = []
    for (let i = 0; i < body.length; i += 65_536) slabs.push(body.subarray(i, i + 65_536))
    assert.ok((await watched.countRequest('chat', slabs)) > 100_000)
    assert.equal(parse.mock.callCount(), 0)
    assert.equal(sizes.length, 6)
    assert.ok(sizes.every((bytes) => bytes <= limits.countedPieceBytes))
    assert.equal(
      sizes.reduce((sum, bytes) => sum + bytes),
      body.length,
    )
    assert.equal(mostUnderWay, 1)
    assert.equal(slabs[0]?.toString('latin1', 0, 8), '{"model"', 'what is sent is a copy')
  } finally {
    process.off('worker', onWorker)
    await watched.close()
  }
})

test('a short text that is asked for behind long ones is answered first', async () => {
  const order: string[] = []
  const long = [1, 2, 3].map(() => counter.countChat(['世'.repeat(64_000)]).then(() => order.push('long')))
  await counter.countChat(['Hello']).then(() => order.push('short'))
  assert.deepEqual(order, ['short'])
  await Promise.all(long)
})

test('hostile bodies of 31 MiB neither end the thread nor keep it from counting for others', async () => {
  const born: Worker[] = []
  const onWorker = (worker: Worker) => born.push(worker)
  process.on('worker', onWorker)
  const steady = createTokenCounter(PATIENT)
  const bytes = 31 * 1024 * 1024
  const bodies = {
    deep: Buffer.concat([Buffer.from('{"prompt":'), Buffer.alloc(bytes, '[')]),
    tiny: Buffer.concat([Buffer.from('{"prompt":['), Buffer.alloc(bytes, '"a",'), Buffer.from('"a"]}')]),
    endless: Buffer.concat([Buffer.from('{"prompt":"'), Buffer.alloc(bytes, '世'), Buffer.from('"}')]),
  }
  try {
    for (const [name, body] of Object.entries(bodies)) {
      const hostile = steady.countRequest(name === 'endless' ? 'messages' : 'chat', body)
      assert.equal(await steady.countChat(['Hello, tokenizer']), 3, name)
      assert.ok((await hostile) > 1_000_000, name)
    }
    assert.equal(born.length, 1)
  } finally {
    process.off('worker', onWorker)
    await steady.close()
  }
})

test('what is not counted in time is taken by its length, and the thread is told to give it up', async (t) => {
  const { deaf, sent } = startDeaf(t)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const body = chatBody('Hello, tokenizer')
  const both = Promise.all([deaf.countChat(['Hello']), deaf.countRequest('chat', body)])
  t.mock.timers.tick(limits.tokenCountMs - 1)
  assert.deepEqual(
    sent.map(({ kind }) => kind),
    ['texts', 'body'],
  )
  t.mock.timers.tick(1)
  assert.deepEqual(await both, [2, 5])
  assert.deepEqual(
    sent.slice(2).map(({ kind, id }) => ({ kind, id })),
    sent.slice(0, 2).map(({ id }) => ({ kind: 'drop', id })),
  )
})

test('of a body that was counted in part, only the rest is taken by its length', async (t) => {
  const born = once(process, 'worker') as Promise<[Worker]>
  const interrupted = createTokenCounter(PATIENT)
  try {
    // The first piece is nearly all image, which is no text.
    const image = 'x'.repeat(limits.countedPieceBytes)
    const body = Buffer.from(JSON.stringify({ image, prompt: 'y'.repeat(4_000) }))
    const counting = interrupted.countRequest('chat', body)
    const [worker] = await born
    const post = worker.postMessage.bind(worker)
    const second = Promise.withResolvers<CountOrder>()
    t.mock.method(worker, 'postMessage', (order: CountOrder) => second.resolve(order))
    assert.equal((await second.promise).kind, 'body')
    post({ kind: 'drop', id: 0 })
    await worker.terminate()
    assert.equal(await counting, Math.ceil((body.length - limits.countedPieceBytes) / 4))
  } finally {
    await interrupted.close()
  }
})

test('when too many wait, a call is taken by its length at once', async (t) => {
  const { deaf, sent } = startDeaf(t)
  const waiting = Array.from({ length: limits.tokenCountsWaitingMax }, () => deaf.countChat(['Hello']))
  assert.equal(await deaf.countChat(['Hello, tokenizer']), 5)
  assert.equal(sent.length, limits.tokenCountsWaitingMax)
  await deaf.close()
  await Promise.all(waiting)
})

test('all who wait when it closes get a rough count, and so does whoever asks later', async (t) => {
  const { deaf, sent } = startDeaf(t)
  const body = chatBody('Hello, tokenizer')
  const waiting = [deaf.countChat(['Hello']), deaf.countRequest('messages', body)]
  await deaf.close()
  assert.deepEqual(await Promise.all(waiting), [2, 5])
  assert.equal(await deaf.countChat(['世世世']), 3)
  assert.equal(await deaf.countRequest('chat', body), 5)
  const large = chatBody('x'.repeat(limits.roughLookBytesMax))
  assert.equal(await deaf.countRequest('chat', large), Math.ceil(large.length / 4))
  assert.equal(sent.length, 2, 'nothing was sent over any more')
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
  const hasty = createTokenCounter({ ...PATIENT, idleMs: 1 })
  try {
    const texts = ['Hello', 'Hello, tokenizer']
    assert.deepEqual(await Promise.all(texts.map((text) => hasty.countChat([text]))), [1, 3])
    assert.equal(ends.length, 1)
    await letGo.promise
    // The first thread is still ending while the second begins.
    assert.deepEqual(await Promise.all(texts.map((text) => hasty.countChat([text]))), [1, 3])
    assert.equal(ends.length, 2)
    await ends[0]
  } finally {
    process.off('worker', onWorker)
    await hasty.close()
  }
})

test('a thread that dies leaves nobody waiting, and the next one counts again', async () => {
  const born = once(process, 'worker') as Promise<[Worker]>
  const hapless = createTokenCounter(PATIENT)
  try {
    const body = chatBody('Hello, tokenizer')
    const first = [hapless.countChat(['Hello, tokenizer']), hapless.countRequest('chat', body)]
    const [worker] = await born
    await worker.terminate()
    assert.deepEqual(await Promise.all(first), [5, 5])
    assert.equal(await hapless.countChat(['Hello, tokenizer']), 3)
  } finally {
    await hapless.close()
  }
})

test('where no thread can be started, text is taken by its length, and nothing fails later', async (t) => {
  const threads = createRequire(import.meta.url)('node:worker_threads') as { Worker: unknown }
  const own = Worker
  const replace = (other: unknown) => {
    threads.Worker = other
    syncBuiltinESMExports()
  }
  t.after(() => replace(own))
  t.mock.timers.enable({ apis: ['setTimeout'] })
  // As Node does where the system has no thread left.
  replace(function fail() {
    throw new Error('ERR_WORKER_INIT_FAILED')
  })
  const poor = createTokenCounter()
  assert.equal(await poor.countChat(['Hello, tokenizer']), 5)
  assert.ok((await poor.countRequest('chat', chatBody('Hello, tokenizer'))) > 0)
  poor.warm()
  t.mock.timers.tick(limits.tokenCountMs)
  await poor.close()
})

test('an idle thread keeps no process alive', async () => {
  const module = new URL('../../src/metering/token-counter.ts', import.meta.url).href
  const program = `import(${JSON.stringify(module)}).then(async ({ createTokenCounter }) => {
    const awake = setInterval(() => {}, 1_000)
    console.log(await createTokenCounter({ countMs: 120_000, idleMs: 2 ** 30 }).countChat(['Hello']))
    clearInterval(awake)
  })`
  const { stdout } = await promisify(execFile)(process.execPath, ['--eval', program], { timeout: 120_000 })
  assert.equal(stdout, '1\n')
})
