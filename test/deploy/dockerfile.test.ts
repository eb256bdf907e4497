import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../style/source-tree.ts'
import { withDeadline } from '../support/deadline.ts'
import { after, before, test } from '../support/suite.ts'
import { cleanEnvironment } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'
import { buildImage, type Image, pathWith, readDockerfile } from './dockerfile.ts'

/** The image, built without Docker: its steps run unchanged in an empty folder and install the tarball. */

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-image-'))
const programs = join(folder, 'programs')
let image: Image
let environment: NodeJS.ProcessEnv
let serving: ChildProcess | null = null

before(async () => {
  mkdirSync(programs)
  // The user `node` exists only in the image, so `chown` is a stub.
  writeFileSync(join(programs, 'chown'), '#!/bin/sh\ntest "$1" = node:node && test -d "$2"\n')
  chmodSync(join(programs, 'chown'), 0o755)
  const instructions = readDockerfile(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8'))
  const nodeModules = join(root, 'node_modules')
  image = await buildImage(instructions, { context: root, folder, nodeModules, programs })
  environment = cleanEnvironment({ PATH: pathWith(programs), ...image.environment, TOLLGATE_PORT: '0' })
})
after(() => {
  serving?.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

const packaged = () => join(image.root, 'opt/tollgate/node_modules/tollgate')

test('the image runs as an unprivileged user with a private data folder', () => {
  assert.equal(image.user, 'node')
  assert.equal(statSync(join(image.root, 'data')).mode & 0o777, 0o700)
})

test('the package contains every file that it reads besides its code, and the code of every thread', () => {
  const files = globSync('dist/**/*.js', { cwd: packaged() })
  const named = files.flatMap((file) => {
    const text = readFileSync(join(packaged(), file), 'utf8')
    const urls = [...text.matchAll(/new URL\('(\.[^']+)', import\.meta\.url\)/g)]
    const imports = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)]
    return [...urls, ...imports].map(([, path = '']) => join(dirname(join(packaged(), file)), path))
  })
  assert.ok(named.filter((file) => /worker|thread/.test(file)).length >= 3, 'no thread was found')
  assert.ok(named.some((file) => file.endsWith('list-prices.json')))
  // Only a checkout has the dashboard's source, whose build may be older.
  const read = named.filter((file) => !file.endsWith('/dashboard/src/'))
  assert.deepEqual(
    read.filter((file) => !existsSync(file)),
    [],
  )
  assert.deepEqual(globSync('**/*.ts', { cwd: join(packaged(), 'dist') }), [])
})

test('the image starts, is healthy, creates a key, makes calls, bills a cut stream, audits its ledger and stops', async () => {
  const [program = '', ...args] = image.command
  const child = spawn(program, args, {
    cwd: image.workingDir,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  serving = child
  let output = ''
  const printed = (pattern: RegExp) =>
    withDeadline(
      (async () => {
        for (;;) {
          const found = pattern.exec(output)
          if (found !== null) return found[1] ?? ''
          await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
        }
      })(),
      () => `${pattern} was not printed:\n${output}`,
      60_000,
    )
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const port = await printed(/serves http:\/\/127\.0\.0\.1:(\d+)/)

  const [checker = '', ...check] = image.healthcheck
  const env = { ...environment, TOLLGATE_PORT: port }
  const tollgate = (...args: string[]) => execute('tollgate', args, { cwd: image.workingDir, env })
  await execute(checker, check, { cwd: image.workingDir, env })
  await assert.rejects(
    execute(checker, check, { cwd: image.workingDir, env: { ...env, TOLLGATE_PORT: '1' } }),
  )

  const dashboard = await (await fetch(`http://127.0.0.1:${port}/dashboard`)).text()
  const [, script = 'no script'] = /src="([^"]+\.js)"/.exec(dashboard) ?? []
  assert.equal((await fetch(`http://127.0.0.1:${port}${script}`)).status, 200, dashboard)

  const { stdout: key } = await tollgate('keys', 'create', '--name', 'first')
  const call = (body: object, signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.trim()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-6-luna', messages: [{ role: 'user', content: 'Hello' }], ...body }),
      ...(signal === undefined ? {} : { signal }),
    })
  const answer = await call({})
  assert.equal(answer.status, 200)
  assert.ok(Number(answer.headers.get('x-svc-cost-usd')) > 0)
  await answer.text()
  const leaving = new AbortController()
  const stream = await call({ stream: true }, leaving.signal)
  await stream.body?.getReader().read()
  leaving.abort()
  await until('both calls are settled', async () => {
    const { stdout } = await tollgate('requests', '--format', 'ndjson')
    return stdout.match(/"state": ?"settled"/g)?.length === 2
  })

  const { stdout: checked } = await tollgate('doctor', '--offline', '--json')
  assert.equal((JSON.parse(checked) as { ok: boolean }).ok, true, checked)
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  const [code] = await withDeadline(closed, () => `it does not stop:\n${output}`)
  assert.equal(code, 0)
  assert.match(output, /Stopped\.\n/)
  await tollgate('audit')
})
