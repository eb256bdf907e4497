import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withDeadline } from '../support/deadline.ts'
import { readDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { createTestDatabase, databaseVariable } from '../support/test-store.ts'
import { cleanEnvironment } from '../support/tollgate-process.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

async function startOpenEnded() {
  const replies: ServerResponse[] = []
  const server = createServer((req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: one\n\n')
    replies.push(res)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    endAll: () => replies.map((reply) => reply.end('data: two\n\n')),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Runs npm or npx as in the README, in its own process group, as a terminal would. */
async function startByNpm(upstreamUrl: string, command: string, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-npm-'))
  const dataDir = join(folder, 'data')
  const place = await createTestDatabase()
  const child = spawn(command, args, {
    cwd: repository,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: cleanEnvironment({
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA_DIR: dataDir,
      TOLLGATE_MESSAGES_URL: upstreamUrl,
      ...databaseVariable(place),
    }),
  })
  let output = ''
  const served = Promise.withResolvers<string>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const url = /serves (http:\/\/\S+)[\s\S]*process\.env\.TOLLGATE_KEY \}\)/.exec(output)?.[1]
      if (url !== undefined) served.resolve(url)
    })
  }
  const ended = once(child, 'close')
  const npm = child.pid ?? assert.fail('npm cannot be started')
  const url = await withDeadline(served.promise, () => `it does not serve:\n${output}`)
  const adminKey = readFileSync(join(dataDir, 'admin-key'), 'utf8').trim()
  const made = await fetch(`${url}/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}` },
    body: '{"name":"x"}',
  })
  const { key } = (await made.json()) as { key: string }
  return {
    ...{ url, key, npm, dataDir, databaseUrl: place.databaseUrl },
    output: () => output,
    /** Whether npm still runs: in a container, the end of npm ends all processes. */
    npmRuns: () => child.exitCode === null && child.signalCode === null,
    /** Resolves when npm, the shell and the gateway have ended and closed the output. */
    ended: () => withDeadline(ended, () => `something stays behind:\n${output}`),
    async dispose() {
      try {
        process.kill(-npm, 'SIGKILL')
      } catch {
        // Resolves when all processes of the group have ended.
      }
      await place.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function isPortFree(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  try {
    await once(socket, 'connect')
    return false
  } catch {
    return true
  } finally {
    socket.destroy()
  }
}

const KILLED = 'an npm that is killed'
const endings: Record<string, (npm: number) => void> = {
  'SIGTERM to npm alone': (npm) => process.kill(npm, 'SIGTERM'),
  'Ctrl-C, which reaches npm and the gateway': (npm) => process.kill(-npm, 'SIGINT'),
  [KILLED]: (npm) => process.kill(npm, 'SIGKILL'),
}

for (const [name, end] of Object.entries(endings)) {
  test(`npm start: ${name} drains and ends the gateway and leaves no process`, async () => {
    const upstream = await startOpenEnded()
    const started = await startByNpm(upstream.url, 'npm', 'start')
    try {
      const response = await fetch(`${started.url}/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': started.key },
        body: '{"model":"m"}',
      })
      const reader = response.body?.getReader() ?? assert.fail('no body')
      assert.equal(Buffer.from((await reader.read()).value ?? []).toString(), 'data: one\n\n')

      end(started.npm)
      const isStopping = async () => {
        while (!started.output().includes('Stopping.')) await new Promise((go) => setImmediate(go))
      }
      await withDeadline(isStopping(), () => `it does not stop:\n${started.output()}`)
      if (name !== KILLED) assert.ok(started.npmRuns(), 'npm did not wait for the gateway')
      upstream.endAll()
      assert.equal(Buffer.from((await reader.read()).value ?? []).toString(), 'data: two\n\n')
      assert.equal((await reader.read()).done, true)

      await started.ended()
      assert.match(started.output(), /Stopped\.\n/)
      assert.equal(await isPortFree(started.url), true)
      const calls = await readDatabase(started, "SELECT state FROM call WHERE path = '/v1/messages'")
      assert.deepEqual(
        calls.map((call) => call['state']),
        ['settled'],
      )
    } finally {
      await started.dispose()
      upstream.close()
    }
  })
}
