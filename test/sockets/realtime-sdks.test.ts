import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setDefaultCACertificates } from 'node:tls'
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession } from '@openai/agents/realtime'
import type OpenAI from 'openai'
import { OpenAIRealtimeWebSocket as NativeRealtime } from 'openai/realtime/websocket'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { ConversationItem } from 'openai/resources/realtime/realtime'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { dig } from '../simulator/dig.ts'
import { startSecureFront } from '../simulator/secure-front.ts'
import { localPair } from '../support/certificates.ts'
import { after, before, test } from '../support/suite.ts'
import { splitFrames } from './raw-bench.ts'
import { startTappedGateway, type TappedGateway } from './tapped-gateway.ts'

type Front = Awaited<ReturnType<typeof startSecureFront>>

/** The SDKs speak to the simulator, which gives the same conversation the same bytes, directly and through the gateway. */
let simulator: Simulator
let tapped: TappedGateway
let front: Front
let fronts: readonly [Front, Front]
before(async () => {
  setDefaultCACertificates([localPair.cert])
  simulator = await startSimulator({ deterministic: true })
  tapped = await startTappedGateway(simulator)
  front = await startSecureFront(simulator)
  fronts = [front, await startSecureFront(tapped.front, tapped.gateway.apiKey)]
})
after(async () => {
  for (const { close } of fronts) close()
  await tapped[Symbol.asyncDispose]()
  await simulator.close()
})

/** Asserts that a client gets the same events both ways, and that the gateway passed on each frame of both sides as it was. */
async function bothWays(converse: (client: OpenAI) => Promise<readonly unknown[]>): Promise<void> {
  const direct = await converse(fronts[0].client)
  const through = await converse(fronts[1].client)
  assert.ok(direct.length > 0)
  assert.deepEqual(through, direct)
  const { fromClient, fromUpstream } = await tapped.takeSame()
  assert.ok(splitFrames(fromClient).length >= 2 && splitFrames(fromUpstream).length >= 2)
}

const sound = (ms: number, byte = 1) => Buffer.alloc(ms * 48, byte).toString('base64')
const item: ConversationItem = {
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text: 'Hello.' }],
}

test('OpenAIRealtimeWS: asked for, spoken to and written down', () =>
  bothWays(async (client) => {
    const realtime = new OpenAIRealtimeWS({ model: 'gpt-realtime', options: front.options }, client)
    const events: unknown[] = []
    realtime.on('event', (event) => events.push(event))
    await new Promise((resolve) => realtime.once('session.created', resolve))
    const heard = async (type: string) => {
      while (!events.some((event) => dig(event, 'type') === type))
        await new Promise((resolve) => realtime.once('event', resolve))
    }
    realtime.send({ type: 'conversation.item.create', item })
    realtime.send({ type: 'response.create', response: { output_modalities: ['text'] } })
    await heard('response.done')
    const asked = events.splice(0)
    const transcription = { model: 'gpt-4o-transcribe' }
    realtime.send({
      type: 'session.update',
      session: { type: 'realtime', audio: { input: { transcription } } },
    })
    await heard('session.updated')
    realtime.send({ type: 'input_audio_buffer.append', audio: sound(600) })
    realtime.send({ type: 'input_audio_buffer.append', audio: sound(250, 0) })
    await heard('response.done')
    await heard('conversation.item.input_audio_transcription.completed')
    const closed = once(realtime.socket, 'close')
    realtime.close()
    await closed
    // The transcript comes beside the answer, in no fixed order, and ids are given as events leave.
    const spoken = events.map((event) => String(dig(event, 'type')))
    return [...asked, ...spoken.sort()]
  }))

test('OpenAIRealtimeWebSocket: the key in a subprotocol, as in a browser', () =>
  bothWays(async (client) => {
    const realtime = new NativeRealtime({ model: 'gpt-realtime' }, client)
    const events: unknown[] = []
    realtime.on('event', (event) => events.push(event))
    await new Promise((resolve) => realtime.once('session.created', resolve))
    const done = new Promise((resolve) => realtime.once('response.done', resolve))
    realtime.send({ type: 'conversation.item.create', item })
    realtime.send({ type: 'response.create', response: { output_modalities: ['text'] } })
    await done
    const closed = new Promise((resolve) => realtime.socket.addEventListener('close', resolve))
    realtime.close()
    await closed
    return [realtime.socket.protocol, ...events]
  }))

test('RealtimeSession of the Agents SDK: asked in words and answered', () =>
  bothWays(async (client) => {
    const url = `${client.baseURL.replace('https:', 'wss:')}/realtime?model=gpt-realtime`
    const transport = new OpenAIRealtimeWebSocket({ url })
    const agent = new RealtimeAgent({ name: 'Greeter', instructions: 'Greet.' })
    const session = new RealtimeSession(agent, { transport, model: 'gpt-realtime', tracingDisabled: true })
    const events: unknown[] = []
    transport.on('*', (event: unknown) => events.push(event))
    await session.connect({ apiKey: client.apiKey ?? '' })
    const done = new Promise((resolve) => transport.once('turn_done', resolve))
    session.sendMessage('Hello.')
    await done
    session.close()
    // The agent changes the session beside its messages, in no fixed order.
    return events.map((event) => dig(event, 'type')).filter((type) => type !== 'session.updated')
  }))

test('ResponsesWS: two turns, side by side in lanes', () =>
  bothWays(async (client) => {
    const responses = new ResponsesWS(client, front.options)
    const events: unknown[] = []
    const lanes = ['a', 'b']
    for await (const event of responses.stream()) {
      if (event.type === 'open')
        for (const stream_id of lanes)
          responses.send({ type: 'response.create', model: 'gpt-4o', input: 'Hello.', stream_id })
      if (event.type !== 'message') continue
      events.push(event.message)
      const ended = events.filter((each) => dig(each, 'type') === 'response.completed')
      if (ended.length === lanes.length) break
    }
    responses.close()
    // Lanes are written side by side, in no fixed order.
    return lanes.flatMap((lane) => events.filter((event) => dig(event, 'stream_id') === lane))
  }))
