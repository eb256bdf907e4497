import { Worker } from 'node:worker_threads'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { fillLog } from '../../test/support/fill-log.ts'
import { startMeasuredGateway } from '../../test/support/measured-gateway.ts'

/**
 * The cost of an export of the request log: rows a second, the memory of the gateway, and how much later the events of
 * a stream come that runs through the gateway meanwhile.
 * Run: node bench/micro/export.ts [rows]
 */

const ROWS = Number(process.argv[2] ?? 1_000_000)
const MiB = 1024 * 1024
const DRIP_MS = 5

const simulator = await startSimulator({ chatKey: 'pc' })
const gateway = await startMeasuredGateway({
  TOLLGATE_CHAT_URL: simulator.chatUrl,
  TOLLGATE_CHAT_KEY: 'pc',
})
const { id, key } = await gateway.createKey('bench')
console.log(`writing ${ROWS} calls …`)
await fillLog(gateway, id, ROWS, Date.parse('2026-01-01T00:00:00Z'))

/** The milliseconds between the events of streams through the gateway, one stream after the other until `isOver`. */
async function gaps(tokens: number, isOver: () => boolean): Promise<number[]> {
  const found: number[] = []
  while (!isOver()) {
    const leaving = new AbortController()
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'x-simulator': `tokens=${tokens}; drip=${DRIP_MS}` },
      body: '{"model":"gpt-6-luna","stream":true,"messages":[{"role":"user","content":"Hello"}]}',
      signal: leaving.signal,
    })
    const reader = (response.body ?? new ReadableStream()).getReader()
    let last: number | null = null
    while (!isOver()) {
      const { done } = await reader.read()
      if (done) break
      const now = performance.now()
      if (last !== null) found.push(now - last)
      last = now
    }
    leaving.abort()
  }
  return found
}

/** The export's reader has a thread of its own, so that its work is not taken for a delay of the stream. */
const READER = `
  const { parentPort, workerData } = require('node:worker_threads')
  fetch(workerData.url, { headers: { authorization: workerData.authorization } }).then(async (response) => {
    let bytes = 0, lines = 0
    for await (const chunk of response.body) {
      bytes += chunk.length
      for (const byte of chunk) if (byte === 10) lines += 1
    }
    parentPort.postMessage({ bytes, lines })
  })`

async function exportAll(format: string) {
  const workerData = {
    url: `${gateway.url}/gateway/v1/requests?format=${format}&end=2026-01-31`,
    authorization: `Bearer ${gateway.adminKey}`,
  }
  const startedMs = performance.now()
  const done = new Promise<{ bytes: number; lines: number }>((resolve, reject) => {
    new Worker(READER, { eval: true, workerData }).once('message', resolve).once('error', reject)
  })
  const resident: number[] = []
  let isOver = false
  const sampling = setInterval(async () => resident.push(await gateway.residentBytes()), 500)
  const streaming = gaps(2_000, () => isOver)
  const { bytes, lines } = await done
  isOver = true
  clearInterval(sampling)
  return { bytes, lines, ms: performance.now() - startedMs, resident, gaps: await streaming }
}

const at = (values: readonly number[], share: number): string => {
  const sorted = values.toSorted((one, other) => one - other)
  return (sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN).toFixed(1)
}
const spread = (values: readonly number[]) =>
  `p50 ${at(values, 0.5)} ms, p99 ${at(values, 0.99)} ms, longest ${at(values, 1)} ms of ${values.length}`

let quiet = false
setTimeout(() => {
  quiet = true
}, 15_000)
const alone = await gaps(2_000, () => quiet)
const before = await gateway.residentBytes()
console.log(`between events, without an export: ${spread(alone)}`)
for (const format of ['ndjson', 'csv']) {
  const { bytes, lines, ms, resident, gaps: meanwhile } = await exportAll(format)
  console.log(`${format}: ${lines} lines, ${Math.round(bytes / MiB)} MiB in ${(ms / 1_000).toFixed(1)} s`)
  console.log(`  ${Math.round((lines / ms) * 1_000)} rows/s`)
  const quarters = [0.25, 0.5, 0.75, 1].map((share) => resident[Math.ceil(resident.length * share) - 1] ?? 0)
  const shown = quarters.map((each) => Math.round(each / MiB)).join(', ')
  const peak = Math.round(Math.max(...resident) / MiB)
  console.log(
    `  memory: ${Math.round(before / MiB)} MiB before, peak ${peak} MiB; after each quarter ${shown} MiB`,
  )
  console.log(`  between events, meanwhile: ${spread(meanwhile)}`)
}
await gateway.close()
await simulator.close()
process.exit(0)
