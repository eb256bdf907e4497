import assert from 'node:assert/strict'
import { assertOwnAnswer, type Pair } from '../support/pair.ts'
import { connect, type RawConnection, type RawReply } from '../support/raw-client.ts'
import { type Surface, surfaces } from '../support/surfaces.ts'
import type { ReceivedRequest } from '../support/upstream-script.ts'
import type { Bytes } from '../support/wire-message.ts'
import { headerValues } from '../support/wire-message.ts'

export type Attack = {
  bytes: Bytes | readonly Bytes[]
  /** The method of the attack, if its reply must be read as one to HEAD or CONNECT. */
  method?: string
}

export type Outcome = { reply: RawReply; client: RawConnection; reached: ReceivedRequest[] }

let serial = 0

export async function attack(pair: Pair, { bytes, method }: Attack): Promise<Outcome> {
  const count = pair.upstream.requestCount
  const client = await connect(pair.gateway)
  const reply = await client.request(bytes, method === undefined ? {} : { method })
  const reached = pair.upstream.requests.slice(
    pair.upstream.requests.length - (pair.upstream.requestCount - count),
  )
  return { reply, client, reached }
}

/** The bytes are refused, the connection closes, nothing goes upstream, and other clients are served. */
export async function assertRefusedAndClosed(...[pair, bytes, statuses]: Refused): Promise<RawReply> {
  const { reply, client } = await attackRefused(pair, bytes, statuses)
  await client.closed()
  client.leave()
  await assertOthersServed(pair)
  return reply
}

/** Nothing goes upstream; if the connection stays open, its next request gets its own reply. */
export async function assertRefused(...[pair, bytes, statuses]: Refused): Promise<RawReply> {
  const { reply, client } = await attackRefused(pair, bytes, statuses)
  await assertSameConnectionServed(pair, client, reply)
  await assertOthersServed(pair)
  return reply
}

type Refused = [pair: Pair, bytes: Bytes | readonly Bytes[], statuses?: readonly number[]]

async function attackRefused(...[pair, bytes, statuses = [400]]: Refused): Promise<Outcome> {
  const before = pair.upstream.receivedBytes
  const outcome = await attack(pair, { bytes })
  const { reply } = outcome
  assert.ok(statuses.includes(reply.status), `${reply.statusLine} instead of ${statuses.join(' or ')}`)
  assertOurs(reply)
  assert.equal(pair.upstream.receivedBytes, before, 'upstream got some of its bytes')
  return outcome
}

/** Our own replies have a request id and reveal nothing about the gateway's code. */
export function assertOurs(reply: RawReply): void {
  const [id = ''] = headerValues(reply.headerLines, 'x-svc-request-id')
  assert.match(id, /^req_[0-9A-HJKMNP-TV-Z]{26}$/, `${reply.statusLine} ${reply.headerLines.join(' | ')}`)
  const text = reply.body.toString('latin1')
  assert.ok(!/\bat .+:\d+:\d+|node_modules|provider-key/.test(text), text)
}

/** A connection that stays open must be in step: its next request is read as its own. */
export async function assertSameConnectionServed(
  pair: Pair,
  client: RawConnection,
  reply: RawReply,
): Promise<void> {
  const closing = headerValues(reply.headerLines, 'connection').join().toLowerCase() === 'close'
  if (closing) {
    await client.closed()
  } else {
    const [surface] = surfaces
    assert.ok(surface)
    const mark = `same-${serial++}`
    assertOwnAnswer(await client.request(pair.ownCall(surface, mark)), mark)
  }
  client.leave()
}

export async function assertOthersServed(pair: Pair, those: readonly Surface[] = surfaces): Promise<void> {
  for (const surface of those) await pair.assertServes(surface, `other-${serial++}`)
  assert.deepEqual(pair.upstream.malformed, [], 'upstream got bytes that are not a request')
}
