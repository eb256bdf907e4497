import assert from 'node:assert/strict'
import { test } from 'node:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { UsageCutter } from '../../../src/providers/chat-usage/cut-usage-out.ts'
import { RecodedStream } from '../../../src/providers/chat-usage/recode-stream.ts'
import { CODINGS, encodeFlushed, type TestCoding } from './codings.ts'
import { slicesOf, twoVersions } from './two-versions.ts'

const EVENT = Buffer.from('data: {"choices":[{"delta":{"content":"Hi"}}],"usage":null}\n\n')
const CUT_EVENT = 'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'

/** Drives a stream as the gateway does, and keeps the bytes that come out. */
class Client {
  readonly pieces: Buffer[] = []
  readonly take = (bytes: Buffer): null => {
    this.pieces.push(bytes)
    return null
  }
  get bytes(): Buffer {
    return Buffer.concat(this.pieces)
  }
}

async function recode(coding: TestCoding, chunks: readonly Buffer[]): Promise<{ out: Buffer; end: string }> {
  const stream = new RecodedStream(coding.name, new UsageCutter())
  const client = new Client()
  for (const chunk of chunks) await stream.write(chunk, client.take)
  return { end: await stream.end(client.take), out: client.bytes }
}

for (const [name, coding] of Object.entries(CODINGS)) {
  test(`${name}: the client decodes the bytes of an upstream that was not asked for usage`, async () => {
    const sliced = twoVersions.chain(({ asked, notAsked }) =>
      fc.record({
        chunks: slicesOf(coding.encode(Buffer.from(asked.join('')))),
        expected: fc.constant(notAsked.join('')),
      }),
    )
    await fc.assert(
      fc.asyncProperty(sliced, async ({ chunks, expected }) => {
        const { out, end } = await recode(coding, chunks)
        assert.equal(end, 'whole')
        assert.equal(coding.decode(out).toString(), expected)
      }),
      { numRuns: 25 },
    )
  })

  test(`${name}: each event can be read when it was written`, async () => {
    const blocks = Array.from({ length: 5 }, () => EVENT)
    const stream = new RecodedStream(coding.name, new UsageCutter())
    const client = new Client()
    const chunks = await encodeFlushed(coding, blocks)
    for (const [i, chunk] of chunks.entries()) {
      assert.equal(await stream.write(chunk, client.take), 'open')
      const events = Math.min(i + 1, blocks.length)
      assert.equal(coding.decodeBeginning(client.bytes).toString(), CUT_EVENT.repeat(events))
    }
    assert.equal(await stream.end(client.take), 'whole')
    assert.equal(coding.decode(client.bytes).toString(), CUT_EVENT.repeat(blocks.length))
  })

  test(`${name}: a body that ends before its compressed text does is broken, however complete it looks`, async () => {
    const whole = coding.encode(EVENT)
    for (let length = 1; length < whole.length; length++) {
      const { end, out } = await recode(coding, [whole.subarray(0, length)])
      assert.equal(end, 'broken', `cut at ${length} of ${whole.length}`)
      assert.throws(() => coding.decode(out), `cut at ${length}: what the client has must not look complete`)
    }
  })

  test(`${name}: damaged bytes break the stream, and it stays broken`, async () => {
    const [first = Buffer.of()] = await encodeFlushed(coding, [EVENT])
    const stream = new RecodedStream(coding.name, new UsageCutter())
    const client = new Client()
    assert.equal(await stream.write(first, client.take), 'open')
    // Reserved block types, windows and descriptors: no decoder accepts a run of these bytes.
    assert.equal(await stream.write(Buffer.alloc(64, 0xff), client.take), 'broken')
    assert.equal(await stream.write(first, client.take), 'broken')
    assert.equal(await stream.end(client.take), 'broken')
    assert.throws(() => coding.decode(client.bytes))
  })

  test(`${name}: when upstream is cut, the client has what may be given on, and no end`, async () => {
    const begun = Buffer.from('data: {"choices":[{"delta":{}}],"usage":{"total')
    const chunks = await encodeFlushed(coding, [EVENT, begun])
    const stream = new RecodedStream(coding.name, new UsageCutter())
    const client = new Client()
    for (const chunk of chunks.slice(0, 2)) await stream.write(chunk, client.take)
    await stream.breakOff(client.take)
    const expected = `${CUT_EVENT}data: {"choices":[{"delta":{}}]`
    assert.equal(coding.decodeBeginning(client.bytes).toString(), expected)
    assert.throws(() => coding.decode(client.bytes))
  })
}

test('several compressed texts in a row are one body, in one chunk or in several', async () => {
  for (const name of ['gzip', 'zstd']) {
    const coding = CODINGS[name] as TestCoding
    const texts = [coding.encode(EVENT), coding.encode(EVENT), coding.encode(EVENT)]
    for (const chunks of [texts, [Buffer.concat(texts)]]) {
      const { out, end } = await recode(coding, chunks)
      assert.equal(end, 'whole')
      assert.equal(coding.decode(out).toString(), CUT_EVENT.repeat(3))
    }
  }
})

test('a body of no bytes stays one', async () => {
  const { out, end } = await recode(CODINGS['gzip'] as TestCoding, [Buffer.of()])
  assert.equal(out.length, 0)
  assert.equal(end, 'whole')
})

test('while a client has no room, nothing is decoded for it', async () => {
  // A comment of 8 MB that repeats itself over a distance that our own compressor does not look back.
  const noise = Buffer.from(Array.from({ length: 1_000_000 }, (_, i) => 33 + ((i * i * 31 + (i >> 3)) % 90)))
  const comment = Buffer.concat([Buffer.from(':'), ...Array.from({ length: 8 }, () => noise)])
  const body = zlib.zstdCompressSync(comment, { params: { [zlib.constants.ZSTD_c_windowLog]: 22 } })
  let hasRoom = true
  let unasked = 0
  let decodedBytes = 0
  const stream = new RecodedStream('zstd', {
    write(bytes) {
      if (!hasRoom) unasked++
      decodedBytes += bytes.length
      return bytes
    },
    end: () => null,
  })
  const written = await stream.write(body, async () => {
    if (!hasRoom) unasked++
    hasRoom = false
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    hasRoom = true
  })
  assert.equal(written, 'open')
  assert.equal(unasked, 0)
  assert.equal(decodedBytes, comment.length)
  stream.destroy()
})

test('an event without an end is part of a body that has one', async () => {
  const coding = CODINGS['gzip'] as TestCoding
  const { out, end } = await recode(coding, [coding.encode(Buffer.from('data: {"a":1,"usage":null}'))])
  assert.equal(end, 'whole')
  assert.equal(coding.decode(out).toString(), 'data: {"a":1}')
})

test('a stream that is destroyed while it works ends as broken', async () => {
  const stream = new RecodedStream('gzip', new UsageCutter())
  const first = stream.write(zlib.gzipSync(EVENT), () => null)
  const second = stream.write(EVENT, () => null)
  stream.destroy()
  assert.equal(await first, 'broken')
  assert.equal(await second, 'broken')
  assert.equal(await stream.end(() => null), 'broken')
})

test('a coding that nobody can undo is an error, and not bytes that look like some other', async () => {
  const stream = new RecodedStream('compress', new UsageCutter())
  assert.equal(await stream.write(EVENT, () => null), 'broken')
})
