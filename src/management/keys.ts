import { listOf } from '../api/fields.ts'
import {
  createdKeySchema,
  type KeyEditFields,
  keyEditFields,
  keyListQuery,
  keySchema,
  newKeyFields,
  rotateFields,
} from '../api/key.ts'
import { keyObject } from '../api/objects.ts'
import { NAME_CHARS_MAX, nearestName } from '../kernel/vocabulary.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { KEY_LIMITS, type KeyChanges, type KeyRecord, NO_LIMITS } from '../keys/key-store.ts'
import { findModel, type PriceBook, suggestModel } from '../pricing/price-book.ts'
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
  replyPage,
  sent,
} from './route.ts'

const shown = (key: KeyRecord, nowMs: number, { waitingCalls }: Management) =>
  keyObject(key, nowMs, waitingCalls.countOf(key.id))

function keyChanges(fields: KeyEditFields): KeyChanges {
  const limits = KEY_LIMITS.map(({ name, field }) => [name, fields[field]] as const)
  return sent({ name: fields.name, ...Object.fromEntries(limits) }) as KeyChanges
}

// Refusals

export function refusedMissingKey(): Refused {
  return refused('not_found', 'There is no key with this id.')
}

function refusedFinalKey(key: KeyRecord): Refused {
  const how = key.revokedAtMs === null ? 'has expired' : 'is revoked'
  return refused('conflict', `This key ${how} and can no longer be changed.`)
}

function refusedPastExpiry(): Refused {
  return refused('bad_request', 'expires_at must be in the future.', 'expires_at')
}

/** The refusal of an allowlist entry that matches no id or alias of the price book; null if all match. */
export function refuseUnknownModel(
  entries: readonly string[],
  { versions }: PriceBook,
  nowMs: number,
): Refused | null {
  // Only the current version counts.
  const current = versions.filter((_, i) => (versions[i + 1]?.effectiveFromMs ?? Infinity) > nowMs)
  const names = [...new Set(current.flatMap((version) => [...version.names.keys()]))]
  for (const entry of entries) {
    const isPattern = entry.endsWith('*')
    const text = isPattern ? entry.slice(0, -1) : entry
    if (current.some((version) => findModel(version, text) !== null)) continue
    if (isPattern && names.some((name) => name.startsWith(text))) continue
    // The closest model, however far it is.
    const meant = suggestModel(names, entry) ?? nearestName(text.slice(0, NAME_CHARS_MAX), names, Infinity)
    const hint = meant === null ? '' : ` Did you mean ${meant}?`
    const message = `allowed_models: ${JSON.stringify(entry)} matches no model in the price book.${hint}`
    return refused('unknown_model', message, 'allowed_models')
  }
  return null
}

function refuseFields(
  { allowed_models: models }: KeyEditFields,
  { node, clock }: Management,
): Refused | null {
  return models == null ? null : refuseUnknownModel(models, node.prices().book, clock.nowMs())
}

// Endpoints

/** A new secret, and what is stored of it. */
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
    'Only this answer has the secret. Unknown fields are refused, so that a misspelt limit does not create a key without it.',
  body: newKeyFields,
  repeatable: true,
  status: 201,
  answer: createdKeySchema,
  async handle({ accountId, actor, body, idempotency }, management) {
    const wrong = refuseFields(body, management)
    if (wrong !== null) return wrong
    const { secret, record } = mint(management)
    const key = {
      ...NO_LIMITS,
      ...keyChanges(body),
      ...record,
      name: body.name,
      accountId,
    }
    const result = await management.store.createKey(key, idempotency, actor)
    if (result.kind === 'conflict') return refusedOtherCommand()
    if (result.kind === 'born_expired') return refusedPastExpiry()
    const object = shown(result.value, record.createdAtMs, management)
    // A replay cannot show the first secret, and this new one belongs to no key.
    return replyOnce(result, result.kind === 'repeated' ? object : { ...object, key: secret.reveal() })
  },
})

const listKeys = defineRoute({
  endpoint: 'GET /v1/keys',
  operationId: 'list_keys',
  summary: 'List API keys, newest first',
  query: keyListQuery,
  answer: listOf(keySchema),
  async handle({ listedAccountId: accountId, query }, management) {
    const { status = null, search = null, after = null, limit } = query
    const atMs = management.clock.nowMs()
    const asked = { accountId, status, search, after, limit, atMs }
    return replyPage(await management.store.listKeys(asked), (key) => shown(key, atMs, management))
  },
})

async function showKey(accountId: string, id: string, management: Management): Promise<OwnReply> {
  const nowMs = management.clock.nowMs()
  const key = await management.store.getKey(accountId, id, nowMs)
  return key === null ? refusedMissingKey() : replyJson(200, shown(key, nowMs, management))
}

/** A key's holder may see its limits and what is left. */
const getOwnKey = defineRoute({
  endpoint: 'GET /v1/keys/me',
  operationId: 'get_own_key',
  summary: 'Show the API key of this request',
  answer: keySchema,
  async handle({ caller }, management) {
    if (caller.kind === 'admin_key') {
      return refused(
        'not_found',
        'This endpoint is for API keys. GET /v1/keys/{id} shows a key to an admin key.',
      )
    }
    return await showKey(caller.accountId, caller.keyId, management)
  },
})

const getKey = defineRoute({
  endpoint: 'GET /v1/keys/{id}',
  operationId: 'get_key',
  summary: 'Show an API key',
  answer: keySchema,
  handle: ({ accountId, params: [id = ''] }, management) => showKey(accountId, id, management),
})

export const updateKey = defineRoute({
  endpoint: 'PATCH /v1/keys/{id}',
  operationId: 'update_key',
  summary: 'Change an API key',
  description:
    'Changes the fields that are sent and leaves the others; null removes a limit. It applies from the next call on, and ' +
    'recorded spend stays. Budgets, rate and mode change for all keys that share the budget. A revoked or expired key cannot be ' +
    'changed.',
  body: keyEditFields,
  answer: keySchema,
  async handle({ accountId, actor, params: [id = ''], body }, management) {
    const nowMs = management.clock.nowMs()
    if ((body.expires_at ?? Infinity) <= nowMs) return refusedPastExpiry()
    const wrong = refuseFields(body, management)
    if (wrong !== null) return wrong
    const edit = await management.store.updateKey(accountId, id, keyChanges(body), nowMs, actor)
    if (edit.kind === 'none') return refusedMissingKey()
    if (edit.kind === 'final') return refusedFinalKey(edit.key)
    management.limitsMoved()
    return replyJson(200, shown(edit.key, nowMs, management))
  },
})

/**
 * Revocation is immediate and final: it is durable when answered, and key state is cached nowhere. The request body is
 * ignored, so that it cannot delay a revocation.
 */
async function revoke(
  { accountId, actor, params: [id = ''] }: OwnRequest,
  management: Management,
): Promise<OwnReply> {
  const nowMs = management.clock.nowMs()
  const key = await management.store.revokeKey(accountId, id, nowMs, actor)
  if (key === null) return refusedMissingKey()
  // Waiting calls of this key are refused now.
  management.limitsMoved()
  return replyJson(200, shown(key, nowMs, management))
}

export const deleteKey = defineRoute({
  endpoint: 'DELETE /v1/keys/{id}',
  operationId: 'delete_key',
  summary: 'Revoke an API key, like POST /v1/keys/{id}/revoke',
  description: 'The record and its spend are retained. Repeating the request returns the same record.',
  answer: keySchema,
  handle: revoke,
})

export const revokeKey = defineRoute({
  endpoint: 'POST /v1/keys/{id}/revoke',
  operationId: 'revoke_key',
  summary: 'Revoke an API key, immediately and for good',
  description: 'Running calls finish. Repeating the request returns the same record. The body is ignored.',
  answer: keySchema,
  handle: revoke,
})

/** Both keys work until clients have switched; then the old one ends. */
export const rotateKey = defineRoute({
  endpoint: 'POST /v1/keys/{id}/rotate',
  operationId: 'rotate_key',
  summary: 'Create a successor of a key',
  description:
    'The new key copies name, limits and metadata, and draws on the same budget. Only this answer has its secret. A revoked ' +
    'or expired key cannot be rotated.',
  body: rotateFields,
  repeatable: true,
  status: 201,
  answer: createdKeySchema,
  async handle({ accountId, actor, params: [id = ''], body, idempotency }, management) {
    const { secret, record } = mint(management)
    const nowMs = record.createdAtMs
    const { old_expires_in_seconds: seconds } = body
    const successor = { ...record, oldExpiresAtMs: seconds === undefined ? null : nowMs + seconds * 1_000 }
    const rotation = await management.store.rotateKey(accountId, id, successor, idempotency, actor)
    if (rotation.kind === 'none') return refusedMissingKey()
    if (rotation.kind === 'final') return refusedFinalKey(rotation.key)
    if (rotation.kind === 'conflict') return refusedOtherCommand()
    management.limitsMoved()
    const object = shown(rotation.value, nowMs, management)
    return replyOnce(rotation, rotation.kind === 'repeated' ? object : { ...object, key: secret.reveal() })
  },
})

export const keyRoutes = [createKey, listKeys, getOwnKey, getKey, updateKey, deleteKey, revokeKey, rotateKey]
