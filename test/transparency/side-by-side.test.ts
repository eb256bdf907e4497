import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { after, before, test } from '../support/suite.ts'

/**
 * Sockets read into one buffer, and bodies that wait share their memory one after the other. A byte that is used
 * longer than it is valid would turn up in another call, so many large calls run at once, each unlike all others.
 */

const KINDS = ['json with a length', 'json in chunks', 'events', 'text with a length'] as const
type Kind = (typeof KINDS)[number]

/** A text of some 400 kB to 1.2 MB, different for each seed. */
function textOf(seed: number): string {
  let text = ''
  for (let line = 0; text.length < 400_000 + (seed % 9) * 100_000; line++) text += `${seed}:${line} passes. `
  return text
}

const USAGE = { input_tokens: 1, output_tokens: 1 }

function replyBody(kind: Kind, seed: number): string {
  if (kind === 'text with a length') return textOf(seed)
  if (kind === 'events') {
    const lines = textOf(seed).match(/.{1,30000}/g) ?? []
    return lines.map((text) => `event: content\ndata: ${JSON.stringify({ text })}\n\n`).join('')
  }
  return JSON.stringify({ id: `m${seed}`, model: 'claude-haiku-5-5', content: textOf(seed), usage: USAGE })
}

const TYPES: Readonly<Record<Kind, string>> = {
  'json with a length': 'application/json',
  'json in chunks': 'application/json',
  events: 'text/event-stream',
  'text with a length': 'text/plain',
}

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

const upstream = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const kind = String(request.headers['x-kind']) as Kind
    const body = Buffer.from(replyBody(kind, Number(request.headers['x-seed'])))
    response.setHeader('content-type', TYPES[kind])
    response.setHeader('x-body-hash', sha256(Buffer.concat(parts)))
    if (kind.endsWith('a length')) response.setHeader('content-length', body.length)
    for (let at = 0; at < body.length; at += 70_001) response.write(body.subarray(at, at + 70_001))
    response.end()
  })
})
let gateway: TestGateway
let key: string

before(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  gateway = await startGateway({ messagesUrl: url, messagesKey: 'p', chatUrl: `${url}/v1`, chatKey: 'p' })
  key = (await gateway.createKey('side by side')).key
})
after(async () => {
  await gateway.close()
  upstream.closeAllConnections()
  upstream.close()
})

async function call(seed: number, path: string): Promise<void> {
  const kind = KINDS[seed % KINDS.length] ?? 'events'
  const body = JSON.stringify({
    model: 'claude-haiku-5-5',
    max_tokens: 5,
    messages: [{ role: 'user', content: textOf(seed + 5_000) }],
  })
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'x-kind': kind,
      'x-seed': String(seed),
    },
    body,
  })
  const received: Uint8Array[] = []
  for await (const part of response.body ?? []) {
    received.push(part)
    // A third of the clients read slowly, so that other replies are written meanwhile.
    if (seed % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  const about = `${kind}, ${seed}, ${path}`
  assert.equal(response.status, 200, about)
  assert.equal(response.headers.get('x-body-hash'), sha256(body), `request: ${about}`)
  assert.equal(sha256(Buffer.concat(received)), sha256(replyBody(kind, seed)), `reply: ${about}`)
}

for (const [path, what] of [
  ['/v1/messages', 'that wait for admission'],
  ['/v1/messages/batches/b_1/cancel', 'that flow through'],
] as const) {
  test(`forty large bodies at once ${what} arrive as they were sent, both ways`, async () => {
    for (let round = 0; round < 2; round++) {
      await Promise.all(Array.from({ length: 20 }, (_, i) => call(round * 20 + i, path)))
    }
  })
}
