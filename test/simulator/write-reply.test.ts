import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { mock, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Behaviours } from '../../simulator/behaviours.ts'
import type { PaceMode } from '../../simulator/pace.ts'
import { eventsReply, jsonReply } from '../../simulator/reply.ts'
import { dataFrame, type Frame } from '../../simulator/sse.ts'
import { type Outcome, writeReply } from '../../simulator/write-reply.ts'
import { test } from '../support/suite.ts'

interface Stage {
  readonly res: ServerResponse
  readonly sent: ClientRequest
  readonly response: Promise<IncomingMessage>
  readonly signal: AbortSignal
}

/** One request that has arrived at a server and waits for its reply. */
async function setStage(context: TestContext): Promise<Stage> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const sent = get({ port: address.port, host: '127.0.0.1' })
  sent.on('error', () => undefined)
  const response = new Promise<IncomingMessage>((resolve) => sent.on('response', resolve))
  const [, res] = await once(server, 'request')
  const leaving = new AbortController()
  res.on('close', () => leaving.abort())
  return { res, sent, response, signal: leaving.signal }
}

function play(
  stage: Stage,
  frames: Iterable<Frame>,
  behaviours: Behaviours,
  mode: PaceMode,
): Promise<Outcome> {
  const reply = eventsReply(frames, () => dataFrame({}), { firstByteMs: 60_000, tokensPerSecond: 1 }, [])
  return writeReply({ ...stage, behaviours, mode, acceptEncoding: undefined }, reply)
}

/** Far more frames than any buffer between the two ends can hold. */
function* endless(pulled: { count: number }): Generator<Frame> {
  const filler = 'x'.repeat(10_000)
  while (pulled.count < 1_000_000) {
    pulled.count += 1
    yield dataFrame({ filler })
  }
}

/** Waits until a number stands still for many turns of the event loop. */
async function settled(read: () => number): Promise<number> {
  let last = read()
  for (let still = 0; still < 200; still += 1) {
    await nextTurn()
    if (read() !== last) still = 0
    last = read()
  }
  return last
}

test('a client that does not read stops the generation, and one that reads again resumes it', async (context) => {
  const stage = await setStage(context)
  const pulled = { count: 0 }
  const outcome = play(stage, endless(pulled), {}, 'instant')
  const response = await stage.response
  const stalled = await settled(() => pulled.count)
  assert.ok(stalled < 10_000, `${stalled} events of 10 kB were generated for nobody`)
  for (let chunks = 0; pulled.count === stalled; chunks += 1) {
    assert.ok(chunks < 100_000)
    if (response.read() === null) await nextTurn()
  }
  stage.sent.destroy()
  assert.equal(await outcome, 'left')
})

test('a client that leaves ends the generation at once', async (context) => {
  const stage = await setStage(context)
  const pulled = { count: 0 }
  const outcome = play(stage, endless(pulled), {}, 'instant')
  const response = await stage.response
  response.on('error', () => undefined)
  response.once('data', () => stage.sent.destroy())
  assert.equal(await outcome, 'left')
  const { count } = pulled
  assert.equal(await settled(() => pulled.count), count)
})

test('a client that leaves ends a wait that would last for minutes', async (context) => {
  const stage = await setStage(context)
  const outcome = play(stage, [dataFrame({}), dataFrame({})], { dripMs: 600_000 }, 'instant')
  await stage.response
  stage.sent.destroy()
  assert.equal(await outcome, 'left')
})

test('a realistic pace waits for the first byte and for each token', async (context) => {
  const stage = await setStage(context)
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const outcome = play(stage, [dataFrame({ first: 1 }, 5), dataFrame({ last: 1 }, 2)], {}, 'realistic')
  mock.timers.tick(59_999)
  await nextTurn()
  assert.equal(stage.res.headersSent, false)
  mock.timers.tick(1)
  await nextTurn()
  assert.equal(stage.res.headersSent, true)
  mock.timers.tick(5_000)
  const response = await stage.response
  response.setEncoding('utf8')
  const [first] = await once(response, 'data')
  assert.equal(first, 'data: {"first":1}\n\n')
  mock.timers.tick(1_999)
  assert.equal(await Promise.race([outcome, settled(() => 0)]), 0)
  mock.timers.tick(1)
  const [last] = await once(response, 'data')
  assert.equal(last, 'data: {"last":1}\n\n')
  assert.equal(await outcome, 'complete')
})

test('a realistic pace writes a whole body as long as its tokens would have taken', async (context) => {
  const stage = await setStage(context)
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const pace = { firstByteMs: 1_000, tokensPerSecond: 10 }
  const reply = jsonReply(200, { answer: 1 }, { pace, tokens: 50 })
  const outcome = writeReply(
    { ...stage, behaviours: {}, mode: 'realistic', acceptEncoding: undefined },
    reply,
  )
  mock.timers.tick(5_999)
  await nextTurn()
  assert.equal(stage.res.headersSent, false)
  mock.timers.tick(1)
  assert.equal(await outcome, 'complete')
  assert.equal((await stage.response).headers['content-length'], '12')
})
