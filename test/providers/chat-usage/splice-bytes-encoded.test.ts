import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  applySplices,
  reencodeRequest,
  reencodeWhole,
} from '../../../src/providers/chat-usage/splice-bytes.ts'
import { CODINGS } from './codings.ts'
import { slicesOf } from './two-versions.ts'

const BODY = Buffer.from(`{"stream":true,"messages":["${'all work and no play '.repeat(20_000)}"]}`)
const SPLICES = [{ at: BODY.length - 1, deleteBytes: 0, insert: Buffer.from(',"stream_options":{}') }]
const EXPECTED = applySplices(BODY, SPLICES).toString()

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of source) pieces.push(piece)
  return Buffer.concat(pieces)
}

for (const [name, coding] of Object.entries(CODINGS)) {
  test(`${name}: a compressed request is changed inside and stays in its coding`, async () => {
    const encoded = coding.encode(BODY)
    await fc.assert(
      fc.asyncProperty(slicesOf(encoded), async (chunks) => {
        const out = await collect(reencodeRequest(coding.name, chunks, SPLICES))
        assert.equal(coding.decode(out).toString(), EXPECTED)
      }),
      { numRuns: 5 },
    )
    const whole = await reencodeWhole(coding.name, encoded, SPLICES)
    assert.ok(whole !== null)
    assert.equal(coding.decode(whole).toString(), EXPECTED)
    assert.ok(whole.length < 2 * encoded.length + 1000, `${encoded.length} bytes became ${whole.length}`)
  })

  test(`${name}: a request that cannot be decoded is not sent`, async () => {
    const encoded = coding.encode(BODY)
    await assert.rejects(
      collect(reencodeRequest(coding.name, [encoded.subarray(0, encoded.length - 3)], SPLICES)),
    )
    await assert.rejects(collect(reencodeRequest(coding.name, [Buffer.alloc(100, 0xff)], SPLICES)))
  })
}

test('a request that decodes to more than may be read is not sent', async () => {
  const bomb = CODINGS['gzip']?.encode(Buffer.alloc(5_000_000)) ?? Buffer.of()
  await assert.rejects(collect(reencodeRequest('gzip', [bomb], [], 1_000_000)), /too large/)
})

test('a request that is not the one that was judged is not sent', async () => {
  const other = CODINGS['gzip']?.encode(Buffer.from('{}')) ?? Buffer.of()
  await assert.rejects(collect(reencodeRequest('gzip', [other], SPLICES)), /ends before/)
  await assert.rejects(collect(reencodeRequest('gzip', [], SPLICES)), /no body/)
})

test('a result that is too long to be kept is not kept', async () => {
  const encoded = CODINGS['gzip']?.encode(BODY) ?? Buffer.of()
  assert.equal(await reencodeWhole('gzip', encoded, SPLICES, 100), null)
})
