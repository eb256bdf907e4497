import type { UsageReader } from '../../src/providers/endpoint.ts'
import { createMeter } from '../../src/providers/surfaces.ts'

/**
 * The cost of a meter for each event and each byte of a stream, beside JSON.parse of every event.
 * Run: node bench/micro/sse-scanner.ts
 */

const EVENTS = 20_000
const MEASURE_MS = 400
const ROUNDS = 3

const words = [
  'The',
  ' quick',
  ' brown',
  ' fox',
  ' said',
  ' \\"hi\\"',
  ' gr\u00fc\u00df',
  ' dich',
  '.\\n',
  ' 13',
]
const word = (i: number): string => words[i % words.length] ?? ''
const obfuscation = (i: number): string => 'aZ09bY18cX27dW36'.slice(0, 4 + (i % 12))

const messagesStart = event(
  'message_start',
  '{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5",' +
    '"content":[],"stop_reason":null,"usage":{"input_tokens":25,"output_tokens":1}}}',
)
const blockStart = event(
  'content_block_start',
  '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
)

function event(name: string | null, data: string): string {
  return `${name === null ? '' : `event: ${name}\n`}data: ${data}\n\n`
}

function messagesDelta(i: number): string {
  const data = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${word(i)}"}}`
  return event('content_block_delta', data)
}

function chatChunk(i: number): string {
  return event(
    null,
    `{"id":"chatcmpl-CxQ9AbCdEfGhIjKlMnOpQrStUv","object":"chat.completion.chunk","created":1763164800,` +
      `"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,` +
      `"delta":{"content":"${word(i)}"},"logprobs":null,"finish_reason":null}],"usage":null,` +
      `"obfuscation":"${obfuscation(i)}"}`,
  )
}

/** No two of these chunks differ in their text alone, so the meter knows none by its bytes. */
function chatWithLogprobs(i: number): string {
  return chatChunk(i).replace('"logprobs":null', `"logprobs":{"content":[{"token":"x","logprob":-0.${i}}]}`)
}

function responsesDelta(i: number): string {
  return event(
    'response.output_text.delta',
    `{"type":"response.output_text.delta","sequence_number":${i},"item_id":"msg_67c9fdcecf488190a1b2c3d4e5f60718",` +
      `"output_index":0,"content_index":0,"delta":"${word(i)}","logprobs":[],"obfuscation":"${obfuscation(i)}"}`,
  )
}

function partialImage(i: number): string {
  const image = Buffer.alloc(150_000, `image ${i}`).toString('base64')
  return event(
    'image_generation.partial_image',
    `{"type":"image_generation.partial_image","partial_image_index":0,"b64_json":"${image}"}`,
  )
}

function wholeImage(i: number): string {
  return partialImage(i).replaceAll('partial_image', 'completed')
}

interface Shape {
  readonly reader: UsageReader
  readonly head: string
  readonly event: (i: number) => string
  readonly events: number
}

const shapes: Readonly<Record<string, Shape>> = {
  'Messages text deltas': {
    reader: 'messages',
    head: messagesStart + blockStart,
    event: messagesDelta,
    events: EVENTS,
  },
  'Chat chunks': { reader: 'chat', head: '', event: chatChunk, events: EVENTS },
  'Responses text deltas': { reader: 'responses', head: '', event: responsesDelta, events: EVENTS },
  'Chat with logprobs (all parsed)': { reader: 'chat', head: '', event: chatWithLogprobs, events: EVENTS },
  'partial images of 200 kB (skipped)': { reader: 'images', head: '', event: partialImage, events: 40 },
  'whole images of 200 kB (walked)': { reader: 'images', head: '', event: wholeImage, events: 40 },
}

/** The time that this thread computed: other load on the machine does not count. */
function busyMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The shortest time of one run, in milliseconds. */
function time(work: () => void): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const start = busyMs()
    let runs = 0
    let elapsedMs = 0
    do {
      work()
      runs++
      elapsedMs = busyMs() - start
    } while (elapsedMs < MEASURE_MS)
    best = Math.min(best, elapsedMs / runs)
  }
  return best
}

function meter(shape: Shape, chunks: readonly Buffer[]): void {
  const measured = createMeter(shape.reader, { status: 200, contentType: 'text/event-stream' })
  for (const chunk of chunks) measured.write(chunk)
  const { faults } = measured.end(false)
  if (faults.length > 0) throw new Error(faults.join())
}

function cut(text: string, chunkBytes: number): Buffer[] {
  const bytes = Buffer.from(text)
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes))
  return chunks
}

const columns = ['an event each', 'in 16 KiB', 'in 16 KiB', 'JSON.parse']
  .map((name) => name.padStart(14))
  .join('')
console.log(`${''.padEnd(36)}${columns}`)
const units = ['ns/event', 'ns/event', 'MB/s', 'ns/event'].map((name) => name.padStart(14)).join('')
console.log(`${'stream'.padEnd(36)}${units}`)
for (const [name, shape] of Object.entries(shapes)) {
  const events = Array.from({ length: shape.events }, (_, i) => shape.event(i))
  const singly = [shape.head, ...events].map((text) => Buffer.from(text))
  const packed = cut(shape.head + events.join(''), 16 * 1024)
  const bytes = packed.reduce((sum, chunk) => sum + chunk.length, 0)
  const data = events.map((text) => Buffer.from(text.slice(text.indexOf('data: ') + 6)))
  const singlyMs = time(() => meter(shape, singly))
  const packedMs = time(() => meter(shape, packed))
  const parseMs = time(() => {
    for (const text of data) JSON.parse(text.toString())
  })
  const perEvent = (ms: number): string => ((ms * 1e6) / shape.events).toFixed(0).padStart(14)
  const speed = (bytes / packedMs / 1000).toFixed(0).padStart(14)
  console.log(`${name.padEnd(36)}${perEvent(singlyMs)}${perEvent(packedMs)}${speed}${perEvent(parseMs)}`)
}
