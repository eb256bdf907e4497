import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { answerRequest, type Simulation } from '../../simulator/answer-request.ts'
import { BatchStore } from '../../simulator/batch-store.ts'
import { FileStore } from '../../simulator/file-store.ts'
import { bodyBytesInFlightMax } from '../../simulator/limits.ts'
import { PromptCache } from '../../simulator/prompt-cache.ts'
import { ResponseStore } from '../../simulator/responses/response-store.ts'
import { createWorkClock } from '../../simulator/work-clock.ts'
import { test } from '../support/suite.ts'
import { chatBody } from './wire-client.ts'

function simulationWith(bytes: number): Simulation {
  return {
    messagesKey: undefined,
    chatKey: undefined,
    mode: 'instant',
    isDeterministic: false,
    memory: {
      promptCache: new PromptCache(),
      files: { messages: new FileStore(), chat: new FileStore() },
      responses: new ResponseStore(),
      batches: { messages: new BatchStore(), chat: new BatchStore() },
    },
    clock: createWorkClock(Date.now, 1),
    bodyBudget: { bytes },
    onRequest: undefined,
    onSocket: undefined,
  }
}

async function postTo(simulation: Simulation, body: string): Promise<{ status: number; held: number }> {
  const answered = Promise.withResolvers<unknown>()
  const server = createServer((req, res) => {
    const signal = new AbortController().signal
    answerRequest(simulation, { req, res, nth: 1, signal }).then(answered.resolve, answered.reject)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const response = await fetch(`http://127.0.0.1:${address.port}/v1/chat/completions`, {
    method: 'POST',
    body,
  })
  await response.text()
  await answered.promise
  server.closeAllConnections()
  server.close()
  return { status: response.status, held: simulation.bodyBudget.bytes }
}

test('a body is given back to the budget when its request was answered, well or badly', async () => {
  const body = JSON.stringify(chatBody())
  assert.deepEqual(await postTo(simulationWith(0), body), { status: 200, held: 0 })
  assert.deepEqual(await postTo(simulationWith(0), `${body} nonsense`), { status: 400, held: 0 })
})

test('when all bodies together are too much, the next one is refused as overload', async () => {
  const full = bodyBytesInFlightMax - 10
  assert.deepEqual(await postTo(simulationWith(full), JSON.stringify(chatBody())), {
    status: 503,
    held: full,
  })
})
