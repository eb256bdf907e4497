import { z } from 'zod'
import type { RawNumber } from '../kernel/money.ts'
import { SURFACE_NAMES } from '../kernel/surface.ts'
import type { CallRecord, CallState } from '../ledger/call.ts'
import { formatInstant, instant } from './instant-field.ts'
import { keyId } from './key-object.ts'
import { usd, usdAmount } from './usd.ts'

export const CALL_STATES = [
  'waiting',
  'in_flight',
  'settled',
  'released',
  'interrupted',
  'refused',
] as const satisfies readonly CallState[]

const count = () => z.int().min(0)

export const tokensSchema = z.object({
  input_tokens: count(),
  output_tokens: count(),
  cache_read_tokens: count(),
  cache_write_tokens: count(),
})

export const requestSchema = z
  .object({
    id: z.string().meta({ description: 'As in a header of the answer to the call: `req_` and a ULID.' }),
    object: z.literal('request'),
    key_id: keyId(),
    state: z.enum(CALL_STATES).meta({
      description:
        'Waiting calls are held back until there is room under a cap or credit. Settled calls are paid for, released ' +
        'ones used nothing, interrupted ones were cut off before anybody could say what they used, by a crash or by ' +
        'upstream. Refused ones were never sent; `code` says why.',
    }),
    started_at: instant(),
    ended_at: instant().nullable(),
    method: z.string(),
    path: z.string(),
    surface: z.enum(SURFACE_NAMES),
    model: z.string().nullable().meta({ description: 'The model asked for.' }),
    model_served: z.string().nullable(),
    status: z.int().min(100).max(999).nullable().meta({
      description: 'The status that upstream answered with; of a refused call, that of the refusal.',
    }),
    stop_reason: z.string().nullable(),
    streamed: z.boolean(),
    estimated: z.boolean().meta({ description: 'Upstream reported no usage, or not all of it.' }),
    unpriced: z.boolean().meta({ description: 'Something in it had no price of its own.' }),
    overrun: z.boolean().meta({ description: 'It cost more than was held for it.' }),
    priced_as_requested: z
      .boolean()
      .meta({ description: 'The model served had no price; the one asked for has.' }),
    usage: tokensSchema
      .nullable()
      .meta({ description: 'Null while the call waits or is in flight, as all its figures are.' }),
    cost_usd: usdAmount('What the call cost.').nullable(),
    list_cost_usd: usdAmount('What it would have cost at list price.').nullable(),
    lost_list_cost_usd: usdAmount(
      'What an interrupted call may have cost at list price; nobody is charged it.',
    ),
    balance_usd: usdAmount('The balance of the account after it.').nullable(),
    upstream_ms: z.number().nullable().meta({ description: 'Milliseconds spent upstream.' }),
    overhead_ms: z.number().nullable().meta({ description: 'Milliseconds spent in the gateway.' }),
    price_version: z.string().nullable().meta({ description: 'Null of a call that was never sent.' }),
    upstream_request_id: z.string().nullable(),
    client_ip: z.string(),
    user_agent: z.string().nullable(),
    bytes_in: count(),
    bytes_out: count(),
    credited: z.boolean().meta({ description: 'Its cost was given back.' }),
    code: z
      .string()
      .nullable()
      .meta({ description: 'Of a refused call: the code of the error it was answered with.' }),
  })
  .meta({ id: 'request', description: 'A call that came through the gateway.' })

type Members = keyof z.infer<typeof requestSchema>

export type RequestObject = Readonly<
  Record<Exclude<Members, 'usage'>, string | number | boolean | null | RawNumber> & {
    usage: z.infer<typeof tokensSchema> | null
  }
>

/** A call as the API shows it. While it waits or is in flight its figures are null. */
export function requestObject(call: CallRecord): RequestObject {
  const open = call.state === 'in_flight' || call.state === 'waiting'
  return {
    id: call.requestId,
    object: 'request',
    key_id: call.keyId,
    state: call.state,
    started_at: formatInstant(call.startedAtMs),
    ended_at: formatInstant(call.endedAtMs),
    method: call.method,
    path: call.path,
    surface: call.surface,
    model: call.modelAsked,
    model_served: call.modelServed,
    status: call.status,
    stop_reason: call.stopReason,
    streamed: call.streamed,
    estimated: call.estimated,
    unpriced: call.unpriced,
    overrun: call.overrun,
    priced_as_requested: call.pricedAsRequested,
    usage: open
      ? null
      : {
          input_tokens: call.tokens.input,
          output_tokens: call.tokens.output,
          cache_read_tokens: call.tokens.cacheRead,
          cache_write_tokens: call.tokens.cacheWrite,
        },
    cost_usd: usd(call.costNanos),
    list_cost_usd: usd(call.listNanos),
    lost_list_cost_usd: usd(call.lostListNanos),
    balance_usd: usd(call.balanceNanos),
    upstream_ms: call.upstreamMs,
    overhead_ms: call.overheadMs,
    price_version: call.priceVersion,
    upstream_request_id: call.upstreamRequestId,
    client_ip: call.clientIp,
    user_agent: call.userAgent,
    bytes_in: call.bytesIn,
    bytes_out: call.bytesOut,
    credited: call.credited,
    code: call.code,
  }
}
