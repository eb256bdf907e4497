import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { z } from 'zod'
import type { Answers, EndpointName, GetAnswers } from '../api/answers.ts'
import type { errorSchema, ListOf, WithNumbers } from '../api/fields.ts'
import type { Environment } from '../config/read-config.ts'
import { fileProblem } from '../kernel/errors.ts'
import { parseWithDigits } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import { Failure, UsageError } from './command.ts'

/** Query parameters. Undefined ones are not sent. */
export type QueryFields = Readonly<Record<string, string | undefined>>

interface RequestContent {
  readonly query?: QueryFields
  readonly body?: unknown
  readonly idempotencyKey?: string | undefined
}

/** An API object with numbers as text, because a double cannot hold every nanodollar. */
export type Exact<T> = WithNumbers<T, string>

export interface AnsweredObject {
  readonly object: string
}

export interface ApiList<T> extends ListOf<T>, AnsweredObject {}

type AllOf<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

type AnyAnswer = Extract<Answers[EndpointName], AnsweredObject>
export type AnswerName = AnyAnswer['object']

/** What the API answers under this `object`. A command knows which list it has asked for. */
export type ObjectOf<Name extends AnswerName> = Exact<
  Name extends 'list' ? AnsweredObject : AllOf<Extract<AnyAnswer, { object: Name }>>
>

export interface ApiAnswer<T> {
  readonly value: T
  readonly headers: Headers
  readonly text: string
}

const TIMEOUT_MS = 60_000

interface AdminKey {
  readonly secret: Secret
  /** The file or the variable that it was read from. */
  readonly from: string
}

/** A client of the management API. Throws a refusal as a `Failure`, or as a `UsageError` if a parameter is invalid. */
export class Client {
  readonly url: string
  readonly #adminKey: AdminKey
  readonly #account: string | undefined
  #everyAccount: Promise<'*' | undefined> | null = null

  constructor(url: string, adminKey: AdminKey, account?: string) {
    this.url = url
    this.#adminKey = adminKey
    this.#account = account
  }

  /** `*` if the admin key may look into several accounts and the command names none; else undefined. */
  everyAccount(): Promise<'*' | undefined> {
    this.#everyAccount ??= this.#seesSeveralAccounts().then((several) => (several ? '*' : undefined))
    return this.#everyAccount
  }

  async #seesSeveralAccounts(): Promise<boolean> {
    if (this.#account !== undefined) return false
    try {
      return (await this.list('/gateway/v1/accounts', { limit: '1' })).has_more
    } catch (error) {
      if (error instanceof Failure && error.code === 'insufficient_role') return false
      throw error
    }
  }

  inAccount(id: string): Client {
    return new Client(this.url, this.#adminKey, id)
  }

  /** The page of a list. `path`: that of the list with its ids. */
  async list<Path extends keyof GetAnswers>(
    of: Path,
    query: QueryFields,
    path: string = of,
  ): Promise<Exact<GetAnswers[Path]>> {
    const { value } = await this.request('list', 'GET', path, { query })
    return value as Exact<GetAnswers[Path]>
  }

  /** Throws unless the answer's `object` has this value. */
  async request<Name extends AnswerName>(
    object: Name,
    method: 'GET' | 'POST' | 'PUT' | 'PATCH',
    path: string,
    content: RequestContent = {},
  ): Promise<ApiAnswer<ObjectOf<Name>>> {
    try {
      const response = await this.#send(method, path, content, AbortSignal.timeout(TIMEOUT_MS))
      const text = await response.text()
      const value = parseExact(text)
      if (!isObject<ObjectOf<Name>>(value, object)) throw this.#unexpectedAnswer(response.status)
      return { value, headers: response.headers, text }
    } catch (error) {
      throw explainBroken(this.url, error, content.idempotencyKey)
    }
  }

  /** A request whose answer has no body. */
  async remove(path: string): Promise<void> {
    await this.#send('DELETE', path, {}, AbortSignal.timeout(TIMEOUT_MS)).catch((error: unknown) => {
      throw explainBroken(this.url, error)
    })
  }

  async *export(path: string, query: QueryFields): AsyncGenerator<Uint8Array> {
    try {
      const response = await this.#send('GET', path, { query }, null)
      yield* response.body ?? []
    } catch (error) {
      throw explainBroken(this.url, error)
    }
  }

  async #send(
    method: string,
    path: string,
    { query = {}, body, idempotencyKey }: RequestContent,
    signal: AbortSignal | null,
  ): Promise<Response> {
    const account = this.#account ?? query['account']
    const given = Object.entries({ ...query, account }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    )
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    const response = await fetch(`${this.url}${path}${search}`, {
      method,
      signal,
      // Do not follow redirects, because the key must only go to this URL.
      redirect: 'manual',
      headers: {
        authorization: `Bearer ${this.#adminKey.secret.reveal()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (response.ok) return response
    const to = response.headers.get('location')
    if (to !== null)
      throw new Failure(`${this.url} redirects to ${to}. Set --url to the URL of the gateway itself.`)
    throw this.#errorOf(response.status, parseExact(await response.text()), idempotencyKey)
  }

  #errorOf(status: number, answer: unknown, idempotencyKey?: string): Error {
    const { message, code, param, details } = (answer as { error?: StatedError } | null)?.error ?? {}
    if (message === undefined) return this.#unexpectedAnswer(status)
    if (status === 400 && typeof param === 'string') return new UsageError(message, param)
    if (code === 'invalid_api_key' || code === 'admin_key_required')
      return new Failure(
        `${this.url} refused the admin key: ${message} The key is from ${this.#adminKey.from}. Check --admin-key-file or TOLLGATE_ADMIN_KEY.`,
      )
    const again =
      code === 'store_unavailable' && idempotencyKey !== undefined ? ` ${repeatAdvice(idempotencyKey)}` : ''
    return new Failure(`${message}${again}`, code, details)
  }

  #unexpectedAnswer(status: number): Failure {
    return new Failure(
      `${this.url} answered ${status}, but not like a Tollgate gateway of this version. Check --url and TOLLGATE_URL.`,
    )
  }
}

/** Says why a request got no answer, and what to do. */
export function explainBroken(url: string, error: unknown, idempotencyKey?: string): unknown {
  if (!(error instanceof Error) || error instanceof Failure || error instanceof UsageError) return error
  const { cause } = error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  const reason = cause instanceof Error ? cause.message || code : error.message
  if (NOT_TRUSTED.test(code))
    return new Failure(
      `${url} has a certificate that is not trusted here: ${reason}. In --url, use a host name that the certificate covers. ` +
        'If it is self-signed or from a private CA, set NODE_EXTRA_CA_CERTS to its PEM file.',
    )
  if (NOT_CONNECTED.test(code))
    return new Failure(
      `${url} cannot be reached: ${reason}. Start the gateway, or name its URL with --url or TOLLGATE_URL.`,
    )
  // fetch blocks the ports of other protocols, such as 25 for mail.
  if (reason === 'bad port')
    return new Failure(
      `Node.js does not connect to the port of ${url}. Serve on another port (TOLLGATE_PORT) and name it in --url.`,
    )
  const again = idempotencyKey === undefined ? 'Try again.' : repeatAdvice(idempotencyKey)
  return new Failure(`The connection to ${url} broke: ${reason}. ${again}`)
}

type StatedError = Partial<z.infer<typeof errorSchema>['error']>

const NOT_TRUSTED = /CERT|LEAF_SIGNATURE/
const NOT_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|_TLS_|_SSL_/

function repeatAdvice(idempotencyKey: string): string {
  return `The command may have taken effect. Repeat it with --idempotency-key ${idempotencyKey}: it runs only once.`
}

function parseExact(text: string): unknown {
  try {
    return parseWithDigits(text, (_, value, digits) => (typeof value === 'number' ? digits : value))
  } catch {
    return undefined
  }
}

function isObject<T>(value: unknown, object: string): value is T {
  return typeof value === 'object' && value !== null && 'object' in value && value.object === object
}

export interface CommandOptions {
  readonly url?: string
  readonly adminKeyFile?: string
  readonly account?: string
  readonly json?: true
  readonly color?: boolean
  readonly [option: string]: unknown
}

/** Requests of this client act in the account of its key, or in `default` for an operator. */
export function openClient(options: CommandOptions): Client {
  return new Client(gatewayUrl(options), readAdminKey(options.adminKeyFile, process.env))
}

/** The URL of the gateway that a command calls, without a final slash. */
export function gatewayUrl({ url }: CommandOptions): string {
  const environment = process.env
  const given = url ?? (environment['TOLLGATE_URL'] || undefined)
  const option = url === undefined ? 'TOLLGATE_URL' : '--url'
  const base = given === undefined ? defaultUrl(environment) : readUrl(given, option)
  const certificate = environment['TOLLGATE_TLS_CERT']
  if (base.protocol === 'https:' && certificate) trustCertificate(certificate)
  return base.href.replace(/\/$/, '')
}

function defaultUrl(environment: Environment): URL {
  const host = environment['TOLLGATE_HOST'] || '127.0.0.1'
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const scheme = environment['TOLLGATE_TLS_CERT'] ? 'https' : 'http'
  const address = `${reachable.includes(':') ? `[${reachable}]` : reachable}:${environment['TOLLGATE_PORT'] || '8787'}`
  return readUrl(`${scheme}://${address}`, 'TOLLGATE_HOST:TOLLGATE_PORT')
}

function readUrl(text: string, option: string): URL {
  const url = URL.parse(text)
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (url !== null && isPlain && /^https?:$/.test(url.protocol)) return url
  throw new UsageError(
    `${option} must be a URL such as http://127.0.0.1:8787, without user, query or fragment.`,
  )
}

/** Trusts the certificate in this file, which may be self-signed. */
function trustCertificate(file: string): void {
  try {
    setDefaultCACertificates([...getCACertificates(), readFileSync(file, 'utf8')])
  } catch (error) {
    throw new Failure(`TOLLGATE_TLS_CERT: ${file} cannot be used: ${fileProblem(error)}.`)
  }
}

function readAdminKey(named: string | undefined, environment: Environment): AdminKey {
  const given = environment['TOLLGATE_ADMIN_KEY']
  if (named === undefined && given) return { secret: new Secret(given), from: 'TOLLGATE_ADMIN_KEY' }
  const file = named ?? join(environment['TOLLGATE_DATA_DIR'] || 'data', 'admin-key')
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    const why = `${file} cannot be read: ${fileProblem(error)}`
    if (named !== undefined) throw new Failure(`--admin-key-file: ${why}.`)
    throw new UsageError(
      `There is no admin key: ${why}. Set TOLLGATE_ADMIN_KEY or --admin-key-file; \`tollgate admin-key create\` creates a ` +
        'key on the host.',
    )
  }
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Failure(`There is no key in ${file}. Write an admin key to it.`)
  return { secret: new Secret(text), from: file }
}
