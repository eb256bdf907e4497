import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  boundaryOf,
  MULTIPART_LIMITS,
  type MultipartScan,
  MultipartScanner,
} from '../../src/metering/multipart-scanner.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { inPieces, mutate, mutations, pieceSizes } from './slices.ts'

const NAMES = ['model', 'n', 'stream'] as const

interface Entry {
  readonly name: string
  readonly content: string
  readonly filename: string | null
}

/** Contents that resemble delimiters: boundaries in this runtime's form, and parts of them. */
const content = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\r\n',
        '\r',
        '\n',
        '--',
        '-',
        '\r\n--',
        '\r\n------',
        '------formdata-undici-',
        '\0',
        '\r\n\r\n',
      ),
      fc.constantFrom(
        '\r\n------formdata-undici-0123\r\n',
        'Content-Disposition: form-data; name="model"',
        'ä😀',
        '--\r\n',
      ),
      fc.string(),
      fc.integer({ min: 1, max: 1500 }).map((length) => 'x'.repeat(length)),
    ),
    { maxLength: 5 },
  )
  .map((pieces) => pieces.join(''))

const entries: fc.Arbitrary<Entry[]> = fc.array(
  fc.oneof(
    fc.record({ name: fc.constantFrom(...NAMES), content, filename: fc.constant(null) }),
    fc.record({
      name: fc.constantFrom('file', 'image[]', 'a"b', 'a\r\nb', 'prompt', 'ä', ''),
      content,
      filename: fc.option(fc.constantFrom('a.png', 'ä "quoted".txt', '', 'C:\\x\\', 'a;b\r\n.c')),
    }),
  ),
  { maxLength: 6 },
)

interface Body {
  readonly bytes: Buffer
  readonly contentType: string
}

async function encode(form: readonly Entry[]): Promise<Body> {
  const data = new FormData()
  for (const { name, content, filename } of form) {
    if (filename === null) data.append(name, content)
    else data.append(name, new Blob([content], { type: 'application/octet-stream' }), filename)
  }
  const response = new Response(data)
  const contentType = response.headers.get('content-type') ?? ''
  return { bytes: Buffer.from(await response.arrayBuffer()), contentType }
}

function scan({ bytes, contentType }: Body, sizes: readonly number[]): MultipartScan {
  const boundary = boundaryOf(contentType)
  assert(boundary !== null, contentType)
  return inPieces(new MultipartScanner(boundary, NAMES), bytes, sizes)
}

/** A value as the encoder writes it: line breaks in text fields become CRLF. */
function encoded(value: string): string {
  return value.replace(/\r\n|\r|\n/g, '\r\n').toWellFormed()
}

test('every watched field of any form of this runtime is found, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(entries, pieceSizes, async (form, sizes) => {
      const body = await encode(form)
      const whole = scan(body, [body.bytes.length + 1])
      assert(whole.kind === 'form', JSON.stringify(whole))
      for (const watched of NAMES) {
        const [first, second] = form.filter(({ name }) => name === watched)
        const field = whole.fields.get(watched)
        assert.equal(field !== undefined, first !== undefined)
        assert.equal(whole.duplicates.includes(watched), second !== undefined)
        if (field === undefined || first === undefined) continue
        const value = encoded(first.content)
        assert.equal(field, Buffer.byteLength(value) > MULTIPART_LIMITS.valueBytesMax ? null : value)
      }
      assert.deepEqual(scan(body, sizes), whole)
      assert.deepEqual(scan(body, [1]), whole)
    }),
    { numRuns: runs(600) },
  )
})

async function parse({ bytes, contentType }: Body): Promise<FormData | null> {
  try {
    return await new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }).formData()
  } catch {
    return null
  }
}

test('a form with changed bytes is read as this runtime reads it, or refused, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(entries, mutations, pieceSizes, async (form, changes, sizes) => {
      const { bytes, contentType } = await encode(form)
      const body = { bytes: mutate(bytes, changes), contentType }
      const whole = scan(body, [body.bytes.length + 1])
      assert.deepEqual(scan(body, sizes), whole)
      const parsed = await parse(body)
      if (whole.kind === 'unreadable' || parsed === null) return
      for (const watched of NAMES) {
        const values = parsed.getAll(watched)
        const field: string | null | undefined = whole.fields.get(watched)
        assert.equal(field !== undefined, values.length > 0)
        assert.equal(whole.duplicates.includes(watched), values.length > 1)
        if (typeof field === 'string') assert.equal(field, values[0])
      }
    }),
    { numRuns: runs(1500) },
  )
})
