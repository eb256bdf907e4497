import assert from 'node:assert/strict'
import type { RawReply } from './raw-client.ts'
import type { Surface } from './surfaces.ts'
import { headerValues } from './wire-message.ts'

/** Asserts a response that the gateway itself made, in the shape that the surface's SDKs understand. */
export function assertOwnError(reply: RawReply, surface: Surface, status: number, code?: string): void {
  const text = reply.body.toString('latin1')
  assert.equal(reply.status, status, `${reply.statusLine} ${text}`)
  assert.equal(reply.ended, 'complete')
  const [requestId = ''] = headerValues(reply.headerLines, 'x-svc-request-id')
  assert.match(requestId, /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.match(headerValues(reply.headerLines, 'content-type')[0] ?? '', /^application\/json/)
  const json: unknown = JSON.parse(text)
  const error = member(json, 'error')
  assert.equal(typeof member(error, 'message'), 'string')
  assert.equal(typeof member(error, 'type'), 'string')
  assert.equal(typeof member(error, 'code'), 'string')
  if (code !== undefined) assert.equal(member(error, 'code'), code)
  if (surface.name === 'messages') {
    assert.equal(member(json, 'type'), 'error')
    assert.equal(member(json, 'request_id'), requestId)
    assert.deepEqual(headerValues(reply.headerLines, 'request-id'), [requestId])
  } else {
    assert.ok(error !== null && typeof error === 'object' && 'param' in error)
    assert.deepEqual(headerValues(reply.headerLines, 'x-request-id'), [requestId])
  }
}

function member(value: unknown, name: string): unknown {
  assert.ok(value !== null && typeof value === 'object', `no object with ${name}`)
  return (value as Record<string, unknown>)[name]
}
