import assert from 'node:assert/strict'
import type { Buffer } from 'node:buffer'
import * as permitted from './permitted-differences.ts'
import type { Address, RawReply } from './raw-client.ts'
import { exchange } from './raw-client.ts'
import type { ScriptedUpstream } from './scripted-upstream.ts'
import type { ReceivedRequest, Script } from './upstream-script.ts'
import type { Bytes } from './wire-message.ts'
import { headerValues } from './wire-message.ts'

export type Observation = { reply: RawReply; received: ReceivedRequest }

export type Comparison = { direct: Observation; through: Observation }

export type ComparedCall = {
  upstream: ScriptedUpstream
  gateway: Address
  request: Bytes | readonly Bytes[]
  /** The script is created once for each of the two calls, so that each has its own pauses. */
  script: (request: ReceivedRequest) => Script
  /** The line that upstream must see instead of the client's credentials; undefined without any. */
  credentialLine?: string | undefined
  /** False for the plain pipe with which the harness tests itself. */
  addsOwnLines?: boolean
}

/** Makes one call directly and through the gateway, and asserts that they differ only as permitted. */
export async function compare(call: ComparedCall): Promise<Comparison> {
  const direct = await observe(call, call.upstream)
  const through = await observe(call, call.gateway)
  assertSameReply(direct, through)
  if (call.addsOwnLines !== false) assertOwnLines(through.reply)
  assertSameRequest(direct.received, through.received, call.credentialLine)
  return { direct, through }
}

async function observe(call: ComparedCall, address: Address): Promise<Observation> {
  const { upstream } = call
  const count = upstream.requestCount
  upstream.queue(call.script)
  const reply = await exchange(address, call.request)
  const arrived = upstream.requestCount - count
  const body = reply.body.subarray(0, 500).toString('latin1')
  assert.equal(arrived, 1, `upstream got ${arrived} requests; the reply is ${reply.statusLine} ${body}`)
  const received = upstream.requests.at(-1)
  assert.ok(received)
  return { reply, received }
}

function assertSameReply(direct: Observation, through: Observation): void {
  const sent = direct.reply
  const got = through.reply
  const clientVersion = direct.received.requestLine.endsWith('HTTP/1.0') ? '1.0' : '1.1'
  const hasTrailers = got.framing === 'chunked'
  assert.equal(permitted.statusCompared(got.statusLine), permitted.statusCompared(sent.statusLine))
  assert.deepEqual(
    permitted.replyLinesCompared(got.headerLines),
    permitted.replyLinesExpected(sent.headerLines, { hasTrailers }),
    'reply header lines',
  )
  assertSameBytes(got.body, sent.body, 'reply body')
  assertSameReplyFraming(sent, got, clientVersion)
  if (hasTrailers) {
    assert.deepEqual(
      permitted.trailerLinesCompared(got.trailerLines),
      sent.trailerLines.map(permitted.lineCompared),
      'reply trailers',
    )
  }
  const interim = clientVersion === '1.0' ? [] : sent.interim
  const compared = (heads: RawReply['interim']) =>
    heads.map((head) => [head.statusLine, ...head.headerLines.map(permitted.lineCompared)])
  assert.deepEqual(compared(got.interim), compared(interim), 'interim replies')
}

/** Chunks stay chunks and lengths lengths; only a body that ends with its connection is framed anew. */
function assertSameReplyFraming(sent: RawReply, got: RawReply, clientVersion: '1.0' | '1.1'): void {
  const streamed = clientVersion === '1.0' ? 'eof' : 'chunked'
  const framing = sent.framing === 'chunked' || sent.framing === 'eof' ? streamed : sent.framing
  assert.equal(got.framing, framing, 'reply framing')
  const ended = sent.ended === 'cut' ? 'cut' : framing === 'eof' ? 'closed' : 'complete'
  assert.equal(got.ended, ended, 'the end of the reply')
}

function assertOwnLines(got: RawReply): void {
  const ids = headerValues(got.headerLines, 'x-svc-request-id')
  assert.equal(ids.length, 1, 'one x-svc-request-id')
  assert.match(ids[0] ?? '', /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  const upstreamMs = headerValues(got.headerLines, 'x-svc-upstream-ms')
  assert.equal(upstreamMs.length, 1, 'one x-svc-upstream-ms')
  assert.match(upstreamMs[0] ?? '', /^\d+(\.\d+)?$/)
}

export function assertSameRequest(
  direct: ReceivedRequest,
  through: ReceivedRequest,
  credentialLine: string | undefined,
): void {
  assert.ok(through.complete, 'upstream got the whole request')
  const versionless = (line: string) => line.replace(/ HTTP\/1\.[01]$/, '')
  assert.equal(versionless(through.requestLine), versionless(direct.requestLine), 'method and target')
  assert.deepEqual(
    permitted.requestLinesCompared(through.headerLines),
    permitted.requestLinesExpected(direct.headerLines, credentialLine),
    'request header lines',
  )
  assertSameBytes(through.body, direct.body, 'request body')
  assertRequestFraming(direct, through)
}

function assertRequestFraming(direct: ReceivedRequest, through: ReceivedRequest): void {
  const lengths = headerValues(through.headerLines, 'content-length')
  const codings = headerValues(through.headerLines, 'transfer-encoding')
  assert.ok(lengths.length + codings.length <= 1, 'framed once')
  assert.equal(headerValues(through.headerLines, 'host').length, 1, 'one host')
  // A buffered chunked body may be sent with a length; one with a length must keep it.
  if (direct.framing === 'sized' && direct.body.length > 0) assert.equal(through.framing, 'sized')
  if (direct.framing === 'none') assert.equal(through.body.length, 0)
}

/** The message names the first different byte, since both bodies may have megabytes. */
export function assertSameBytes(got: Buffer, expected: Buffer, what: string): void {
  if (got.equals(expected)) return
  let at = 0
  while (at < got.length && at < expected.length && got[at] === expected[at]) at++
  const excerpt = (bytes: Buffer) => JSON.stringify(bytes.subarray(at, at + 60).toString('latin1'))
  assert.fail(
    `${what}: ${got.length} bytes instead of ${expected.length}, differing from byte ${at}: ` +
      `got ${excerpt(got)}, expected ${excerpt(expected)}`,
  )
}
