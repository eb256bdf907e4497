import type { Config } from '../config.ts'
import { createSettlementWatch } from '../gateway/settle.ts'
import { createUlidSource } from '../kernel/ids.ts'
import type { Caller } from '../keys/credential.ts'
import { WaitingCalls } from '../ledger/unsent-calls.ts'
import type { Management } from '../management/route.ts'
import { answerInProcess } from '../management/router.ts'
import { createResolveHost } from '../webhooks/endpoint-address.ts'
import { openBooks, placeOfBooks } from './books.ts'
import { type Asked, queryText, type Transport } from './transport.ts'

/** A process that can write to the data directory or the database is the operator. */
const OPERATOR: Caller = { kind: 'admin_key', keyId: 'command line', accountId: 'default' }

/** The management API in this process, on the books themselves: beside running gateways or without one. */
export async function openLocalTransport(config: Config): Promise<Transport> {
  const { store, clock, digestKey, webhookSealer } = await openBooks(config)
  const management: Management = {
    clock,
    nextUlid: createUlidSource(clock),
    digestKey,
    servicePrefix: config.prefix,
    store,
    settlements: createSettlementWatch(),
    // Calls wait, and are refused, in another process.
    waitingCalls: new WaitingCalls(),
    refusedCalls: { written: async () => {} },
    node: null,
    scrapeMetrics: () => Promise.reject(new Error('metrics are those of a running gateway')),
    // Calls wait in another process, which looks at the limits again by itself.
    limitsMoved() {},
    webhooks: {
      sealer: webhookSealer,
      rules: {
        allowPrivate: config.webhooksAllowPrivate,
        resolveHost: createResolveHost(config.webhooksAllowPrivate),
      },
      // A running gateway looks for deliveries every few seconds.
      wake() {},
    },
  }
  const answer = (method: string, path: string, { query, body, idempotencyKey }: Asked) =>
    answerInProcess(
      {
        method,
        target: { path, query: queryText(query) },
        body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
        onceName: idempotencyKey ?? null,
      },
      OPERATOR,
      management,
    )

  return {
    place: placeOfBooks(config),
    async send(method, path, asked) {
      const answered = await answer(method, path, asked)
      if (answered.kind === 'stream') throw new Error(`${path} is answered as a stream`)
      const { status, headers, body } = answered.reply
      return { status, headers: headersOf(headers), text: body.toString() }
    },
    async stream(path, query) {
      const { kind, reply } = await answer('GET', path, { query })
      return { status: reply.status, chunks: kind === 'stream' ? reply.chunks : once(reply.body) }
    },
    close: () => store.close(),
  }
}

function headersOf(flat: readonly string[]): Headers {
  const headers = new Headers()
  for (let at = 0; at < flat.length; at += 2) headers.append(flat[at] ?? '', flat[at + 1] ?? '')
  return headers
}

async function* once(body: Buffer): AsyncGenerator<Buffer> {
  yield body
}
