import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { signInPerson } from '../support/sign-in-person.ts'
import { settingsOf } from './played-people.ts'

/**
 * The real Claude Code and Codex, as npm has them today: both sign in as a person, call a model, stop at the budget of the
 * person, and are out when the person is blocked. Linux only, with a namespace in which /etc has managed settings.
 */

const CLAUDE = '@anthropic-ai/claude-code'
const CODEX = '@openai/codex'
const MODEL = { claude: 'claude-sonnet-5-5', codex: 'gpt-6.1-sol' }
const PROGRAM = fileURLToPath(new URL('../../src/cli/tollgate.ts', import.meta.url))

const folder = await mkdtemp(join(tmpdir(), 'tollgate-agents-'))
const simulator = await startSimulator()
const gateway = await startGateway({
  messagesUrl: simulator.messagesUrl,
  chatUrl: simulator.chatUrl,
  settings: {
    signIn: {
      ...settingsOf({ issuer: 'http://127.0.0.1:9' }),
      managedSettings: { availableModels: [MODEL.claude, 'claude-haiku-5-5'] },
    },
  },
})
try {
  await run()
} finally {
  await gateway.close()
  await simulator.close()
  await rm(folder, { recursive: true, force: true })
}

async function run(): Promise<void> {
  const npm = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder]
  const installed = await finish(start('npm', [...npm, `${CLAUDE}@latest`, `${CODEX}@latest`]))
  assert.equal(installed.code, 0, installed.output)
  const ada = await signInPerson(gateway, 'ada')
  const agents: readonly [name: string, ask: () => Promise<Finished>][] = [
    ['Claude Code', await claude(ada.headers)],
    ['Codex', await codex(ada.headers)],
  ]
  for (const [name, ask] of agents) {
    const { code, output } = await ask()
    assert.equal(code, 0, `${name}: ${output}`)
    process.stdout.write(`${name} answered\n`)
  }
  await gateway.manage('PATCH', `/gateway/v1/people/${ada.id}`, { monthly_budget_usd: 0 })
  for (const [name, ask] of agents) await refused(name, ask, /budget/)
  await gateway.manage('POST', `/gateway/v1/people/${ada.id}/block`)
  for (const [name, ask] of agents) await refused(name, ask, /sign in|log ?in|revoked|401/i)
}

async function refused(name: string, ask: () => Promise<Finished>, pattern: RegExp): Promise<void> {
  const { code, output } = await ask()
  assert.notEqual(code, 0, `${name}: ${output}`)
  assert.match(output, pattern, name)
  process.stdout.write(`${name} was refused\n`)
}

/** Signs Claude Code in by its own protocol without a terminal, as the machine of an employee is set up. */
async function claude(headers: Headers): Promise<() => Promise<Finished>> {
  const etc = join(folder, 'etc', 'claude-code')
  await mkdir(etc, { recursive: true })
  const settings = { forceLoginMethod: 'gateway', forceLoginGatewayUrl: gateway.url }
  await writeFile(join(etc, 'managed-settings.json'), JSON.stringify(settings))
  const script = `cp -a /etc/. "$1/" 2>/dev/null; mount --bind "$1" /etc && shift && exec "$@"`
  const binary = join(folder, 'node_modules', `${CLAUDE}-linux-${process.arch}`, 'claude')
  const inNamespace = ['--user', '--map-root-user', '--mount', 'sh', '-c', script, 'sh', join(folder, 'etc')]
  const launch = (...args: readonly string[]) => start('unshare', [...inNamespace, binary, ...args])

  await answerLogin(launch('auth', 'login', '--gateway-json'), headers)
  return () => finish(launch('-p', 'Say hello', '--model', MODEL.claude))
}

type Headers = Readonly<Record<string, string>>

/** Accepts what Claude Code asks on its standard output, and approves its code as the person would. */
async function answerLogin(login: ChildProcess, headers: Headers): Promise<void> {
  assert.ok(login.stdout !== null && login.stdin !== null)
  const ended = once(login, 'exit')
  const lines: string[] = []
  for await (const line of createInterface(login.stdout)) {
    lines.push(line)
    const { state, shown } = JSON.parse(line) as Readonly<Record<string, unknown>>
    const [userCode] = /\b[B-Z]{4}-[B-Z]{4}\b/.exec(line) ?? []
    if (state === 'done' || state === 'error') login.stdin.end()
    else if (userCode !== undefined) await approve(gateway, userCode, headers)
    else if (shown !== undefined) login.stdin.write(`${JSON.stringify({ state, shown, accept: true })}\n`)
  }
  assert.equal((await ended)[0], 0, lines.join('\n'))
}

async function approve({ url }: TestGateway, user_code: string, headers: Headers): Promise<void> {
  const body = JSON.stringify({ user_code, approve: true })
  const { status } = await fetch(`${url}/gateway/v1/device`, { method: 'POST', headers, body })
  assert.equal(status, 200)
}

/** Codex has no sign-in of its own: `tollgate login` signs in, and `tollgate token` prints its token. */
async function codex(headers: Headers): Promise<() => Promise<Finished>> {
  const login = start(process.execPath, [PROGRAM, 'login'])
  assert.ok(login.stderr !== null)
  for await (const line of createInterface(login.stderr)) {
    const [, userCode] = /code: (\S+)/.exec(line) ?? []
    if (userCode !== undefined) await approve(gateway, userCode, headers)
  }
  assert.equal(login.exitCode ?? (await once(login, 'exit'))[0], 0)
  const home = join(folder, 'codex')
  await mkdir(home)
  const command = JSON.stringify(process.execPath)
  const config = `model = "${MODEL.codex}"
model_provider = "tollgate"
[model_providers.tollgate]
name = "Tollgate"
base_url = "${gateway.url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[model_providers.tollgate.auth]
command = ${command}
args = [${JSON.stringify(PROGRAM)}, "token"]
`
  await writeFile(join(home, 'config.toml'), config)
  const program = join(folder, 'node_modules', CODEX, 'bin', 'codex.js')
  const args = [program, 'exec', '--skip-git-repo-check', 'Say hello']
  return () => finish(start(process.execPath, args, { CODEX_HOME: home }))
}

/** In an environment with the gateway's address and nothing else of this machine. */
function start(command: string, args: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const own = { PATH: process.env['PATH'], HOME: folder, TOLLGATE_URL: gateway.url, ...more }
  const env = command === 'npm' ? process.env : own
  return spawn(command, args, { env, cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] })
}

interface Finished {
  readonly code: number | null
  readonly output: string
}

async function finish(child: ChildProcess): Promise<Finished> {
  assert.ok(child.stdout !== null && child.stderr !== null)
  const ended = once(child, 'close')
  child.stdin?.end()
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code: code as number | null, output: out + err }
}
