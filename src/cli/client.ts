import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Command } from 'commander'
import type { ListOf } from '../api/fields.ts'
import { rawNumber } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import { Failure, UsageError } from './command.ts'
import { type Field, outputStyle, print, printData, renderRows } from './terminal.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The options of every command that calls the gateway. */
export interface ConnectionOptions {
  readonly url?: string
  readonly adminKeyFile?: string
  readonly account?: string
}

export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'the gateway (TOLLGATE_URL, else TOLLGATE_HOST and TOLLGATE_PORT)')
    .option(
      '--admin-key-file <file>',
      'file with an admin key (TOLLGATE_ADMIN_KEY, else <data dir>/admin-key)',
    )
    .option('--account <id>', 'the account to act in (default); lists and usage take "*" for all')
}

/** The options of commands that show an object of the API. */
export interface ShownOptions extends ConnectionOptions {
  readonly json?: true
  readonly color: boolean
}

export interface PageOptions extends ShownOptions {
  readonly limit?: string
  readonly after?: string
}

export function withJson(command: Command): Command {
  return withConnection(command)
    .option('--json', "print the API's answer")
    .option('--no-color', 'no colour on a terminal')
}

export function withPages(command: Command): Command {
  return withJson(command)
    .option('--limit <n>', 'at most this many, 1 to 1000 (100)')
    .option('--after <cursor>', 'the next page')
}

/** Prints a page of a list, as a table or as the API's answer. */
export async function printList<Row>(
  options: PageOptions,
  path: string,
  query: Query,
  fields: readonly Field<Row>[] | ((rows: readonly Row[]) => readonly Field<Row>[]),
  { noun, empty, dispensable }: { noun: string; empty?: string; dispensable?: readonly string[] },
): Promise<void> {
  const { limit, after, json } = options
  const client = connect(options, process.env)
  const { value, text } = await client.get<ApiList<Row>>('list', path, { ...query, limit, after })
  if (json) return await printData([`${text}\n`])
  const rows = value.data
  const shown = typeof fields === 'function' ? fields(rows) : fields
  if (rows.length === 0) process.stderr.write(`${empty ?? `There are no such ${noun}.`}\n`)
  else await print(renderRows(shown, rows, outputStyle(options), dispensable))
  if (value.has_more)
    process.stderr.write(`There are more ${noun}: add --after ${value.next} or a larger --limit.\n`)
}

/** Query parameters; those that are undefined are not sent. */
export type Query = Readonly<Record<string, string | undefined>>

interface Ask {
  readonly query?: Query
  /** Sent as JSON. */
  readonly body?: unknown
  /** Commands with the same key run once. */
  readonly idempotencyKey?: string
}

/** An API object with numbers as text, because a double cannot hold every nanodollar. */
export type Exact<T> = T extends number
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Exact<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: Exact<T[Name]> }
      : T

/** Every answer of the management API names its kind. */
interface ApiObject {
  readonly object: string
}

export interface ApiList<T> extends ListOf<T> {
  readonly object: 'list'
}

export interface ApiAnswer<T> {
  readonly value: T
  readonly headers: Headers
  /** The raw body. */
  readonly text: string
}

const TIMEOUT_MS = 60_000
/** The largest answers are pages of 10,000 rows of usage, about 4 MiB. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

/** Client of a running gateway's management API. Refusals are thrown as failures, those about a parameter as usage errors. */
export class Client {
  readonly url: string
  readonly #adminKey: Secret
  readonly #account: string | undefined

  constructor(url: string, adminKey: Secret, account?: string) {
    this.url = url
    this.#adminKey = adminKey
    this.#account = account
  }

  /** Expects an answer whose `object` member has this value. */
  async ask<T extends ApiObject>(
    object: T['object'],
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    ask: Ask = {},
  ): Promise<ApiAnswer<T>> {
    const { idempotencyKey } = ask
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    try {
      const response = await this.#send(method, path, ask, signal)
      const text = await readText(response)
      const value = parseExact(text)
      if (!response.ok) throw this.#refusal(response.status, value, idempotencyKey)
      if (!isObject<T>(value, object)) throw this.#unexpected(response.status)
      return { value, headers: response.headers, text }
    } catch (error) {
      throw this.#explain(error, idempotencyKey)
    }
  }

  async get<T extends ApiObject>(
    object: T['object'],
    path: string,
    query: Query = {},
  ): Promise<ApiAnswer<T>> {
    return await this.ask<T>(object, 'GET', path, { query })
  }

  /** An export of any size, piece by piece. */
  async *export(path: string, query: Query): AsyncGenerator<Uint8Array> {
    try {
      const response = await this.#send('GET', path, { query })
      if (!response.ok) throw this.#refusal(response.status, parseExact(await readText(response)))
      yield* response.body ?? []
    } catch (error) {
      throw this.#explain(error)
    }
  }

  async #send(method: string, path: string, ask: Ask, signal?: AbortSignal): Promise<Response> {
    const { query = {}, body, idempotencyKey } = ask
    const given = Object.entries({ ...query, account: this.#account }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    )
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    const response = await fetch(`${this.url}${path}${search}`, {
      method,
      // Redirects are not followed: the key is for this URL only.
      redirect: 'manual',
      headers: {
        authorization: `Bearer ${this.#adminKey.reveal()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    if (response.status < 300 || response.status >= 400) return response
    const to = response.headers.get('location') ?? 'another URL'
    throw new Failure(`${this.url} redirects to ${to}. Set --url to the URL of the gateway itself.`)
  }

  #refusal(status: number, answer: unknown, idempotencyKey?: string): Error {
    const { message, code, param, details } = (answer as { error?: Refusal } | null)?.error ?? {}
    if (message === undefined) return this.#unexpected(status)
    if (status === 400 && typeof param === 'string') return new UsageError(message)
    if (code === 'invalid_api_key' || code === 'admin_key_required')
      return new Failure(
        `${this.url} refused the admin key: ${message} Check --admin-key-file or TOLLGATE_ADMIN_KEY.`,
      )
    const again =
      code === 'store_unavailable' && idempotencyKey !== undefined ? ` ${repeat(idempotencyKey)}` : ''
    return new Failure(`${message}${again}`, code, details)
  }

  #unexpected(status: number): Failure {
    return new Failure(
      `${this.url} answered ${status}, but not like a Tollgate gateway of this version. Check --url and TOLLGATE_URL.`,
    )
  }

  #explain(error: unknown, idempotencyKey?: string): unknown {
    if (!(error instanceof Error) || error instanceof Failure || error instanceof UsageError) return error
    const { cause } = error
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const reason = cause instanceof Error ? cause.message || code : error.message
    if (NOT_TRUSTED.test(code))
      return new Failure(
        `${this.url} has a certificate that is not trusted here: ${reason}. Use a host name that the certificate covers in --url. ` +
          'If no public authority signed it, set NODE_EXTRA_CA_CERTS to its file.',
      )
    if (NOT_CONNECTED.test(code))
      return new Failure(
        `${this.url} cannot be reached: ${reason}. Start the gateway, or name its URL with --url or TOLLGATE_URL.`,
      )
    const again = idempotencyKey === undefined ? 'Try again.' : repeat(idempotencyKey)
    return new Failure(`The connection to ${this.url} broke: ${reason}. ${again}`)
  }
}

interface Refusal {
  readonly message?: string
  readonly code?: string | null
  readonly param?: string | null
  readonly details?: unknown
}

/** Errors that occur before a request is sent. */
const NOT_TRUSTED = /CERT|LEAF_SIGNATURE/
const NOT_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|_TLS_|_SSL_/

/** Tells how to repeat a command whose outcome is unknown. */
function repeat(idempotencyKey: string): string {
  return `The command may have taken effect. Repeat it with --idempotency-key ${idempotencyKey}: it runs only once.`
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Failure('The answer is larger than 64 MiB. Request less at once.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** Parses JSON with numbers as text; undefined if it is not JSON. */
function parseExact(text: string): unknown {
  const revive: Reviver = (_, value, { source }) =>
    typeof value === 'number' ? (source ?? String(value)) : value
  try {
    return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
  } catch {
    return undefined
  }
}

function isObject<T extends ApiObject>(value: unknown, object: string): value is T {
  return typeof value === 'object' && value !== null && (value as Partial<ApiObject>).object === object
}

/** The client for the gateway that the options and the environment name. */
export function connect({ url, adminKeyFile, account }: ConnectionOptions, environment: Environment): Client {
  const given = url ?? (environment['TOLLGATE_URL'] || undefined)
  const option = url === undefined ? 'TOLLGATE_URL' : '--url'
  const base = given === undefined ? ownUrl(environment) : readUrl(given, option)
  const certificate = environment['TOLLGATE_TLS_CERT']
  if (base.protocol === 'https:' && certificate) trust(certificate)
  return new Client(base.href.replace(/\/$/, ''), adminKey(adminKeyFile, environment), account)
}

/** The URL of a gateway that was started with this environment. */
function ownUrl(environment: Environment): URL {
  const host = environment['TOLLGATE_HOST'] || '127.0.0.1'
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const scheme = environment['TOLLGATE_TLS_CERT'] ? 'https' : 'http'
  const port = environment['TOLLGATE_PORT'] || '8787'
  return readUrl(
    `${scheme}://${near.includes(':') ? `[${near}]` : near}:${port}`,
    'TOLLGATE_HOST:TOLLGATE_PORT',
  )
}

function readUrl(text: string, option: string): URL {
  const url = URL.parse(text)
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (url !== null && isPlain && /^https?:$/.test(url.protocol)) return url
  throw new UsageError(
    `${option} must be a URL such as http://127.0.0.1:8787, without user, query or fragment.`,
  )
}

/** Trusts the certificate of a gateway with this environment, which may be self-signed. */
function trust(file: string): void {
  try {
    setDefaultCACertificates([...getCACertificates(), readFileSync(file, 'utf8')])
  } catch (error) {
    throw new Failure(`TOLLGATE_TLS_CERT: ${file} cannot be used: ${(error as Error).message}`)
  }
}

const KEY_BYTES_MAX = 4_096

function adminKey(file: string | undefined, environment: Environment): Secret {
  if (file !== undefined) return readKey(file, '--admin-key-file')
  const given = environment['TOLLGATE_ADMIN_KEY']
  if (given) return new Secret(given)
  return readKey(join(environment['TOLLGATE_DATA_DIR'] || 'data', 'admin-key'), null)
}

/** `option` is null for the file of the first start. */
function readKey(file: string, option: string | null): Secret {
  let text: string
  try {
    if (statSync(file).size > KEY_BYTES_MAX) throw new Error('it is too large for a key')
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (option !== null) throw new Failure(`${option}: ${file} cannot be read: ${(error as Error).message}`)
    throw new UsageError(
      `There is no admin key: ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'too large'}). ` +
        'Set TOLLGATE_ADMIN_KEY or --admin-key-file; `tollgate admin-key create` creates one on the host.',
    )
  }
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Failure(`There is no key in ${file}.`)
  return new Secret(text)
}

/** The idempotency key that was given, or a random one. */
export function onceKey({ idempotencyKey }: { readonly idempotencyKey?: string }): string {
  return idempotencyKey ?? randomUUID()
}

/** The amount exactly as typed. Text that is not a number is sent unchanged, for the API to refuse. */
export function amountField(text: string): unknown {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? rawNumber(text) : text
}
