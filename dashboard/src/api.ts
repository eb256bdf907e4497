import type { z } from 'zod'
import type { Answers, EndpointName, GetAnswers, NamesIn } from '../../src/api/answers.ts'
import type { errorSchema } from '../../src/api/fields.ts'
import { type Query, withAccount, withQuery } from './router.tsx'

export type { Account } from '../../src/api/account.ts'
export type { AdminKey, CreatedAdminKey } from '../../src/api/admin-key.ts'
export type { BalanceObject as Balance, Credit } from '../../src/api/credit.ts'
export type { EventObject as ActivityEvent } from '../../src/api/event.ts'
export type { ListOf } from '../../src/api/fields.ts'
export type { CreatedKey, Key } from '../../src/api/key.ts'
export type { OverviewObject as Overview, Session } from '../../src/api/overview.ts'
export type { Members, Person } from '../../src/api/person.ts'
export type {
  MissingPrice,
  PriceBookObject as PriceBook,
  PricedModel,
  PricePush,
} from '../../src/api/prices.ts'
export type { Bill, RequestRecord as Call } from '../../src/api/request.ts'
export type { Usage, UsageBucketObject as Bucket } from '../../src/api/usage.ts'
export type { Delivery, Webhook } from '../../src/api/webhook.ts'

export type BilledCall = Answers['GET /gateway/v1/requests/{id}']

/** Calls the gateway's API. The cookie of the session replaces the admin key. */

interface RefusalDetails {
  readonly requestId?: string | undefined
  /** The field or parameter that was refused. */
  readonly param?: string | null
  /** Where people sign in, if nobody has. Absent: with a key only. */
  readonly signInPath?: string | undefined
}

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly details: RefusalDetails

  constructor(status: number, code: string, message: string, details: RefusalDetails = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

let onEnded: (() => void) | null = null

/** Calls `ended` when an answer shows that the session has ended. Null: nobody is signed in. */
export function watchSession(ended: (() => void) | null): void {
  onEnded = ended
}

/**
 * The values of the `{…}` of a path, and its query. Parameters that are null are left out. A path without the value of one
 * of its names is not read.
 */
export type Params<Path extends string> = Query & {
  readonly [Name in NamesIn<Path>]: string | null | undefined
}

/**
 * The URL of an endpoint, in the account that the page shows. Accounts, prices and sessions belong to the installation. A
 * record that is addressed by its id is found in its own account, whatever the account of the page. Null: an id is missing.
 */
export function urlOf<Path extends keyof GetAnswers>(path: Path, params: Params<Path>): string | null {
  return fill(path, params)
}

function fill(path: string, params: Query): string | null {
  const names = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name)
  if (names.some((name) => params[name] == null)) return null
  const filled = names.reduce(
    (url, name) => url.replace(`{${name}}`, encodeURIComponent(String(params[name]))),
    path,
  )
  const query = Object.fromEntries(Object.entries(params).filter(([name]) => !names.includes(name)))
  const isGlobal = /^\/gateway\/v1\/(accounts(?!\/self)|prices|session|device)/.test(path)
  const url = withQuery(filled, query)
  return isGlobal || names.length > 0 ? url : withAccount(url)
}

/** Reads an answer. Its type follows from the path. */
export async function get<Path extends keyof GetAnswers>(
  path: Path,
  params: Params<Path>,
  signal?: AbortSignal,
): Promise<GetAnswers[Path]> {
  return await request<GetAnswers[Path]>('GET', fill(path, params), { signal })
}

/**
 * Sends a command, such as `POST /v1/keys`. The type of its answer follows from it. `name`: the idempotency key. A command
 * that is sent again with the same name has no further effect.
 */
export async function send<Name extends EndpointName>(
  endpoint: Name,
  params: Params<Name>,
  body?: unknown,
  name?: string,
): Promise<Answers[Name]> {
  const [method = '', path = ''] = endpoint.split(' ')
  return await request<Answers[Name]>(method, fill(path, params), { body, name })
}

interface Content {
  readonly body?: unknown
  readonly name?: string | undefined
  readonly signal?: AbortSignal | undefined
}

async function request<T>(method: string, url: string | null, { body, name, signal }: Content): Promise<T> {
  if (url === null) throw new Error('The id of a record is missing.')
  const response = await fetch(url, {
    method,
    cache: 'no-store',
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(name === undefined ? {} : { 'idempotency-key': name }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error) => {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', 'The gateway does not answer. Check that it runs.')
  })
  const text = await response.text()
  const answer = recordIn(text)
  if (!response.ok) throw errorOf(response, answer)
  // The gateway's own tests check each answer against the schema of its endpoint.
  if (answer !== null) return answer as T
  if (response.status === 204 || (method !== 'GET' && text === '')) return null as T
  throw new ApiError(
    response.status,
    'foreign_answer',
    'Something between this page and the gateway answered, such as the sign-in of a proxy. Reload the page to sign in there.',
  )
}

/** The answer of the gateway. Null: the text is somebody else's, because every answer of the gateway is a JSON object. */
function recordIn(text: string): object | null {
  try {
    const answer: unknown = JSON.parse(text)
    return typeof answer === 'object' ? answer : null
  } catch {
    return null
  }
}

type ErrorAnswer = Partial<z.infer<typeof errorSchema>>

function errorOf({ status, headers }: Response, answer: ErrorAnswer | null): ApiError {
  const requestId = [...headers].find(([name]) => name.endsWith('-request-id'))?.[1]
  const { code, message, param = null, details } = answer?.error ?? {}
  if (code === undefined || message === undefined) {
    const words = `Something between this page and the gateway answered ${status}. The gateway may be starting: try again.`
    return new ApiError(status, `http_${status}`, words, { requestId })
  }
  if (status === 401) onEnded?.()
  const signInPath = details?.['sign_in_path']
  return new ApiError(status, code, message, {
    requestId,
    param,
    ...(typeof signInPath === 'string' ? { signInPath } : {}),
  })
}
