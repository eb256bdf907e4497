import { UsageCutter } from '../../src/providers/chat-usage/cut-usage-out.ts'

/** The cost of cutting usage out of a chat stream. Run: node bench/micro/cut-usage-out.ts */

const MEASURE_MS = 400
const ROUNDS = 5
const EVENTS = 400

interface Extras {
  readonly usage?: object | null
  readonly obfuscation?: string
}

function chunk(content: string, extras: Extras): string {
  return `data: ${JSON.stringify({
    id: 'chatcmpl-CxQ9h2bTqVJmY0nKqk3Zf1u7oS8aE',
    object: 'chat.completion.chunk',
    created: 1_763_164_800,
    model: 'gpt-5-2025-08-07',
    service_tier: 'default',
    system_fingerprint: null,
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
    ...extras,
  })}\n\n`
}

function stream(content: (i: number) => string, extras: Extras): Buffer[] {
  return Array.from({ length: EVENTS }, (_, i) => Buffer.from(chunk(content(i), extras)))
}

function slices(bytes: Buffer, size: number): Buffer[] {
  const count = Math.ceil(bytes.length / size)
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

const word = (i: number): string => ` word${i}`
const asked = stream(word, { usage: null, obfuscation: 'x7Kq2LmZ' })
const plain = stream(word, { obfuscation: 'x7Kq2LmZ' })
const escaped = stream((i) => ` caf\u00e9 ${i}`, {}).map((bytes) =>
  Buffer.from(bytes.toString().replaceAll('\u00e9', '\\u00e9')),
)
const long = stream(() => 'a sentence of a tool call, escaped: \\"x\\"\\n. '.repeat(400), { usage: null })

const shapes: Record<string, Buffer[]> = {
  'usage asked for, one event per chunk': asked,
  'usage asked for, 64 KiB chunks': slices(Buffer.concat(asked), 65_536),
  'usage asked for, 100-byte chunks': slices(Buffer.concat(asked), 100),
  'no usage, one event per chunk': plain,
  'no usage, 64 KiB chunks': slices(Buffer.concat(plain), 65_536),
  'no usage, escaped text': escaped,
  'usage asked for, 20 KB events': long,
}

/** The best of some rounds, since the other rounds had to share the processor. */
function nanosecondsPerRun(work: () => void): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    let runs = 0
    let elapsedMs = 0
    do {
      work()
      runs++
      elapsedMs = performance.now() - start
    } while (elapsedMs < MEASURE_MS)
    best = Math.min(best, (elapsedMs * 1e6) / runs)
  }
  return best
}

console.log(`${'stream'.padEnd(38)} ${'MB/s'.padStart(6)} ${'ns/event'.padStart(9)}`)
for (const [shape, chunks] of Object.entries(shapes)) {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  const nanoseconds = nanosecondsPerRun(() => {
    const cutter = new UsageCutter()
    for (const chunk of chunks) cutter.write(chunk)
    cutter.end()
  })
  const columns = [((bytes / nanoseconds) * 1000).toFixed(0).padStart(6), (nanoseconds / EVENTS).toFixed(0)]
  console.log(`${shape.padEnd(38)} ${columns[0]} ${columns[1]?.padStart(9)}`)
}
