import type { RawHeaders } from '../http/raw-headers.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Surface } from '../kernel/surface.ts'
import type { TokenCounts } from '../ledger/call-columns.ts'
import type { Endpoint } from '../providers/endpoint.ts'

/** A call that has ended or was refused, for the terminal, the log and traces. */
export interface EndedCall {
  readonly requestId: string
  /** Null of a refused call: the store finds out later whose it was. */
  readonly keyId: string | null
  readonly surface: Surface
  readonly method: string
  /** As it was sent: it may have secrets in it, and goes to the terminal of the operator alone. */
  readonly path: string
  /** Null for a path that is in no table. */
  readonly endpoint: Endpoint | null
  /** Without secrets, as all texts below are. */
  readonly modelAsked: string | null
  readonly modelServed: string | null
  /** Upstream's, or that of the refusal; null where upstream gave no answer. */
  readonly status: number | null
  /** Of the error table: why it was refused, or why upstream could not be asked. */
  readonly code: string | null
  /** The reply broke off. */
  readonly cut: boolean
  readonly tokens: TokenCounts | null
  readonly costNanos: Nanos
  readonly endedAtMs: number
  /** From its head to its end. */
  readonly ms: number
  /** Of the request, for the trace that it belongs to. */
  readonly headers: RawHeaders
  /** Where it went; null if it went nowhere. */
  readonly upstream: URL | null
}

/** Told of every call when all is done. Must not fail, and must not wait. */
export type ObserveCall = (call: EndedCall) => void

/** Told of every call, all of them; null where there are none, and nothing has to be put together for them. */
export function observeAll(observers: readonly (ObserveCall | undefined)[]): ObserveCall | null {
  const all = observers.filter((observe) => observe !== undefined)
  if (all.length <= 1) return all[0] ?? null
  return (call) => {
    for (const observe of all) observe(call)
  }
}
