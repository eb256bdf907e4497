import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import type { Transform } from 'node:stream'
import zlib from 'node:zlib'
import { limits } from '../../src/kernel/limits.ts'
import { mintKey } from '../../src/keys/key-format.ts'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { connect, exchange } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunked, message, noise, sized } from '../support/wire-bytes.ts'
import { assertOthersServed } from './attack.ts'

/** Decoding in this process: decoders opened, the most at once, and their output bytes. */
const work = { opened: 0, open: 0, openMost: 0, bytes: 0 }
const DECODERS = ['createGunzip', 'createBrotliDecompress', 'createZstdDecompress', 'createInflate'] as const
for (const name of DECODERS) {
  const create = zlib[name] as () => Transform
  const watched = () => {
    work.opened += 1
    work.open += 1
    work.openMost = Math.max(work.openMost, work.open)
    const stream = create()
    stream.on('data', (bytes: Buffer) => {
      work.bytes += bytes.length
    })
    stream.once('close', () => {
      work.open -= 1
    })
    return stream
  }
  Object.defineProperty(zlib, name, { value: watched, configurable: true, enumerable: true })
}
syncBuiltinESMExports()

const pair = await startPair()
closeAfter(pair)

function begin(): typeof work {
  return Object.assign(work, { opened: 0, openMost: work.open, bytes: 0 })
}

const MiB = 1024 * 1024
const CODINGS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes),
  zstd: (bytes) => zlib.zstdCompressSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
}

for (const surface of surfaces) {
  test(`${surface.name}: the body of an unusable key is not decoded, however it is framed`, async () => {
    const revoked = await pair.gateway.createKey('revoked')
    await pair.gateway.revokeKey(revoked.id)
    const line = `POST ${surface.readEndpoint} HTTP/1.1`
    begin()
    for (const key of [mintKey('svc', 'live').reveal(), revoked.key, pair.gateway.adminKey]) {
      for (const [coding, encode] of Object.entries(CODINGS)) {
        const body = encode(Buffer.from(surface.jsonBody))
        const lines = ['Host: h', ...surface.lines(key), `Content-Encoding: ${coding}`]
        const requests = {
          'with a length': sized(line, lines, body),
          'in chunks': chunked(line, lines, [body]),
          'without an invitation': sized(line, [...lines, 'Expect: 100-continue'], body),
          'behind another request': Buffer.concat([pair.ownCall(surface, 'first'), sized(line, lines, body)]),
        }
        for (const [how, request] of Object.entries(requests)) {
          const client = await connect(pair.gateway)
          let reply = await client.request(request)
          if (how === 'behind another request') reply = await client.read({ method: 'POST' })
          assertOwnError(reply, surface, 401, 'invalid_api_key')
          client.leave()
        }
      }
    }
    assert.equal(work.opened, 0)
    await assertOthersServed(pair)
  })

  for (const [coding, encode] of Object.entries(CODINGS)) {
    test(`${surface.name}: a small ${coding} body that expands too far is refused while it is decoded`, async () => {
      const bomb = encode(Buffer.alloc(8 * MiB, ' '))
      const before = pair.upstream.requestCount
      for (const framed of [
        sized,
        (...[line, lines]: Parameters<typeof sized>) => chunked(line, lines, [bomb]),
      ]) {
        begin()
        const lines = ['Host: h', ...surface.lines(pair.gateway.apiKey), `Content-Encoding: ${coding}`]
        const reply = await exchange(
          pair.gateway,
          framed(`POST ${surface.readEndpoint} HTTP/1.1`, lines, bomb),
        )
        assertOwnError(reply, surface, 413, 'body_too_large')
        assert.match(reply.body.toString(), /more than 200 times its size/)
        const most = Math.max(MiB, limits.decodedRatioMax * bomb.length) + MiB
        assert.ok(work.bytes <= most, `${work.bytes} bytes were decoded of ${bomb.length}`)
      }
      assert.equal(pair.upstream.requestCount, before)
      await assertOthersServed(pair)
    })
  }

  for (const [coding, encode] of Object.entries(CODINGS)) {
    test(`${surface.name}: a small ${coding} body with many short names is refused`, async () => {
      const before = pair.upstream.requestCount
      const body = encode(Buffer.from(surface.jsonBody.replace('{', `{${'"a":0,'.repeat(20_000)}`)))
      const lines = [`Content-Encoding: ${coding}`]
      const reply = await exchange(pair.gateway, pair.request(surface, { lines, body }))
      assertOwnError(reply, surface, 413, 'body_too_large')
      assert.match(reply.body.toString(), /more than 16 JSON tokens per byte/)
      assert.equal(pair.upstream.requestCount, before)
    })
  }

  test(`${surface.name}: a body with many similar objects is served`, async () => {
    const entry = (i: number) =>
      `{"id":"${noise(6).toString('hex')}","index":${i},"ok":true,"tags":["a","b"]},`
    const entries = Array.from({ length: 5_000 }, (_, i) => entry(i)).join('')
    const body = zlib.gzipSync(surface.jsonBody.replace('{', `{"a":[${entries}0],`))
    const lines = ['Content-Encoding: gzip', 'x-own-answer: similar']
    const reply = await exchange(pair.gateway, pair.request(surface, { lines, body }))
    assert.equal(reply.status, 200, reply.body.toString())
  })

  test(`${surface.name}: a body that compresses well, as text does, is served`, async () => {
    // The same page 1,500 times, each with its own number.
    const page = noise(1_500).toString('base64')
    const content = Array.from({ length: 1_500 }, (_, i) => `${i} ${page}`).join('\n')
    const text = surface.jsonBody.replace('h\\u00e9', content.replaceAll('\n', '\\n'))
    const body = zlib.gzipSync(text)
    const ratio = text.length / body.length
    assert.ok(ratio > 50 && ratio < limits.decodedRatioMax, `${ratio}`)
    const lines = ['Content-Encoding: gzip', 'x-own-answer: dense']
    const reply = await exchange(pair.gateway, pair.request(surface, { lines, body }))
    assert.equal(reply.status, 200, reply.body.toString())
  })
}

test('bodies with an unknown coding or two coding headers are not decoded', async () => {
  const [surface] = surfaces
  assert.ok(surface)
  begin()
  const lines = ['Content-Encoding: rot13', 'x-own-answer: odd']
  const reply = await exchange(pair.gateway, pair.request(surface, { lines, body: surface.jsonBody }))
  assert.equal(reply.status, 200)
  const twice = message(`POST ${surface.readEndpoint} HTTP/1.1`, [
    ...['Host: h', ...surface.lines(mintKey('svc', 'live').reveal())],
    ...['Content-Encoding: identity', 'Content-Encoding: br', 'Content-Length: 2'],
  ])
  assert.equal((await exchange(pair.gateway, Buffer.concat([twice, Buffer.from('{}')]))).status, 401)
  assert.equal(work.opened, 0)
})

test('one body of a key is decoded at a time', async () => {
  const [surface] = surfaces
  assert.ok(surface)
  const content = noise(MiB).toString('base64')
  const body = zlib.gzipSync(surface.jsonBody.replace('h\\u00e9', content), { level: 1 })
  const lines = ['Content-Encoding: gzip', 'x-own-answer: one']
  const call = async () => {
    const reply = await exchange(pair.gateway, pair.request(surface, { lines, body }))
    assert.equal(reply.status, 200, reply.body.toString())
  }
  begin()
  await Promise.all(Array.from({ length: 12 }, call))
  assert.equal(work.opened, 12)
  assert.ok(work.openMost <= 1, `${work.openMost} at once`)
})
