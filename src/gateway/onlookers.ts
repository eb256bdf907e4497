import type { Exchange } from '../http/exchange.ts'
import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/read-buffer.ts'
import type { Admission } from '../ledger/call.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import type { ReplyHead } from './answer.ts'
import type { Gateway } from './gateway.ts'
import { logBodies } from './log-bodies.ts'
import type { Onlooker } from './onlooker.ts'
import type { RequestBody } from './read.ts'
import { mayUploadBatch, watchBatchFile } from './watch-batch-file.ts'

interface LookedAt {
  readonly exchange: Exchange
  readonly endpoint: Endpoint | null
  readonly admission: Admission & { readonly kind: 'admitted' }
}

/** Who looks at a call besides the meter; mostly nobody. Counts what was sent for all of them. */
export class Onlookers {
  readonly #all: readonly Onlooker[]
  readonly #requestId: string
  readonly #gateway: Gateway
  #sentBytes = 0

  constructor(call: LookedAt, gateway: Gateway) {
    this.#all = onlookersOf(call, gateway)
    this.#requestId = call.exchange.requestId
    this.#gateway = gateway
  }

  /** Of the request's body, as far as it has gone. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  /** Somebody has to be done before the client gets a JSON reply. */
  get holdJson(): boolean {
    return this.#all.some((onlooker) => onlooker.beforeAnswer)
  }

  /** A body that was held back goes in one piece; one that flows through is seen as it does. */
  async seeHeld(body: RequestBody): Promise<void> {
    if (body.kind !== 'held') return
    if (this.#all.length > 0) this.sent(await body.held.beginning(limits.loggedBodyBytesMax))
    this.#sentBytes = body.held.length
  }

  sent(chunk: Borrowed): void {
    this.#sentBytes += chunk.length
    for (const onlooker of this.#all) onlooker.sent(chunk)
  }

  received(chunk: Borrowed): void {
    for (const onlooker of this.#all) onlooker.received(chunk)
  }

  /** The call is settled and not answered yet: those whose work the client may build on do it now. */
  async callSettled(head: ReplyHead | null, whole: boolean): Promise<void> {
    for (const onlooker of this.#all) if (onlooker.beforeAnswer) await this.#tell(onlooker, head, whole)
  }

  /** The call is over, however it ended. The others do their work when nobody waits for it, one after the other. */
  callOver(head: ReplyHead | null, whole: boolean): void {
    for (const onlooker of this.#all) {
      if (!onlooker.beforeAnswer) this.#gateway.afterwards.add(() => this.#tell(onlooker, head, whole))
    }
  }

  /** What onlookers make of it is theirs: if that fails, the call is none the worse for it. */
  async #tell(onlooker: Onlooker, head: ReplyHead | null, whole: boolean): Promise<void> {
    try {
      await onlooker.ended({ head, whole, sentBytes: this.#sentBytes })
    } catch (error) {
      const about = { request: this.#requestId, cause: (error as Error).message }
      this.#gateway.log.error(about, 'what was seen of a call could not be kept')
    }
  }
}

const NOBODY: readonly Onlooker[] = []

function onlookersOf({ exchange, endpoint, admission }: LookedAt, gateway: Gateway): readonly Onlooker[] {
  const uploads = mayUploadBatch(endpoint)
  if (!uploads && !admission.logRequests) return NOBODY
  const { accountId, keyId } = admission
  const { headers, requestId, names } = exchange
  const { store, clock, afterwards, log, bodiesBytesMax } = gateway
  const atMs = clock.nowMs()
  const onlookers: Onlooker[] = []
  if (uploads) onlookers.push(watchBatchFile(headers, { accountId, keyId, atMs }, store))
  if (!admission.logRequests) return onlookers
  if (afterwards.tryExpect(limits.bodiesBeingLoggedMax)) {
    onlookers.push(logBodies({ requestId, headers, atMs, redact: names.redact, store, bodiesBytesMax }))
  } else log.warn({ request: requestId }, 'too many bodies are being logged; those of this call are not')
  return onlookers
}
