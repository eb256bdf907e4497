import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { NANOS_PER_USD } from '../kernel/money.ts'
import type { KeyStatus } from '../kernel/vocabulary.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { type KeyChanges, type KeyLimits, type KeyRecord, keyStatus } from '../keys/key-store.ts'
import { nextMonthMs } from '../ledger/calendar.ts'
import type { CallRecord } from '../ledger/call.ts'
import { MODEL_NAME_CHARS_MAX } from '../metering/request-facts.ts'
import {
  formatInstant,
  instant,
  instantField,
  keyId,
  type Members,
  objectOf,
  schemaOf,
  textField,
  usd,
  usdAmount,
  usdField,
  wordParameter,
} from './fields.ts'
import {
  defineRoute,
  type Management,
  type OwnReply,
  type OwnRequest,
  type Refused,
  refused,
  refusedOtherCommand,
  replyJson,
  replyOnce,
} from './route.ts'

export const KEY_STATUSES = ['usable', 'revoked', 'expired'] as const satisfies readonly KeyStatus[]

// The fields of a key in requests

const keyFields = {
  name: textField('name', 120, { blank: false }).describe('What people call this key.'),
  monthly_budget_usd: usdField('monthly_budget_usd', { min: 0n, max: 1_000_000_000n * NANOS_PER_USD })
    .nullable()
    .optional()
    .describe(
      'The most this key may spend in a calendar month (UTC), in US dollars with at most 9 decimals. ' +
        'Null is no cap; 0 lets no billed call through.',
    ),
  allowed_models: z
    .array(
      // A name longer than any request may have must not be on an allowlist as if it could match.
      textField('Each of allowed_models', MODEL_NAME_CHARS_MAX, { unitsMax: MODEL_NAME_CHARS_MAX }),
      `allowed_models must be null or a list of 1 to ${limits.allowedModelsMax} model names.`,
    )
    .min(1, 'allowed_models must not be an empty list; null allows every model.')
    .max(limits.allowedModelsMax, `allowed_models must have at most ${limits.allowedModelsMax} entries.`)
    .refine((names) => new Set(names).size === names.length, 'allowed_models must not name a model twice.')
    .meta({ uniqueItems: true })
    .nullable()
    .optional()
    .describe('The models this key may call, by their exact names. Null is every model.'),
  log_requests: z
    .boolean('log_requests must be true or false.')
    .optional()
    .describe('Whether the bodies of calls with this key are kept with their records.'),
  expires_at: instantField('expires_at')
    .nullable()
    .optional()
    .describe('When the key stops working: a future instant in UTC. Null is never.'),
}

const newKeyFields = z.strictObject(keyFields)

/** Any of the fields; null takes a limit away. */
const keyEditFields = z.strictObject({ ...keyFields, name: keyFields.name.optional() })

/** The limits of a key for which none were sent. */
const NO_LIMITS: KeyLimits = {
  monthlyBudgetNanos: null,
  allowedModels: null,
  logRequests: false,
  expiresAtMs: null,
}

/** Only the fields that were sent: an edit must not touch the rest. */
function keyChanges(fields: z.infer<typeof keyEditFields>): KeyChanges {
  const { name, monthly_budget_usd, allowed_models, log_requests, expires_at } = fields
  return {
    ...(name === undefined ? {} : { name }),
    ...(monthly_budget_usd === undefined ? {} : { monthlyBudgetNanos: monthly_budget_usd }),
    ...(allowed_models === undefined ? {} : { allowedModels: allowed_models }),
    ...(log_requests === undefined ? {} : { logRequests: log_requests }),
    ...(expires_at === undefined ? {} : { expiresAtMs: expires_at }),
  }
}

// How a key is shown

interface ShownKey extends KeyRecord {
  readonly nowMs: number
  /** The number of the key's calls that wait, on this node. */
  readonly waiting: number
}

/** The secret is not part of a key: only its creation tells it, once. */
const keyMembers: Members<ShownKey> = {
  id: [keyId(), 'id'],
  object: [z.literal('key'), () => 'key'],
  name: [z.string(), 'name'],
  prefix: [z.string().describe('The first characters of the key, to tell keys apart.'), 'prefix'],
  last4: [z.string().describe('The last four characters of the key.'), 'last4'],
  status: [
    z.enum(KEY_STATUSES).describe('Revoked and expired are final.'),
    (key) => keyStatus(key, key.nowMs),
  ],
  monthly_budget_usd: [
    usdAmount('The cap of each month, or null where there is none.').nullable(),
    (key) => usd(key.monthlyBudgetNanos),
  ],
  month_spend_usd: [
    usdAmount('What the calls admitted in this month (UTC) have cost.'),
    (key) => usd(key.month.spentNanos),
  ],
  month_held_usd: [
    usdAmount('What the calls of this month that are open may still cost at most.'),
    (key) => usd(key.month.heldNanos),
  ],
  month_waiting: [
    z
      .int()
      .min(0)
      .describe('Calls that wait for room under the cap or for credit, on the node that answers.'),
    'waiting',
  ],
  month_lost_usd: [
    usdAmount('What the interrupted calls of this month may have cost at list price.'),
    (key) => usd(key.month.lostNanos),
  ],
  budget_resets_at: [
    instant().describe('When the next month begins.'),
    ({ nowMs }) => formatInstant(nextMonthMs(nowMs)),
  ],
  allowed_models: [
    z.array(z.string()).nullable().describe('The models this key may call; null is every model.'),
    'allowedModels',
  ],
  log_requests: [z.boolean(), 'logRequests'],
  expires_at: [instant().nullable(), (key) => formatInstant(key.expiresAtMs)],
  created_at: [instant(), (key) => formatInstant(key.createdAtMs)],
  revoked_at: [instant().nullable(), (key) => formatInstant(key.revokedAtMs)],
  last_used_at: [
    instant().nullable().describe('The last request that came with this key.'),
    (key) => formatInstant(key.lastUsedAtMs),
  ],
  rotated_from: [keyId().nullable().describe('The key in whose place this one was made.'), 'rotatedFrom'],
}

export const keySchema = schemaOf(keyMembers).meta({
  id: 'key',
  description: 'An API key and its limits. The secret is not part of it.',
})

const createdKeySchema = keySchema
  .extend({
    key: z
      .string()
      .optional()
      .describe('The secret. It is told once, and not when an Idempotency-Key repeats the request.'),
  })
  .meta({ id: 'created_key', description: 'A new API key.' })

export function keyObject(
  key: KeyRecord,
  nowMs: number,
  { waitingCalls }: Management,
): Record<string, unknown> {
  return objectOf(keyMembers, { ...key, nowMs, waiting: waitingCalls.countOf(key.id) })
}

/** A key as webhooks tell of it: without figures that are true on one node only. */
export function toldKey(key: KeyRecord, nowMs: number): Record<string, unknown> {
  const { month_waiting: _, ...object } = objectOf(keyMembers, { ...key, nowMs, waiting: 0 })
  return object
}

// The refusals of a key's endpoints

export function refusedMissingKey(): Refused {
  return refused('not_found', 'There is no key with this id.')
}

function refusedFinalKey(key: KeyRecord): Refused {
  const how = key.revokedAtMs === null ? 'has expired' : 'is revoked'
  return refused('conflict', `This key ${how} and cannot be changed any more.`)
}

/** A key that is born expired, or that an edit ends, is more likely a mistake; to end a key there is revocation. */
function refusedPastExpiry(): Refused {
  return refused('bad_request', 'expires_at must be in the future.', 'expires_at')
}

// The endpoints

/** A new secret, and the part of it that the store keeps. */
function mint({ clock, nextUlid, digestKey, servicePrefix }: Management) {
  const secret = mintKey(servicePrefix, 'live')
  const record = {
    id: `key_${nextUlid()}`,
    digest: digestKey(secret.reveal()),
    ...shownParts(secret, servicePrefix),
    createdAtMs: clock.nowMs(),
  }
  return { secret, record }
}

export const createKey = defineRoute({
  endpoint: 'POST /v1/keys',
  operationId: 'create_key',
  summary: 'Create an API key',
  description:
    'The secret is in this answer and nowhere else. Unknown fields are refused, so that a misspelt limit ' +
    'does not create a key without it.',
  body: newKeyFields,
  repeatable: true,
  success: { status: 201, schema: createdKeySchema },
  async handle({ caller, body, idempotency }, management) {
    const { secret, record } = mint(management)
    const limitsAndName = { ...NO_LIMITS, ...keyChanges(body), name: body.name }
    const key = { ...limitsAndName, ...record, accountId: caller.accountId }
    const result = await management.store.createKey(key, idempotency)
    if (result.kind === 'conflict') return refusedOtherCommand()
    if (result.kind === 'born_expired') return refusedPastExpiry()
    const object = keyObject(result.value, record.createdAtMs, management)
    // The secret of the first attempt is not known any more, and the secret made now belongs to no key.
    return replyOnce(result, result.kind === 'repeated' ? object : { ...object, key: secret.reveal() })
  },
})

async function showKey(accountId: string, id: string, management: Management): Promise<OwnReply> {
  const nowMs = management.clock.nowMs()
  const key = await management.store.getKey(accountId, id, nowMs)
  return key === null ? refusedMissingKey() : replyJson(200, keyObject(key, nowMs, management))
}

/** The holder of a key may know its limits, and how much of them is left. */
const getOwnKey = defineRoute({
  endpoint: 'GET /v1/keys/me',
  access: 'any_key',
  operationId: 'get_own_key',
  summary: 'Show the API key that this request comes with',
  success: { status: 200, schema: keySchema },
  errors: ['not_found'],
  async handle({ caller }, management) {
    if (caller.kind === 'admin_key') {
      return refused('not_found', 'An admin key has no record; this is for API keys.')
    }
    return await showKey(caller.accountId, caller.keyId, management)
  },
})

const lastUseMembers: Members<CallRecord> = {
  at: [instant(), (call) => formatInstant(call.startedAtMs)],
  user_agent: [z.string().nullable(), 'userAgent'],
  address: [z.string(), 'clientIp'],
  request_id: [z.string(), 'requestId'],
}

const shownKeySchema = keySchema
  .extend({
    last_used_by: schemaOf(lastUseMembers)
      .nullable()
      .optional()
      .describe('The client of the last call, also of one that was refused; null where the log has none.'),
  })
  .meta({ id: 'shown_key', description: 'An API key, with what used it last where that was asked for.' })

const getKey = defineRoute({
  endpoint: 'GET /v1/keys/{id}',
  operationId: 'get_key',
  summary: 'Show an API key',
  query: z.strictObject({
    expand: wordParameter('expand', ['last_used_by'], 'Adds `last_used_by`: which client used the key last.'),
  }),
  success: { status: 200, schema: shownKeySchema },
  errors: ['not_found'],
  async handle({ caller, params: [id = ''], query }, management) {
    const nowMs = management.clock.nowMs()
    const key = await management.store.getKey(caller.accountId, id, nowMs)
    if (key === null) return refusedMissingKey()
    const object = keyObject(key, nowMs, management)
    if (query.expand === undefined) return replyJson(200, object)
    const call = await lastCall(key, management)
    return replyJson(200, { ...object, last_used_by: call === null ? null : objectOf(lastUseMembers, call) })
  },
})

const ANY_CALL = {
  fromMs: null,
  toMs: null,
  model: null,
  status: null,
  minCostNanos: null,
  flag: null,
} as const

/** The key's call that began last, admitted or refused. */
async function lastCall(
  { accountId, id }: KeyRecord,
  { store, refusedCalls }: Management,
): Promise<CallRecord | null> {
  await refusedCalls.written()
  const pages = await Promise.all(
    [null, 'refused' as const].map((state) =>
      store.listCalls({ ...ANY_CALL, accountId, keyId: id, state }, null, 1),
    ),
  )
  const calls = pages.flatMap((page) => page.calls)
  return calls.sort((one, other) => other.startedAtMs - one.startedAtMs)[0] ?? null
}

/** A new limit counts from the next admission on, and leaves the sum spent as it is. */
export const updateKey = defineRoute({
  endpoint: 'PATCH /v1/keys/{id}',
  operationId: 'update_key',
  summary: 'Change an API key',
  description:
    'Changes the fields that are sent and leaves the others; null takes a limit away. It counts from the next ' +
    'call on, and what was spent stays spent. A revoked or expired key cannot be changed.',
  body: keyEditFields,
  success: { status: 200, schema: keySchema },
  errors: ['not_found', 'conflict'],
  async handle({ caller, params: [id = ''], body }, management) {
    const nowMs = management.clock.nowMs()
    const expiresAtMs = body.expires_at ?? Number.POSITIVE_INFINITY
    if (expiresAtMs <= nowMs) return refusedPastExpiry()
    const edit = await management.store.updateKey(caller.accountId, id, keyChanges(body), nowMs)
    if (edit.kind === 'none') return refusedMissingKey()
    if (edit.kind === 'final') return refusedFinalKey(edit.key)
    management.limitsMoved()
    return replyJson(200, keyObject(edit.key, nowMs, management))
  },
})

/**
 * Revocation is immediate and final. When it is answered, the store holds it durably, and since key state is kept nowhere
 * else, no request with the key is admitted any more. A repetition is answered with the same record. A body that comes
 * with the request is ignored, so that nothing about a body can delay a revocation.
 */
async function revoke({ caller, params: [id = ''] }: OwnRequest, management: Management): Promise<OwnReply> {
  const nowMs = management.clock.nowMs()
  const key = await management.store.revokeKey(caller.accountId, id, nowMs)
  if (key === null) return refusedMissingKey()
  // The key's calls that wait for room are refused now, not when their time is up.
  management.limitsMoved()
  return replyJson(200, keyObject(key, nowMs, management))
}

/** The record of a revoked key stays: its sum spent must be shown as long as there are books. */
export const deleteKey = defineRoute({
  endpoint: 'DELETE /v1/keys/{id}',
  operationId: 'delete_key',
  summary: 'Revoke an API key, like POST /v1/keys/{id}/revoke',
  description:
    'The record stays, so that what the key has spent can be shown. Repeating it answers the same.',
  success: { status: 200, schema: keySchema },
  errors: ['not_found'],
  handle: revoke,
})

export const revokeKey = defineRoute({
  endpoint: 'POST /v1/keys/{id}/revoke',
  operationId: 'revoke_key',
  summary: 'Revoke an API key, at once and for good',
  description:
    'Calls that are running finish. Repeating it answers the same record. A body that comes with it is ignored.',
  success: { status: 200, schema: keySchema },
  errors: ['not_found'],
  handle: revoke,
})

const YEAR_SECONDS = 31_536_000
const secondsExpected = `old_expires_in_seconds must be a whole number from 0 to ${YEAR_SECONDS}.`

/** Rotation is additive: both keys work until the traffic has moved, and then the old one ends. */
export const rotateKey = defineRoute({
  endpoint: 'POST /v1/keys/{id}/rotate',
  operationId: 'rotate_key',
  summary: 'Create a key in the place of another',
  description:
    'The new key has the name and the limits of the old one and a month of its own. Its secret is in this answer ' +
    'and nowhere else. A revoked or expired key cannot be rotated.',
  body: z.strictObject({
    old_expires_in_seconds: z
      .int(secondsExpected)
      .min(0, secondsExpected)
      .max(YEAR_SECONDS, secondsExpected)
      .optional()
      .describe(
        'Ends the old key this many seconds from now, unless it ends earlier anyway. Absent leaves it as it is.',
      ),
  }),
  repeatable: true,
  success: { status: 201, schema: createdKeySchema },
  errors: ['not_found', 'conflict'],
  async handle({ caller, params: [id = ''], body, idempotency }, management) {
    const { secret, record } = mint(management)
    const nowMs = record.createdAtMs
    const { old_expires_in_seconds: seconds } = body
    const successor = { ...record, oldExpiresAtMs: seconds === undefined ? null : nowMs + seconds * 1_000 }
    const rotation = await management.store.rotateKey(caller.accountId, id, successor, idempotency)
    if (rotation.kind === 'none') return refusedMissingKey()
    if (rotation.kind === 'final') return refusedFinalKey(rotation.key)
    if (rotation.kind === 'conflict') return refusedOtherCommand()
    management.limitsMoved()
    const object = keyObject(rotation.value, nowMs, management)
    return replyOnce(rotation, rotation.kind === 'repeated' ? object : { ...object, key: secret.reveal() })
  },
})

export const keyRoutes = [createKey, getOwnKey, getKey, updateKey, deleteKey, revokeKey, rotateKey]
