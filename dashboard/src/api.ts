import type { Key } from '../../src/api/key.ts'
import { withAccount } from './router.tsx'

export type { Account } from '../../src/api/account.ts'
export type { AdminKey } from '../../src/api/admin-key.ts'
export type { BalanceObject as Balance, Credit } from '../../src/api/credit.ts'
export type { EventObject as ActivityEvent } from '../../src/api/event.ts'
export type { ListOf } from '../../src/api/fields.ts'
export type { Key } from '../../src/api/key.ts'
export type {
  OverviewObject as Overview,
  PriceBookObject as PriceBook,
  PricedModel,
  Session,
} from '../../src/api/overview.ts'
export type { Bill, RequestRecord as Call } from '../../src/api/request.ts'
export type { Usage, UsageBucketObject as Bucket } from '../../src/api/usage.ts'
export type { Delivery, Webhook } from '../../src/api/webhook.ts'

/** Calls the gateway's API. The cookie of the session replaces the admin key. */

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null

  constructor(status: number, code: string, message: string, requestId: string | null) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

let onEnded: (() => void) | null = null

/** Calls `ended` when an answer shows that the session has ended. Null: nobody is signed in. */
export function watchSession(ended: (() => void) | null): void {
  onEnded = ended
}

/** Accounts, prices and sessions belong to the installation, not to the account that an operator acts in. */
export function urlOf(path: string): string {
  return /^\/gateway\/v1\/(accounts(?!\/self)|prices|session)/.test(path) ? path : withAccount(path)
}

export async function fetchJson<T>(
  method: string,
  path: string,
  { body, name, signal }: { body?: unknown; name?: string | undefined; signal?: AbortSignal } = {},
): Promise<T> {
  let response: Response
  try {
    response = await fetch(urlOf(path), {
      method,
      cache: 'no-store',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(name === undefined ? {} : { 'idempotency-key': name }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', 'The gateway does not answer. Check that it runs.', null)
  }
  const text = await response.text()
  if (!response.ok) throw errorOf(response, text)
  const isLines = response.headers.get('content-type')?.includes('ndjson')
  return JSON.parse(isLines ? `[${text.trim().replaceAll('\n', ',')}]` : text || 'null')
}

function errorOf(response: Response, text: string): ApiError {
  const { status } = response
  const id = [...response.headers].find(([name]) => name.endsWith('-request-id'))?.[1] ?? null
  let error: { code?: string; message?: string } = {}
  try {
    error = JSON.parse(text).error ?? {}
  } catch {
    // An answer without an error object comes from a proxy in between, so only its status is shown.
  }
  if (status === 401) onEnded?.()
  return new ApiError(status, error.code ?? `http_${status}`, error.message ?? `HTTP ${status}`, id)
}

/** `name`: the idempotency key. A command that is sent again with the same name has no further effect. */
export async function send<T>(method: string, path: string, body?: unknown, name?: string): Promise<T> {
  return await fetchJson<T>(method, path, { body, name })
}

export const save = <T>(path: string, edited: { readonly id: string } | null, body: object) =>
  edited === null ? send<T>('POST', path, body) : send<T>('PATCH', `${path}/${edited.id}`, body)

export type NewKey = Key & { readonly key: string }
