import { openSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { destination, pino } from 'pino'
import type { CallClosing } from '../../src/ledger/call.ts'
import { NOTHING_USED } from '../../src/ledger/call-columns.ts'
import { loadListPrices } from '../../src/pricing/load-book.ts'
import { CallCounts } from '../../src/telemetry/call-counts.ts'
import { createCallLog, logLine } from '../../src/telemetry/call-log.ts'
import type { EndedCall } from '../../src/telemetry/ended-call.ts'

/**
 * The CPU time of the whole process for counting a call in the metrics, writing its line to the log and sending its span,
 * and for the same lines with pino. Lines go to a file, `/dev/null` unless another is named.
 * Run: node bench/micro/telemetry.ts [--calls 300000] [--to <file>]
 */

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '300000' }, to: { type: 'string', default: '/dev/null' } },
})
const CALLS = Number(values.calls)
/** How many calls end in one turn of the event loop, as under load. */
const TURN = 4

const loaded = loadListPrices()
if (loaded.kind !== 'book') throw new Error('the list prices cannot be loaded')
const counts = new CallCounts(loaded.book)
const closing: CallClosing = {
  ...NOTHING_USED,
  ...{ requestId: 'req_1', state: 'settled', atMs: 0, status: 200, modelServed: 'claude-haiku-5-5' },
  ...{ tokens: { input: 1200, output: 300, cacheRead: 0, cacheWrite: 0 } },
  ...{ costNanos: 3_200_000n, listNanos: 3_200_000n },
}
const call: EndedCall = {
  ...{ requestId: 'req_01K9Z8X2M4QJ5V7C3B1N0HGFDS', keyId: 'key_01K9Z8X2M4QJ5V7C3B1N0HGFDS' },
  ...{
    surface: 'messages',
    method: 'POST',
    path: '/v1/messages',
    headers: [],
    upstream: null,
    endpoint: null,
  },
  ...{ modelAsked: 'claude-haiku-5-5', modelServed: 'claude-haiku-5-5', status: 200, code: null, cut: false },
  ...{ tokens: closing.tokens, costNanos: closing.costNanos, endedAtMs: 1_794_000_000_000, ms: 812.4 },
}

async function measure(name: string, work: () => void): Promise<void> {
  for (let i = 0; i < CALLS / 5; i += 1) work()
  await new Promise((resolve) => setTimeout(resolve, 300))
  const before = process.cpuUsage()
  for (let i = 0; i < CALLS; i += TURN) {
    for (let n = 0; n < TURN; n += 1) work()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { user, system } = process.cpuUsage(before)
  process.stdout.write(`${((user + system) / CALLS).toFixed(2).padStart(8)} µs  ${name}\n`)
}

const open = () => destination({ dest: openSync(values.to, 'a'), sync: false, minLength: 0 })
const iso = () => `,"time":"${new Date().toISOString()}"`
const { headers: _, endpoint: __, upstream: ___, ...fields } = call
const pinoFields = () => ({ ...fields, costNanos: String(fields.costNanos) })

await measure('the turns of the event loop alone', () => {})
await measure('counting a call', () =>
  counts.settled('messages', null, closing, { overheadMs: 0.4, upstreamMs: 800 }),
)
await measure('counting a refusal', () => counts.refused('budget_exceeded'))
await measure('the line as text', () => void logLine(call))
const lines = createCallLog(open())
await measure('the line, written with others', () => lines.observe(call))
const unbuffered = open()
await measure('the line, a write for each', () => void unbuffered.write(`${logLine(call)}\n`))
const logger = pino({ level: 'info', base: null, timestamp: iso }, open())
await measure('pino, a write for each', () => logger.info(pinoFields(), 'call'))
const kept = { write() {} }
const textOnly = pino({ level: 'info', base: null, timestamp: iso }, kept)
await measure('pino, as text alone', () => textOnly.info(pinoFields(), 'call'))

// Spans go to a collector in this process that throws them away: the work of the collector is in the figure.
const collector = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
const { openTraces } = await import('../../src/telemetry/traces.ts')
const traces = openTraces({ sampler: 'always_on', ratio: 1 }, () => {})
await measure('a span, sent with others', () => traces.observe(call))
const unsampled = openTraces({ sampler: 'always_off', ratio: 1 }, () => {})
await measure('a span that is not sampled', () => unsampled.observe(call))
process.exit()
