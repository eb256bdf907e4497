import { capturing } from '../../src/metering/json-place.ts'
import { JsonWalker } from '../../src/metering/json-walker.ts'

/** How fast the walker reads request bodies, beside JSON.parse of the same text. Run: node bench/micro/json-walker.ts */

const NAMES = ['model', 'stream', 'max_tokens', 'service_tier', 'stream_options', 'tools', 'prompt']
const PLACE = capturing(NAMES)
const CHUNK_BYTES = 64 * 1024
const MEASURE_MS = 400
const ROUNDS = 3

const sentence =
  'The quick brown fox said \u201cgr\u00fc\u00df dich\u201d, jumped over 13 lazy dogs and went home. '
const head = { model: 'claude-sonnet-5', max_tokens: 1024, stream: true }

function message(i: number, text: string): object {
  return { role: i % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text }] }
}

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

const tool = {
  name: 'lookup',
  description: sentence,
  input_schema: {
    type: 'object',
    properties: { id: { type: 'integer', minimum: 0 }, when: { type: ['string', 'null'], default: null } },
    required: ['id'],
  },
}
const conversation = Array.from({ length: 4000 }, (_, i) => message(i, sentence.repeat((i % 7) + 1)))
const source = Array.from({ length: 40_000 }, (_, i) => `\tif (a[${i}] === "x\\n") return ${i}\n`).join('')

const shapes: Record<string, string> = {
  'one huge string': JSON.stringify({ ...head, messages: [message(0, 'x'.repeat(4_000_000))] }),
  'base64 image': JSON.stringify({
    ...head,
    messages: [message(0, Buffer.alloc(3_000_000, 'image bytes').toString('base64')), message(1, sentence)],
  }),
  'many messages of a few sentences': JSON.stringify({ ...head, messages: conversation }),
  'many tiny messages': JSON.stringify({
    ...head,
    messages: Array.from({ length: 40_000 }, (_, i) => message(i, 'Yes.')),
  }),
  'source code, full of escapes': JSON.stringify({ ...head, messages: [message(0, source)] }),
  'watched tools of 2 MB': JSON.stringify({ ...head, tools: Array.from({ length: 6000 }, () => tool) }),
  'numbers (embeddings)': JSON.stringify({
    ...head,
    input: Array.from({ length: 200_000 }, (_, i) => i * 7.13),
  }),
  'deeply nested': JSON.stringify({ ...head, messages: Array.from({ length: 5000 }, () => nested(400)) }),
  'pretty-printed': JSON.stringify(
    { ...head, messages: conversation, metadata: Array(3000).fill(tool) },
    null,
    2,
  ),
  '4,000 top-level names': JSON.stringify(
    Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [`m${i}`, i])),
  ),
}

function megabytesPerSecond(bytes: number, work: () => void): number {
  let best = 0
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    let runs = 0
    let elapsedMs = 0
    do {
      work()
      runs++
      elapsedMs = performance.now() - start
    } while (elapsedMs < MEASURE_MS)
    best = Math.max(best, (bytes * runs) / elapsedMs / 1000)
  }
  return best
}

console.log(
  `${'document'.padEnd(34)} ${'MB'.padStart(6)} ${'scanner MB/s'.padStart(13)} ${'JSON.parse MB/s'.padStart(16)}`,
)
for (const [shape, text] of Object.entries(shapes)) {
  const bytes = Buffer.from(text)
  const scanned = megabytesPerSecond(bytes.length, () => {
    const scanner = new JsonWalker(PLACE)
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) scanner.write(bytes.subarray(at, at + CHUNK_BYTES))
    const scan = scanner.end()
    if (scan.kind !== 'object') throw new Error(`${shape}: ${scan.reason} at ${scan.at}`)
  })
  const parsed = megabytesPerSecond(bytes.length, () => {
    JSON.parse(bytes.toString())
  })
  const columns = [(bytes.length / 1e6).toFixed(1).padStart(6), scanned.toFixed(0).padStart(13)]
  console.log(`${shape.padEnd(34)} ${columns.join(' ')} ${parsed.toFixed(0).padStart(16)}`)
}
