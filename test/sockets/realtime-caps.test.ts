import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { type PlayedUpstream, playUpstream, usageOf } from './played-upstream.ts'

const SOCKETS = 50
const WRITTEN = 'conversation.item.input_audio_transcription.completed'

/** Answers each message with a turn that is over at once. */
async function playTurns(session: object): Promise<PlayedUpstream> {
  const upstream = await playUpstream({ type: 'session.created', session })
  upstream.answer = (message, say) => {
    const number = upstream.reached.length
    const [response, item_id] = [{ id: `resp_${number}`, status: 'completed' }, `item_${number}`]
    if (dig(message, 'type') === 'response.create') {
      say({ type: 'response.created', response })
      say({ type: 'response.done', response: { ...response, usage: usageOf(200, 100) } })
    } else {
      say({ type: 'input_audio_buffer.committed', item_id })
      say({ type: WRITTEN, item_id, usage: { type: 'duration', seconds: 600 } })
    }
  }
  return upstream
}

interface Kind {
  readonly path: string
  readonly session: object
  readonly message: string
  readonly ends: string
  readonly costUsd: number
  /** No cap is passed by more than this hold. */
  readonly holdUsd: number
}

const KINDS: Readonly<Record<string, Kind>> = {
  responses: {
    path: '/v1/realtime?model=gpt-realtime',
    session: { type: 'realtime', model: 'gpt-realtime' },
    ...{ message: 'response.create', ends: 'response.done', costUsd: 0.0128, holdUsd: 0.0128 },
  },
  transcripts: {
    path: '/v1/realtime?intent=transcription',
    session: { type: 'transcription', audio: { input: { transcription: { model: 'whisper-1' } } } },
    ...{ message: 'input_audio_buffer.commit', ends: WRITTEN, costUsd: 0.06, holdUsd: 0.09 },
  },
}

/** One turn on a socket of its own. */
async function turn(upstream: PlayedUpstream, key: string, { path, message, ends }: Kind): Promise<boolean> {
  const socket = await upstream.open(path, key).catch((error: Error) => error)
  if (socket instanceof Error) {
    assert.match(socket.message, /402/)
    return false
  }
  socket.send({ type: message })
  const isLast = (event: unknown) => [ends, 'error'].includes(String(dig(event, 'type')))
  const last = (await socket.takeUntil(isLast)).at(-1)
  socket.ws.close()
  await socket.closed()
  if (dig(last, 'type') === ends) return true
  assert.equal(dig(last, 'error.code'), 'budget_exceeded')
  return false
}

for (const what in KINDS)
  test(`${what} on fifty sockets of one key pass its cap by at most one, and none is refused while there is room`, async () => {
    const kind = KINDS[what]
    assert.ok(kind)
    const upstream = await playTurns(kind.session)
    const capUsd = 3.5 * kind.costUsd
    const { id, key } = await upstream.gateway.createKey('capped', { monthly_budget_usd: capUsd })
    const outcomes = await Promise.all(Array.from({ length: SOCKETS }, () => turn(upstream, key, kind)))
    const served = outcomes.filter((isServed) => isServed).length
    await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
    const spentUsd = await upstream.spentUsd(id)
    assert.equal(served, upstream.reached.length)
    assert.equal(Math.round(spentUsd / kind.costUsd), served)
    assert.ok(spentUsd >= capUsd && spentUsd < capUsd + kind.holdUsd, `${spentUsd} dollars of ${capUsd}`)
    await upstream.close()
  })
