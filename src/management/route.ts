import type { Exchange, WholeReply } from '../http/exchange.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Refusal } from '../kernel/errors.ts'
import type { IdSource } from '../kernel/ids.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import type { KeyStore } from '../keys/key-store.ts'
import type { Caller } from '../keys/recognition.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { SettlementWatch } from '../ledger/settlement-watch.ts'

/** What the endpoints of the service itself work with. */
export interface Management {
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly digestKey: DigestKey
  readonly servicePrefix: string
  readonly store: KeyStore & LedgerStore
  readonly settlements: SettlementWatch
}

export interface OwnRequest {
  readonly exchange: Exchange
  readonly caller: Caller
  /** The values of the template's `{…}` segments, in order. */
  readonly params: readonly string[]
  /** The parsed JSON body; an absent one is `{}`. */
  readonly body: unknown
}

export type OwnReply =
  | { readonly kind: 'reply'; readonly reply: WholeReply }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** One endpoint. Each has a file of its own. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly template: string
  /** Who may call it. What an API key may, an admin key may too. */
  readonly access: 'admin' | 'any_key'
  handle(request: OwnRequest, management: Management): Promise<OwnReply>
}

export function replyJson(status: number, value: unknown, headers: readonly string[] = []): OwnReply {
  const body = Buffer.from(JSON.stringify(value))
  return {
    kind: 'reply',
    reply: {
      status,
      headers: ['content-type', 'application/json', 'content-length', String(body.length), ...headers],
      body,
    },
  }
}

export function replyRefused(refusal: Refusal): OwnReply {
  return { kind: 'refused', refusal }
}
