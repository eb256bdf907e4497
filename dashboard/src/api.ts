import type { Key } from '../../src/api/key.ts'
import { withAccount } from './router.tsx'

export type { Account } from '../../src/api/account.ts'
export type { AdminKey } from '../../src/api/admin-key.ts'
export type { BalanceObject as Balance, Credit } from '../../src/api/credit.ts'
export type { EventObject as ActivityEvent } from '../../src/api/event.ts'
export type { ListOf } from '../../src/api/fields.ts'
export type { Key } from '../../src/api/key.ts'
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

/** Calls the gateway's API. The cookie of the session replaces the admin key. */

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  /** The field or parameter that was refused. */
  readonly param: string | null
  /** Where people sign in, if nobody has. Null: with a key only. */
  readonly signInPath: string | null

  constructor(
    status: number,
    code: string,
    message: string,
    {
      requestId = null,
      param = null,
      signInPath = null,
    }: Partial<Pick<ApiError, 'requestId' | 'param' | 'signInPath'>> = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
    this.param = param
    this.signInPath = signInPath
  }
}

let onEnded: (() => void) | null = null

/** Calls `ended` when an answer shows that the session has ended. Null: nobody is signed in. */
export function watchSession(ended: (() => void) | null): void {
  onEnded = ended
}

/**
 * Accounts, prices and sessions belong to the installation, not to the account that an operator acts in. A record that is
 * addressed by its id is found in its own account, whatever the account of the page.
 */
export function urlOf(path: string): string {
  const isGlobal = /^\/gateway\/v1\/(accounts(?!\/self)|prices|session|device)/.test(path)
  const isById = /^\/(gateway\/)?v1\/[a-z-]+\/[a-z]+_[0-9A-Z]{26}\b/.test(path)
  return isGlobal || isById ? path : withAccount(path)
}

export async function fetchJson<T>(
  method: string,
  path: string,
  { body, name, signal }: { body?: unknown; name?: string | undefined; signal?: AbortSignal } = {},
): Promise<T> {
  const response = await fetch(urlOf(path), {
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
  const isLines = response.headers.get('content-type')?.includes('ndjson')
  const answer = recordIn(isLines ? `[${text.trim().replaceAll('\n', ',')}]` : text)
  if (!response.ok) throw errorOf(response, answer)
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

interface ErrorAnswer {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly param?: string | null
    readonly details?: { readonly sign_in_path?: string }
  }
}

function errorOf({ status, headers }: Response, answer: object | null): ApiError {
  const requestId = [...headers].find(([name]) => name.endsWith('-request-id'))?.[1] ?? null
  const { code, message, param = null, details } = (answer as ErrorAnswer | null)?.error ?? {}
  if (code === undefined || message === undefined) {
    const words = `Something between this page and the gateway answered ${status}. The gateway may be starting: try again.`
    return new ApiError(status, `http_${status}`, words, { requestId })
  }
  if (status === 401) onEnded?.()
  return new ApiError(status, code, message, { requestId, param, signInPath: details?.sign_in_path ?? null })
}

/** `name`: the idempotency key. A command that is sent again with the same name has no further effect. */
export async function send<T>(method: string, path: string, body?: unknown, name?: string): Promise<T> {
  return await fetchJson<T>(method, path, { body, name })
}

export type NewKey = Key & { readonly key: string }
