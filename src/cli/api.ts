import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { type Config, readConfig } from '../config.ts'
import { StoreUnavailable } from '../kernel/errors.ts'
import { rawNumber } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import {
  array,
  boolean,
  nullable,
  object,
  parseExact,
  type Schema,
  string,
  WrongAnswer,
} from './answer-schema.ts'
import {
  type Command,
  type Declaration,
  defineCommand,
  Failure,
  flag,
  NO_COLOR,
  type Option,
  type Options,
  option,
  UsageError,
} from './command.ts'
import { outputStyle, print, type TerminalStyle } from './terminal.ts'
import { type Answer, type Asked, createHttpTransport, repeatOnce, type Transport } from './transport.ts'

/** The names that parameters of the API have on the command line. */
type OptionNames = Readonly<Record<string, string>>

const refusal = object({
  error: object({ message: string, code: nullable(string), param: nullable(string) }),
})

const REFUSAL_CHARS_MAX = 1024 * 1024

/** The management API as the commands see it. Refusals are thrown, in the words of the command line. */
export class Api {
  readonly #transport: Transport
  readonly #names: OptionNames

  constructor(transport: Transport, names: OptionNames) {
    this.#transport = transport
    this.#names = names
  }

  get place(): string {
    return this.#transport.place
  }

  /** The same API, with other names for some parameters. */
  naming(names: OptionNames): Api {
    return new Api(this.#transport, { ...this.#names, ...names })
  }

  /** The members of the answer that are needed, and its text. Numbers are texts. */
  async ask<T>(
    schema: Schema<T>,
    ...question: Parameters<Api['askText']>
  ): Promise<Answer & { readonly value: T }> {
    const answer = await this.askText(...question)
    const value = readOrNull(schema, answer.text)
    if (value === null) throw this.#strange(answer.status)
    return { ...answer, value }
  }

  async askText(method: Parameters<Transport['send']>[0], path: string, asked: Asked = {}): Promise<Answer> {
    const { idempotencyKey } = asked
    const answer = await this.#transport.send(method, path, asked).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable)) throw error
      throw this.#inDoubt(idempotencyKey, `: ${error.message.replace(/\.$/, '')}`) ?? error
    })
    this.#expectDone(answer.status, answer.text, idempotencyKey)
    return answer
  }

  async stream(...question: Parameters<Transport['stream']>): Promise<AsyncIterable<Uint8Array>> {
    const { status, chunks } = await this.#transport.stream(...question)
    if (status !== 200) this.#expectDone(status, await textOf(chunks))
    return chunks
  }

  /** Throws if the API refused. A problem with a parameter is reported for the option that it came from. */
  #expectDone(status: number, text: string, idempotencyKey?: string): void {
    if (status >= 200 && status < 300) return
    const read = readOrNull(refusal, text)
    if (read === null) throw this.#strange(status)
    const { message, code, param } = read.error
    const option = param === null ? undefined : this.#names[param.split('.')[0] ?? '']
    if (status === 400 && option !== undefined) throw new UsageError(`${option}: ${message}`)
    if (code === 'invalid_api_key' || code === 'admin_key_required') {
      throw new Failure(
        `${this.place} refused the key: ${message} Check --admin-key-file or TOLLGATE_ADMIN_KEY.`,
      )
    }
    throw (code === 'store_unavailable' ? this.#inDoubt(idempotencyKey) : null) ?? new Failure(message)
  }

  /** The store may have done the command before its answer was lost. Null: it does no harm to do the command twice. */
  #inDoubt(idempotencyKey: string | undefined, cause = ''): Failure | null {
    if (idempotencyKey === undefined) return null
    return new Failure(`The store of ${this.place} does not answer${cause}. ${repeatOnce(idempotencyKey)}`)
  }

  #strange(status: number): Failure {
    return new Failure(
      `${this.place} answers ${status}, but not as a Tollgate of this version does. Is --url right?`,
    )
  }
}

function readOrNull<T>(schema: Schema<T>, text: string): T | null {
  try {
    return schema(parseExact(text))
  } catch (error) {
    if (error instanceof WrongAnswer || error instanceof SyntaxError) return null
    throw error
  }
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > REFUSAL_CHARS_MAX) break
  }
  return text
}

const CONNECTION_OPTIONS = {
  url: option('<url>', ''),
  'admin-key-file': option('<file>', ''),
}

type Connection = Readonly<Record<keyof typeof CONNECTION_OPTIONS, string | undefined>>

const CONNECTION_HELP = `Where
  Without --url it works on the data directory (TOLLGATE_DATA_DIR), or on the database of TOLLGATE_DATABASE_URL, beside
  running gateways or without one. Calls that wait in a running gateway notice a change made there within a second.
  --url <url>               ask the gateway at this address instead, such as http://127.0.0.1:8787. With https, the
                            certificate of TOLLGATE_TLS_CERT is trusted; NODE_EXTRA_CA_CERTS names others
  --admin-key-file <file>   a file with its admin key; without it, the key is that of TOLLGATE_ADMIN_KEY
`

interface ApiDeclaration<O extends Options> extends Omit<Declaration<O>, 'run'> {
  /** Names of arguments that are no options, by their parameter, such as `{ amount_usd: '<amount>' }`. */
  readonly params?: OptionNames
  /** Reads the command line, and returns the work to do when the API is open. */
  run(...line: Parameters<Declaration<O>['run']>): Work | Promise<Work>
}

type Work = (api: Api) => Promise<void>

/** A command on the management API: with `--url` over HTTP, without on the data directory. */
export function defineApiCommand<const O extends Options>(declaration: ApiDeclaration<O>): Command {
  const { options, sections = [], params = {} } = declaration
  const named = Object.entries<Option>(options).map(([name, { param = name.replaceAll('-', '_') }]) => [
    param,
    `--${name}`,
  ])
  const names = { ...Object.fromEntries(named), ...params }
  return defineCommand({
    ...declaration,
    options: { ...options, ...CONNECTION_OPTIONS } as O,
    sections: [...sections, CONNECTION_HELP],
    async run(values, args) {
      const work = await declaration.run(values, args)
      const transport = await openTransport(values as unknown as Connection, readConfig(process.env))
      try {
        await work(new Api(transport, names))
      } finally {
        await transport.close()
      }
    },
  })
}

/** The option with the idempotency key, under which the API does a command once. */
export const idempotencyKey = (help: string) => option('<text>', help, 'Idempotency-Key')

/** The idempotency key, under which a command is done once: the text that was given, or a random one. */
export function onceKey(values: { readonly 'idempotency-key': string | undefined }): string {
  return values['idempotency-key'] ?? randomUUID()
}

/** The fields that a command changes; throws if there are none. */
export function someFields(
  fields: Readonly<Record<string, unknown>>,
  example: string,
): Readonly<Record<string, unknown>> {
  if (Object.keys(fields).length === 0) throw new UsageError(`say what to change, such as ${example}`)
  return fields
}

/** An amount to the digit as it was typed. A text that is no number is sent as it is, for the API to refuse. */
export function amountField(text: string): unknown {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? rawNumber(text) : text
}

/** Prints the API's own answer with `--json`, else a text for people. */
export async function printAnswer<T>(
  { json }: { readonly json: boolean },
  { text, value }: { readonly text: string; readonly value: T },
  render: (value: T) => string,
): Promise<void> {
  await print(json ? `${text}\n` : render(value))
}

/** A secret that the API tells once, and the sentences that are printed with it. */
interface ToldSecret {
  /** Absent where an idempotency key repeats a command that was done before. */
  readonly secret: string | undefined
  readonly said: string
  readonly saidBefore: string
}

/** The secret alone goes to standard output, so that `KEY=$(…)` takes it and nothing else. */
export async function printSecret<T>(
  { json }: { readonly json: boolean },
  { text, value }: { readonly text: string; readonly value: T },
  tell: (value: T) => ToldSecret,
): Promise<void> {
  if (json) return await print(`${text}\n`)
  const { secret, said, saidBefore } = tell(value)
  if (secret === undefined) throw new Failure(`This command was done before${saidBefore}`)
  process.stderr.write(`${said}:\n`)
  await print(`${secret}\n`)
}

/** The options of a command that shows one thing. */
export const SHOW_OPTIONS = { json: flag("print the API's answer instead"), 'no-color': NO_COLOR }

/** The options of a command that lists one page of the API. */
export const PAGE_OPTIONS = {
  limit: option('<n>', 'at most this many, 1 to 1000; 100 unless given'),
  after: option('<id>', 'go on behind this one, the last of the list before'),
  ...SHOW_OPTIONS,
}

interface Page<T> {
  readonly data: readonly T[]
  readonly has_more: boolean
  readonly next: string | null
}

export const pageOf = <T>(item: Schema<T>): Schema<Page<T>> =>
  object({ data: array(item), has_more: boolean, next: nullable(string) })

/** Prints a page as a table, or `empty` where the page has no rows; then how to go on. */
export async function printPage<T>(
  values: { readonly json: boolean; readonly 'no-color': boolean },
  { text, value }: { readonly text: string; readonly value: Page<T> },
  table: (rows: readonly T[], style: TerminalStyle) => string,
  empty: string,
): Promise<void> {
  if (values.json) return await print(`${text}\n`)
  if (value.data.length > 0) await print(table(value.data, outputStyle(values)))
  else process.stderr.write(`${empty}\n`)
  if (value.has_more)
    process.stderr.write(`There are more: go on with --after ${value.next}, or take a larger --limit.\n`)
}

async function openTransport(connection: Connection, config: Config): Promise<Transport> {
  const { url, 'admin-key-file': keyFile } = connection
  if (url === undefined) {
    if (keyFile !== undefined)
      throw new UsageError('--admin-key-file is for --url; the data directory needs no key')
    // The local transport loads half of the program, which is not needed over HTTP.
    const { openLocalTransport } = await import('./local-transport.ts')
    return await openLocalTransport(config)
  }
  const base = readUrl(url)
  if (base.protocol === 'https:' && config.tls !== null) trust(config.tls.certFile)
  return createHttpTransport(base, keyFile === undefined ? configuredKey(config) : readKey(keyFile))
}

/** Trusts the certificate that a gateway with this configuration serves with, which no authority may vouch for. */
function trust(certFile: string): void {
  try {
    setDefaultCACertificates([...getCACertificates(), readFileSync(certFile, 'utf8')])
  } catch (error) {
    throw new Failure(`TOLLGATE_TLS_CERT: ${certFile} cannot be used: ${(error as Error).message}`)
  }
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (url !== null && isPlain && /^https?:$/.test(url.protocol)) return url
  throw new UsageError(
    '--url must be an address such as http://127.0.0.1:8787, without user, query or fragment',
  )
}

function configuredKey({ adminKey }: Config): Secret {
  if (adminKey !== null) return adminKey
  throw new UsageError(
    '--url needs an admin key: name its file with --admin-key-file, or set TOLLGATE_ADMIN_KEY',
  )
}

const KEY_FILE_BYTES_MAX = 4_096

function readKey(file: string): Secret {
  let text: string
  try {
    if (statSync(file).size > KEY_FILE_BYTES_MAX) throw new Error('it is too large for a key')
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new Failure(`--admin-key-file: ${file} cannot be read: ${(error as Error).message}`)
  }
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Failure(`--admin-key-file: there is no key in ${file}.`)
  return new Secret(text)
}
