import type { RawHeaders } from '../http/raw-headers.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { TokenCounts } from '../ledger/call-columns.ts'
import type { Endpoint } from '../providers/endpoint.ts'

/** A call that has ended or was refused, for the terminal, the log and traces. */
export interface EndedCall {
  readonly requestId: string
  /** Null for a refused call: the store finds its key later. */
  readonly keyId: string | null
  readonly surface: Surface
  readonly method: string
  /** The path as it was sent: it may have secrets in it, and goes to the terminal of the operator alone. */
  readonly path: string
  /** Null for a path that is in no table. */
  readonly endpoint: Endpoint | null
  /** The model's name without secrets, as all texts below are. */
  readonly modelAsked: string | null
  readonly modelServed: string | null
  /** The status of upstream, or of the refusal; null where upstream gave no answer. */
  readonly status: number | null
  /** A code of the error table: why the call was refused, or why upstream could not be asked. */
  readonly code: string | null
  /** The reply broke off. */
  readonly cut: boolean
  readonly tokens: TokenCounts | null
  readonly costNanos: Nanos
  readonly endedAtMs: number
  /** The duration of the call, from its head to its end. */
  readonly ms: number
  /** The headers of the request, for the trace that it belongs to. */
  readonly headers: RawHeaders
  /** The upstream that the call went to; null if it was not sent. */
  readonly upstream: URL | null
}

/** Called with every call after it has ended. It must not fail, and must not wait. */
export type ObserveCall = (call: EndedCall) => void

/** One observer that calls all; null without any, so that no `EndedCall` is built. */
export function observeAll(observers: readonly (ObserveCall | undefined)[]): ObserveCall | null {
  const all = observers.filter((observe) => observe !== undefined)
  if (all.length <= 1) return all[0] ?? null
  return (call) => {
    for (const observe of all) observe(call)
  }
}
