import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Agent, request } from 'undici'
import { serveTollgate } from '../support/tollgate-process.ts'

const STREAMS = 1_000
const EVENTS = 20

const eventsOf = (name: string): string[] =>
  Array.from(
    { length: EVENTS },
    (_, i) => `event: delta\ndata: {"stream":"${name}","i":${i},"text":"žluťoučký 🐎"}\n\n`,
  )

/** All streams advance together, one event a turn, so that all are open at once. */
const open: (() => boolean)[] = []
const upstream = createServer((req, res) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    const { name } = JSON.parse(Buffer.concat(chunks).toString()) as { name: string }
    const events = eventsOf(name)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.flushHeaders()
    open.push(() => {
      const event = events.shift()
      if (event === undefined) res.end()
      else res.write(event)
      return event !== undefined
    })
    if (open.length === STREAMS) advance()
  })
})

function advance(): void {
  const going = open.filter((step) => step())
  if (going.length > 0) setImmediate(advance)
}

await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', STREAMS, resolve))
const tollgate = await serveTollgate({
  TOLLGATE_CHAT_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
})
const dispatcher = new Agent({ connections: STREAMS, bodyTimeout: 0, headersTimeout: 0 })
after(async () => {
  await dispatcher.destroy()
  upstream.closeAllConnections()
  upstream.close()
  await tollgate.dispose()
})

test('a thousand streams that are open at once all arrive whole and each its own', async () => {
  const adminKey = readFileSync(join(tollgate.dataDir, 'admin-key'), 'utf8').trim()
  const created = await fetch(`${tollgate.url}/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}` },
    body: '{"name":"many"}',
  })
  const { key } = (await created.json()) as { key: string }

  const texts = await Promise.all(
    Array.from({ length: STREAMS }, async (_, i) => {
      const reply = await request(`${tollgate.url}/v1/chat/completions`, {
        dispatcher,
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'm', stream: true, name: `s${i}` }),
      })
      assert.equal(reply.statusCode, 200)
      return await reply.body.text()
    }),
  )
  for (const [i, text] of texts.entries()) assert.equal(text, eventsOf(`s${i}`).join(''))
})
