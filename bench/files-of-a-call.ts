import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The files of src that one streamed POST /v1/messages runs through on the main thread, with the number of functions of
 * each: the files that a reader of that call has to open. Counted by V8's precise coverage over one call, after calls that
 * have warmed the gateway up and loaded its late modules. Run: node bench/files-of-a-call.ts
 */

const WARM_UP_CALLS = 50
const SOURCE = fileURLToPath(new URL('../src/', import.meta.url))
const KEY = 'simulator-provider-key'

const session = new Session()
session.connect()
await session.post('Profiler.enable')
// Coverage starts before anything is loaded: calls of a function that was compiled earlier may go uncounted.
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const { startSimulator } = await import('../simulator/start-simulator.ts')
const { startGateway } = await import('../test/support/gateway.ts')

const simulator = await startSimulator({ messagesKey: KEY, chatKey: KEY })
const gateway = await startGateway({ messagesUrl: simulator.messagesUrl, messagesKey: KEY })

async function call(): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'x-api-key': gateway.apiKey,
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      ...{ model: 'claude-haiku-5-5', max_tokens: 500, stream: true },
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
  if (!response.ok) throw new Error(await response.text())
  await response.text()
  // Settlement has its answer before the body ends; the counts and lines after settlement get one more turn.
  await new Promise((resolve) => setImmediate(resolve))
}

for (let i = 0; i < WARM_UP_CALLS; i++) await call()

// Taking the counts resets them.
await session.post('Profiler.takePreciseCoverage')
await call()
const { result } = await session.post('Profiler.takePreciseCoverage')
session.disconnect()

const rows = result.flatMap(({ url, functions }) => {
  if (!url.startsWith('file://')) return []
  const path = relative(SOURCE, fileURLToPath(url))
  // The function that begins where the file begins is the module itself, which ran when it was loaded.
  const ran = functions.filter(({ ranges: [range] }) => range && range.startOffset > 0 && range.count > 0)
  return path.startsWith('..') || ran.length === 0 ? [] : [{ path, ran: ran.length }]
})
rows.sort((a, b) => a.ran - b.ran || (a.path < b.path ? -1 : 1))
for (const { path, ran } of rows) console.log(`${String(ran).padStart(4)}  ${path}`)
console.log(`${rows.length} files, ${rows.reduce((sum, { ran }) => sum + ran, 0)} functions`)
await gateway.close()
await simulator.close()
