import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { UpstreamConfig } from '../config.ts'
import type { Clock } from '../kernel/clock.ts'
import { VERSION } from '../kernel/version.ts'
import { providerCredential } from '../providers/credentials.ts'
import type { Surface } from '../providers/surface.ts'
import { upstreamTarget } from '../providers/upstream-target.ts'

export type Stage = 'lookup' | 'connect' | 'tls' | 'answer' | 'body'

/** How long each stage took. A host that is an address needs no lookup, plain HTTP no TLS. */
export type Timings = { readonly [K in Stage]?: number }

export type UpstreamAnswer = { readonly timings: Timings } & (
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly location: string | null
      /** The names it lists. Null: the answer is no list of models. */
      readonly models: readonly string[] | null
      readonly clock: ClockReading | null
    }
  | { readonly kind: 'failed'; readonly stage: Stage; readonly code: string; readonly reason: string }
  | { readonly kind: 'late'; readonly stage: Stage }
)

/** What upstream's clock said, and ours just before it was asked and just after. */
export interface ClockReading {
  readonly upstreamMs: number
  readonly beforeMs: number
  readonly afterMs: number
}

const BODY_BYTES_MAX = 8 * 1024 * 1024

/** Asks for the model list as the gateway would, with the configured key. Never rejects, never redirects. */
export function askUpstream(
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
  const path = upstreamTarget(surface, url, {
    path: '/v1/models',
    // Messages answers in pages of 20 unless asked for more; Chat knows no pages.
    query: surface === 'messages' ? '?limit=1000' : '',
  })
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
      ...(surface === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}),
      ...Object.fromEntries(credential),
    },
  })
}

/** Without the brackets that a URL puts around an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Null: it is longer than any list of models. */
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

/** The ids of a list of models, in the shape that both providers and most local servers give. Null: it is none. */
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
