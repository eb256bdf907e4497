import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../../src/config/read-config.ts'
import { mintKey } from '../../src/keys/key-format.ts'
import { createTestDatabase, databaseVariable } from './test-store.ts'

const measuredProgram = new URL('./measured-program.ts', import.meta.url)

export type MeasuredGateway = Awaited<ReturnType<typeof startMeasuredGateway>>

/** A gateway in its own process, to measure its memory without that of the tests. */
export async function startMeasuredGateway(environment: Environment) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-measured-'))
  const dataDir = join(folder, 'data')
  const adminKey = mintKey('svc', 'admin').reveal()
  const place = await createTestDatabase()
  const child = fork(fileURLToPath(measuredProgram), {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA_DIR: dataDir,
      TOLLGATE_ADMIN_KEY: adminKey,
      TOLLGATE_LOG_LEVEL: 'error',
      ...databaseVariable(place),
      ...environment,
    },
    cwd: folder,
    execArgv: ['--expose-gc'],
  })
  const [first] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`it ended with ${code} before it served`)
    }),
  ])) as [{ port: number }]
  async function ask(what: string): Promise<unknown> {
    const answered = once(child, 'message')
    child.send(what)
    const [answer] = (await answered) as [unknown]
    return answer
  }
  const url = `http://127.0.0.1:${first.port}`
  return {
    url,
    host: '127.0.0.1',
    port: first.port,
    dataDir,
    databaseUrl: place.databaseUrl,
    adminKey,
    async createKey(name: string, fields: Readonly<Record<string, unknown>> = {}) {
      const response = await fetch(`${url}/v1/keys`, {
        method: 'POST',
        headers: { authorization: `Bearer ${adminKey}` },
        body: JSON.stringify({ name, ...fields }),
      })
      return (await response.json()) as { id: string; key: string }
    },
    /** The resident memory of the whole process, with all its threads. */
    residentBytes: async () => Number(await ask('resident')),
    /** The live memory of the main thread, without garbage. */
    heldBytes: async () => Number(await ask('held')),
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      await place.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
