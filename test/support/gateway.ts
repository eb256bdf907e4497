import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setDefaultCACertificates } from 'node:tls'
import { startTollgate } from '../../src/app/main.ts'
import { type Config, type Environment, readConfig } from '../../src/config/read-config.ts'
import type { CallPoint } from '../../src/http-calls/gateway.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { createLog, type Log } from '../../src/kernel/log.ts'
import type { ResolveHost } from '../../src/webhooks/endpoint-address.ts'
import { localPair, writePair } from './certificates.ts'
import { createTestDatabase, databaseVariable } from './test-store.ts'

export interface GatewayOptions {
  readonly messagesUrl?: string
  readonly messagesKey?: string
  readonly chatUrl?: string
  readonly chatKey?: string
  readonly env?: Environment
  /** Clients use TLS with the test certificate, which this process then trusts. */
  readonly secure?: boolean
  /** Settings that the configuration file would contain. */
  readonly settings?: Partial<Config>
  readonly clock?: Clock
  readonly diskFault?: SharedArrayBuffer
  readonly dashboardDir?: URL
  /** Reports the upstream as the built-in simulator. */
  readonly simulator?: boolean
  /** Resolves the hosts of webhooks instead of DNS. */
  readonly resolveHost?: ResolveHost
  readonly log?: Log
  reached?(point: CallPoint): void
  onFatal?(error: Error): void
}

export interface TestGateway extends AsyncDisposable {
  readonly url: string
  readonly secure: boolean
  readonly host: string
  readonly port: number
  /** Null without `metrics.port`. */
  readonly metricsPort: number | null
  readonly dataDir: string
  /** Null: the database is in the data directory. */
  readonly databaseUrl: string | null
  readonly adminKey: string
  readonly apiKey: string
  /** `fields` are more fields of the key, such as limits. */
  createKey(name?: string, fields?: Readonly<Record<string, unknown>>): Promise<{ id: string; key: string }>
  /** A request to the management API with the admin key; fails if the response is an error. */
  manage(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** Adds credit and enforces it. */
  prepay(amountUsd: number): Promise<void>
  revokeKey(id: string): Promise<void>
  close(): Promise<void>
}

/** Tests share busy machines. A test of response times starts its own process or store. */
const PATIENCE_MS = 30_000

/** In this process, on a free port; its database and data directory are removed on close. */
export async function startGateway(options: GatewayOptions = {}): Promise<TestGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-test-'))
  const place = await createTestDatabase()
  const { secure = false } = options
  if (secure) setDefaultCACertificates([localPair.cert])
  const config = readConfig(
    {
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA_DIR: dataDir,
      ...databaseVariable(place),
      TOLLGATE_LOG_LEVEL: 'silent',
      TOLLGATE_MESSAGES_URL: options.messagesUrl,
      TOLLGATE_MESSAGES_KEY: options.messagesKey,
      TOLLGATE_CHAT_URL: options.chatUrl,
      TOLLGATE_CHAT_KEY: options.chatKey,
      ...(secure ? writePair(dataDir, localPair) : {}),
      ...options.env,
    },
    dataDir,
  )
  const running = await startTollgate(
    { ...config, drainMs: 0, doctorProbe: false, ...options.settings },
    {
      log: options.log ?? createLog(config.logLevel),
      ...(options.resolveHost === undefined ? {} : { resolveHost: options.resolveHost }),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      ...(options.diskFault === undefined ? {} : { diskFault: options.diskFault }),
      ...(options.dashboardDir === undefined ? {} : { dashboardDir: options.dashboardDir }),
      ...(options.simulator === undefined ? {} : { simulator: options.simulator }),
      storeAnswerMs: PATIENCE_MS,
      reached: (point) => options.reached?.(point),
      onFatal(error) {
        if (options.onFatal === undefined) throw error
        options.onFatal(error)
      },
    },
  )
  const url = `${secure ? 'https' : 'http'}://127.0.0.1:${running.port}`
  const adminKey = running.firstAdminKey ?? options.env?.['TOLLGATE_ADMIN_KEY'] ?? ''

  async function manage(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as Record<string, unknown>
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
    return answer
  }
  const createKey = async (name = 'test', fields: Readonly<Record<string, unknown>> = {}) =>
    (await manage('POST', '/v1/keys', { name, ...fields })) as { id: string; key: string }
  const { key: apiKey } = await createKey()

  return {
    url,
    secure,
    host: '127.0.0.1',
    port: running.port,
    metricsPort: running.metricsPort,
    dataDir,
    databaseUrl: place.databaseUrl,
    adminKey,
    apiKey,
    createKey,
    manage,
    async prepay(amountUsd) {
      await manage('POST', '/gateway/v1/credits', { amount_usd: amountUsd, reason: 'test' })
      await manage('PATCH', '/gateway/v1/accounts/default', { credit_enforced: true, force: true })
    },
    async revokeKey(id) {
      await manage('POST', `/v1/keys/${id}/revoke`)
    },
    async close() {
      await running.stop()
      await place.remove()
      await rm(dataDir, { recursive: true, force: true })
    },
    [Symbol.asyncDispose](this: TestGateway) {
      return this.close()
    },
  }
}
