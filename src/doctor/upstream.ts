import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { Config, UpstreamConfig } from '../config.ts'
import type { Clock } from '../kernel/clock.ts'
import { VERSION } from '../kernel/version.ts'
import type { Surface } from '../providers/surface.ts'
import { providerCredential, SURFACES, upstreamTarget } from '../providers/surfaces.ts'
import { type Check, counted, type DoctorContext, inMs, inTime, verdicts } from './check.ts'
import type { ClockReading, HostClock } from './check-machine.ts'
import type { Settings } from './configuration.ts'

/** The upstream that is asked, and the configuration that led to it. */
interface Asked {
  readonly surface: Surface
  readonly url: URL
  /** The variable that the key came from. Null: there is no key. */
  readonly keyVariable: string | null
  readonly deadlineMs: number
}

function variablesOf(surface: Surface) {
  return SURFACES[surface].upstream.variables
}

const CHECK_NAMES = { messages: 'upstream_messages', chat: 'upstream_chat' } as const

/** The check of an upstream, and the facts from its answer that other checks are made of: clock and models. */
interface Reached {
  readonly check: Check
  readonly clock: HostClock | null
  /** The models that upstream lists. Null: upstream gave no list. */
  readonly models: readonly string[] | null
}

export async function checkUpstream(
  surface: Surface,
  config: Config,
  { doubtful }: Settings,
  { environment, offline, deadlines, clock }: DoctorContext,
): Promise<Reached> {
  const upstream = config[surface]
  const skip = (why: string): Reached => ({ ...NOTHING, check: verdicts(CHECK_NAMES[surface]).skipped(why) })
  if (doubtful.has(surface)) return skip('not asked before its configuration is good')
  if (upstream === null) return skip('not configured')
  if (offline) return skip('not asked (--offline)')
  const { key, providerKey } = variablesOf(surface)
  const keyVariable = [key, providerKey].find((name) => (environment[name] ?? '') !== '') ?? null
  const asked = { surface, url: upstream.url, keyVariable, deadlineMs: deadlines.checkMs }
  const answer = await askUpstream(surface, upstream, deadlines.checkMs, clock)
  if (answer.kind === 'late') return { ...NOTHING, check: judgeLate(asked, answer.stage) }
  if (answer.kind === 'failed') return { ...NOTHING, check: judgeFailure(asked, answer) }
  const reading = answer.clock
  return {
    check: judgeStatus(asked, answer),
    clock: reading === null ? null : { host: upstream.url.host, reading },
    models: answer.models,
  }
}

const NOTHING = { clock: null, models: null }

type Answered = Extract<UpstreamAnswer, { kind: 'answered' }>

function judgeStatus(asked: Asked, { status, location, models, timings }: Answered): Check {
  const { ok, warning, problem } = verdicts(CHECK_NAMES[asked.surface])
  const { host } = asked.url
  const { url: urlVariable, key, providerKey } = variablesOf(asked.surface)
  const took = describeTimings(timings)
  if (status === 200 && models !== null) {
    const accepted = asked.keyVariable === null ? 'no key set' : `the key in ${asked.keyVariable} is accepted`
    return ok(`${host} lists ${counted(models.length, 'model')}, ${accepted} (${took})`)
  }
  if (status === 401 || status === 403) {
    return asked.keyVariable === null
      ? problem(`${host} asks for a key (${status}), and none is set`, `Set ${key} or ${providerKey}.`)
      : problem(
          `the provider refuses the key in ${asked.keyVariable} (${status} from ${host})`,
          'See that it is whole, in force and of this provider; a restricted one must be allowed to list models.',
        )
  }
  if (status >= 300 && status < 400)
    return problem(
      `${host} redirects (${status}) to ${describeLocation(location, asked.url)}`,
      `Set ${urlVariable} to where it leads: the gateway does not follow, clients would get the redirect.`,
    )
  if (status === 429 || status === 529)
    return warning(
      `${host} is reachable and asks to wait (${status})`,
      'Try again later; if it stays so, look at the limits of the provider account.',
    )
  if (status >= 500)
    return problem(
      `${host} is reachable and fails (${status})`,
      `Look at the provider's status page, or at whatever stands between: ${urlVariable} leads to it.`,
    )
  return warning(
    `${host} answers ${status} and gives no list of models (${took})`,
    `A local server may have none. If it should have one, see that ${urlVariable} is its base URL.`,
  )
}

const LATE: Readonly<Record<Stage, string>> = {
  lookup: 'was not found by name',
  connect: 'took no connection',
  tls: 'did not finish the TLS handshake',
  answer: 'took the connection and gave no answer',
  body: 'did not finish its answer',
}

function judgeLate(asked: Asked, stage: Stage): Check {
  const todo =
    stage === 'answer' || stage === 'body'
      ? `See that ${variablesOf(asked.surface).url} leads to the right server and that it is not stuck.`
      : 'See that this machine may reach it: name servers, firewall, routes. The gateway uses no proxy.'
  const found = `${asked.url.host} ${LATE[stage]} within ${inTime(asked.deadlineMs)}`
  return verdicts(CHECK_NAMES[asked.surface]).problem(found, todo)
}

function judgeFailure(asked: Asked, failed: Extract<UpstreamAnswer, { kind: 'failed' }>): Check {
  const { problem } = verdicts(CHECK_NAMES[asked.surface])
  const { host } = asked.url
  const { url: urlVariable } = variablesOf(asked.surface)
  const { code, stage, reason } = failed
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return problem(
        `there is no address for ${host} (${code})`,
        `Look for a typo in ${urlVariable}, and see that this machine's name server answers.`,
      )
    case 'ECONNREFUSED':
      return problem(
        `${host} refuses the connection`,
        `Start the server there, or set ${urlVariable} to where it listens.`,
      )
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return problem(`there is no way to ${host} (${code})`, 'Look at the network of this machine.')
  }
  if (stage === 'tls')
    return problem(
      `no TLS with ${host}: ${code === '' ? reason : code}`,
      'If it has a certificate of your own authority, name that in NODE_EXTRA_CA_CERTS; if it speaks no TLS, use http://.',
    )
  return problem(
    `${host} broke off (${code === '' ? reason : code})`,
    `See that ${urlVariable} leads to an HTTP server that works.`,
  )
}

/** The target of a redirect without its query, which may hold secrets that are not for a terminal. */
function describeLocation(location: string | null, base: URL): string {
  if (location === null || !URL.canParse(location, base.href)) return 'nowhere'
  const { origin, pathname } = new URL(location, base)
  return `${origin}${pathname}`.slice(0, 200)
}

function describeTimings(timings: Timings): string {
  const labels = [
    ['lookup', 'DNS'],
    ['connect', 'TCP'],
    ['tls', 'TLS'],
    ['answer', 'answer'],
  ] as const
  return labels
    .flatMap(([stage, label]) => (timings[stage] === undefined ? [] : [`${label} ${inMs(timings[stage])}`]))
    .join(', ')
}

type Stage = 'lookup' | 'connect' | 'tls' | 'answer' | 'body'

/** How long each stage took. A host that is an address needs no lookup, plain HTTP no TLS. */
type Timings = { readonly [K in Stage]?: number }

type UpstreamAnswer = { readonly timings: Timings } & (
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly location: string | null
      /** The names that upstream lists. Null: the answer is no list of models. */
      readonly models: readonly string[] | null
      readonly clock: ClockReading | null
    }
  | { readonly kind: 'failed'; readonly stage: Stage; readonly code: string; readonly reason: string }
  | { readonly kind: 'late'; readonly stage: Stage }
)

const BODY_BYTES_MAX = 8 * 1024 * 1024

/** Asks for the model list as the gateway would, with the configured key. Never rejects, and follows no redirect. */
function askUpstream(
  surface: Surface,
  upstream: UpstreamConfig,
  deadlineMs: number,
  clock: Clock,
): Promise<UpstreamAnswer> {
  const { promise, resolve } = Promise.withResolvers<UpstreamAnswer>()
  const timings: { [K in Stage]?: number } = {}
  let stage: Stage = isIP(hostOf(upstream.url)) === 0 ? 'lookup' : 'connect'
  let stageStartedMs = clock.monotonicMs()
  let beforeMs = clock.nowMs()
  function passed(done: Stage, next: Stage): void {
    const nowMs = clock.monotonicMs()
    timings[done] = nowMs - stageStartedMs
    stageStartedMs = nowMs
    stage = next
  }

  const isTls = upstream.url.protocol === 'https:'
  const request = open(surface, upstream)
  const finish = (answer: UpstreamAnswer): void => {
    clearTimeout(timer)
    resolve(answer)
    request.destroy()
  }
  const timer = setTimeout(() => finish({ kind: 'late', stage, timings }), deadlineMs)
  const fail = (error: NodeJS.ErrnoException): void =>
    finish({ kind: 'failed', stage, code: error.code ?? '', reason: error.message, timings })

  request.on('socket', (socket: Socket) => {
    socket.once('lookup', (error) => {
      if (error === null) passed('lookup', 'connect')
    })
    socket.once('connect', () => {
      passed('connect', isTls ? 'tls' : 'answer')
      beforeMs = clock.nowMs()
    })
    socket.once('secureConnect', () => {
      passed('tls', 'answer')
      beforeMs = clock.nowMs()
    })
  })
  request.on('error', fail)
  request.on('response', (response) => {
    passed('answer', 'body')
    const { statusCode: status = 0, headers } = response
    const reading = readClock(headers.date, beforeMs, clock.nowMs())
    receive(response, (body) => {
      passed('body', 'body')
      const models = status === 200 && body !== null ? readModelList(body) : null
      const location = headers.location ?? null
      finish({ kind: 'answered', status, location, models, clock: reading, timings })
    })
    response.on('error', fail)
  })
  request.end()
  return promise
}

function open(surface: Surface, { url, key }: UpstreamConfig): ClientRequest {
  const credential = key === null ? [] : [providerCredential(surface, key)]
  const { ownHeaders, modelListQuery: query } = SURFACES[surface].upstream
  const path = upstreamTarget(surface, url, { path: '/v1/models', query })
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return request({
    agent: false,
    hostname: hostOf(url),
    port: url.port,
    path,
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': `tollgate-doctor/${VERSION}`,
      ...ownHeaders,
      ...Object.fromEntries(credential),
    },
  })
}

/** The host without the brackets that a URL puts around an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** A body of null is longer than any list of models. */
function receive(response: IncomingMessage, done: (body: Buffer | null) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) return done(null)
    chunks.push(chunk)
  })
  response.on('end', () => done(Buffer.concat(chunks)))
}

function readClock(date: string | undefined, beforeMs: number, afterMs: number): ClockReading | null {
  const upstreamMs = date === undefined ? Number.NaN : Date.parse(date)
  return Number.isNaN(upstreamMs) ? null : { upstreamMs, beforeMs, afterMs }
}

const NAMES_MAX = 10_000
const NAME_CHARS_MAX = 200

/** The ids of a list of models, in the shape that both providers and most local servers give. Null: the body is no such list. */
function readModelList(body: Buffer): string[] | null {
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
  const data = memberOf(json, 'data')
  if (!Array.isArray(data)) return null
  const names = data.slice(0, NAMES_MAX).map((entry: unknown) => memberOf(entry, 'id'))
  const good = names.filter(
    (name) => typeof name === 'string' && name !== '' && name.length <= NAME_CHARS_MAX,
  )
  return [...new Set(good as string[])]
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
