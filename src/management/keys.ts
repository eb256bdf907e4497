import { fieldOf, formatInstant } from '../api/field-names.ts'
import {
  type KeyEditFields,
  keyEditFields,
  keyListQuery,
  newKeyFields,
  type OwnKeyFields,
  rotateFields,
} from '../api/key.ts'
import { keyObject } from '../api/objects.ts'
import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { NAME_CHARS_MAX, nearestName } from '../kernel/nearest-name.ts'
import type { Secret } from '../kernel/secret.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { type KeyChanges, type KeyRecord, LIMIT_NAMES, NO_LIMITS } from '../keys/key-store.ts'
import type { NoNewKey } from '../keys/person-store.ts'
import { findPriceFor, type PriceBook, suggestModel } from '../pricing/price-book.ts'
import { personFilter } from './people.ts'
import { DEFAULT_ACCOUNT } from './resolve-account.ts'
import {
  type Answer,
  defineRoute,
  invalid,
  type Management,
  type OwnRequest,
  pageObject,
  type Refused,
  refused,
  replyIdempotent,
  withoutUndefined,
} from './route.ts'

const toObject = (key: KeyRecord, nowMs: number, { waitingCalls }: Management) =>
  keyObject(key, nowMs, waitingCalls.countOf(key.id))

function keyChanges(fields: KeyEditFields): KeyChanges {
  const limits = LIMIT_NAMES.map((name) => [name, fields[fieldOf(name)]] as const)
  return withoutUndefined({ name: fields.name, ...Object.fromEntries(limits) }) as KeyChanges
}

function refusedFinalKey(key: KeyRecord): Refused {
  const state = key.revokedAtMs === null ? 'has expired' : 'is revoked'
  return refused('conflict', `This key ${state} and can no longer be changed. Create a new key.`)
}

const PAST_EXPIRY = invalid('expires_at', 'expires_at must be in the future.')

/** The refusal of an allowlist entry that matches no id or alias of the price book; null if all match. */
export function refuseUnknownModel(
  entries: readonly string[],
  { versions }: PriceBook,
  nowMs: number,
): Refused | null {
  const current = versions.filter((_, i) => (versions[i + 1]?.effectiveFromMs ?? Infinity) > nowMs)
  const names = [...new Set(current.flatMap((version) => [...version.names.keys()]))]
  for (const entry of entries) {
    const isPattern = entry.endsWith('*')
    const text = isPattern ? entry.slice(0, -1) : entry
    if (current.some((version) => findPriceFor(version, text) !== null)) continue
    if (isPattern && names.some((name) => name.startsWith(text))) continue
    // Name the closest model, even if it is not similar.
    const meant = suggestModel(names, entry) ?? nearestName(text.slice(0, NAME_CHARS_MAX), names, Infinity)
    const hint = meant === null ? '' : ` Did you mean ${meant}?`
    const message = `allowed_models: ${JSON.stringify(entry)} matches no model in the price book.${hint}`
    return refused('unknown_model', message, 'allowed_models')
  }
  return null
}

export function checkAllowedModels(
  { allowed_models: models }: Pick<KeyEditFields, 'allowed_models'>,
  atMs: number,
  { node }: Management,
) {
  return models == null ? null : refuseUnknownModel(models, node.prices.book, atMs)
}

function mintApiKey(createdAtMs: number, { nextUlid, digestKey, servicePrefix }: Management) {
  const secret = mintKey(servicePrefix, 'live')
  const record = {
    id: `key_${nextUlid()}`,
    digest: digestKey(secret.reveal()),
    ...shownParts(secret, servicePrefix),
    createdAtMs,
  }
  return { secret, record }
}

/** The answer to a creation. A replay has no secret, because the database has only its digest. */
function withSecret(secret: Secret, atMs: number, management: Management) {
  return (key: KeyRecord, isNew: boolean) => {
    const object = toObject(key, atMs, management)
    return isNew ? { ...object, key: secret.reveal() } : object
  }
}

/** Why a person gets no further key, and what to do. */
function refuseNoKey(why: NoNewKey): Refused {
  switch (why.kind) {
    case 'not_active':
      return refused('invalid_api_key', 'The session has ended. Sign in again.')
    case 'too_many_keys':
      return refused(
        'conflict',
        `A person of this account may have ${why.keysMax} usable keys. Revoke one first, or rotate one with old_expires_in_seconds 0.`,
      )
    case 'too_many_today': {
      const headers = ['retry-after', String(why.retryAfterSeconds)]
      const message = `A person may create ${limits.personKeysPerDayMax} keys a day (UTC). Try again tomorrow.`
      return { kind: 'refused', refusal: refuse('rate_limit_exceeded', message, { headers }) }
    }
    case 'expires_too_late':
      return invalid('expires_at', `expires_at must be ${formatInstant(why.latestMs)} or earlier.`)
  }
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['name', 'expires_at', 'person'])

/** A key of the person who signed in. The account's limits for its people decide the rest. */
async function createOwnKey(
  { caller, actor, body, idempotency, atMs }: OwnRequest<unknown, OwnKeyFields>,
  management: Management,
): Promise<Answer> {
  if (caller.kind !== 'person')
    return invalid(
      'person',
      'person is for people who signed in. Leave it out to create the key of a service.',
    )
  const other = Object.keys(body).find((field) => !OWN_FIELDS.has(field))
  if (other !== undefined)
    return invalid(other, `${other} is set by the account for all its people. Send name and expires_at only.`)
  const { secret, record } = mintApiKey(atMs, management)
  const { personId, accountId } = caller
  const key = {
    ...record,
    personId,
    accountId: accountId ?? DEFAULT_ACCOUNT,
    name: body.name,
    expiresAtMs: body.expires_at ?? null,
  }
  const result = await management.store.createPersonKey(key, idempotency, actor)
  if (result.kind === 'already_expired') return PAST_EXPIRY
  if (result.kind === 'done' || result.kind === 'repeated' || result.kind === 'conflict')
    return replyIdempotent(result, withSecret(secret, atMs, management))
  return refuseNoKey(result)
}

export const createKey = defineRoute({
  summary: 'Create an API key',
  description:
    'Only this answer has the secret. Unknown fields are refused, so that a misspelt limit does not create a key without it.',
  body: newKeyFields,
  repeatable: true,
  status: 201,
  async handle(request, management) {
    const { accountId, actor, role, ownPersonId, body, idempotency, atMs } = request
    if (body.person === 'me' || role === 'member') return await createOwnKey(request, management)
    if (ownPersonId !== null)
      return refused(
        'insufficient_role',
        `You have the role ${role}, so you may create only your own keys. Send "person": "me".`,
        'person',
      )
    const wrong = checkAllowedModels(body, atMs, management)
    if (wrong !== null) return wrong
    const { secret, record } = mintApiKey(atMs, management)
    const key = { ...NO_LIMITS, ...keyChanges(body), ...record, name: body.name, accountId }
    const result = await management.store.createKey(key, idempotency, actor)
    if (result.kind === 'already_expired') return PAST_EXPIRY
    return replyIdempotent(result, withSecret(secret, atMs, management))
  },
})

export const listKeys = defineRoute({
  summary: 'List API keys, newest first',
  query: keyListQuery,
  async handle({ listedAccountId: accountId, ownPersonId, query, atMs }, management) {
    const { status = null, search = null, after = null, limit } = query
    const person = personFilter(ownPersonId, query.person)
    if (person.kind === 'refused') return person
    const asked = { accountId, personId: person.id, status, search, after, limit, atMs }
    return pageObject(await management.store.listKeys(asked), (key) => toObject(key, atMs, management))
  },
})

async function readKey(accountId: string, id: string, atMs: number, management: Management) {
  const key = await management.store.getKey(accountId, id, atMs)
  return key && toObject(key, atMs, management)
}

export const getOwnKey = defineRoute({
  summary: 'Show the API key of this request',
  async handle({ caller, atMs }, management) {
    if (caller.kind !== 'api_key') {
      return refused(
        'not_found',
        'This endpoint shows the API key that sends the request. Without one, use GET /v1/keys/{id}.',
      )
    }
    return await readKey(caller.accountId, caller.keyId, atMs, management)
  },
})

export const showKey = defineRoute({
  summary: 'Show an API key',
  handle: ({ accountId, id, atMs }, management) => readKey(accountId, id, atMs, management),
})

export const updateKey = defineRoute({
  summary: 'Change an API key',
  description:
    'Changes the fields that are sent and leaves the others; null removes a limit. The change applies to the next call. ' +
    'Recorded spend does not change. Budgets, rate and mode change for all keys that share the budget. A revoked or expired ' +
    'key cannot be changed.',
  body: keyEditFields,
  async handle({ accountId, actor, ownPersonId, id, body, atMs }, management) {
    const other = Object.keys(body).find((field) => field !== 'name')
    if (ownPersonId !== null && other !== undefined)
      return refused(
        'insufficient_role',
        `You may change only the name of your keys, not ${other}. Ask an admin.`,
        other,
      )
    if ((body.expires_at ?? Infinity) <= atMs) return PAST_EXPIRY
    const wrong = checkAllowedModels(body, atMs, management)
    if (wrong !== null) return wrong
    const edit = await management.store.updateKey(accountId, id, keyChanges(body), atMs, actor)
    if (edit.kind === 'none') return null
    if (edit.kind === 'final') return refusedFinalKey(edit.key)
    management.recheckWaitingCalls()
    return toObject(edit.key, atMs, management)
  },
})

/** Revocation is immediate and final. The body is ignored, so that it cannot delay a revocation. */
async function revoke({ accountId, actor, id, atMs }: OwnRequest, management: Management) {
  const key = await management.store.revokeKey(accountId, id, atMs, actor)
  if (key === null) return null
  management.recheckWaitingCalls()
  return toObject(key, atMs, management)
}

export const deleteKey = defineRoute({
  summary: 'Revoke an API key, like POST /v1/keys/{id}/revoke',
  description: 'The record and its spend are retained. Repeating the request returns the same record.',
  handle: revoke,
})

export const revokeKey = defineRoute({
  summary: 'Revoke an API key, immediately and for good',
  description: 'Running calls finish. Repeating the request returns the same record. The body is ignored.',
  handle: revoke,
})

export const rotateKey = defineRoute({
  summary: 'Create a successor of a key',
  description:
    'The new key copies name, limits and metadata, and draws on the same budget. Only this answer has its secret. A revoked ' +
    'or expired key cannot be rotated.',
  body: rotateFields,
  repeatable: true,
  status: 201,
  async handle({ accountId, actor, id, body, idempotency, atMs }, management) {
    const { secret, record } = mintApiKey(atMs, management)
    const { old_expires_in_seconds: seconds } = body
    const successor = { ...record, oldExpiresAtMs: seconds === undefined ? null : atMs + seconds * 1_000 }
    const rotation = await management.store.rotateKey(accountId, id, successor, idempotency, actor)
    if (rotation.kind === 'none') return null
    if (rotation.kind === 'final') return refusedFinalKey(rotation.key)
    if (rotation.kind === 'device')
      return refused('conflict', 'This key belongs to a device. Revoke it, and sign in again on the device.')
    if (rotation.kind === 'too_many_keys' || rotation.kind === 'too_many_today') return refuseNoKey(rotation)
    management.recheckWaitingCalls()
    return replyIdempotent(rotation, withSecret(secret, atMs, management))
  },
})
