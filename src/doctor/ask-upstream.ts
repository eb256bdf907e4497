import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { UpstreamConfig } from '../config.ts'
import type { Clock } from '../kernel/clock.ts'
import { VERSION } from '../kernel/version.ts'
import type { Surface } from '../providers/surface.ts'
import { providerCredential, SURFACES, upstreamTarget } from '../providers/surfaces.ts'
import { readModelList } from './read-model-list.ts'

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
  const { query, headers } = SURFACES[surface].upstream.modelList
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
      ...headers,
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
