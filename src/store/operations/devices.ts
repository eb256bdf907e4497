import { limits } from '../../kernel/limits.ts'
import type {
  Device,
  DeviceDecision,
  DeviceLife,
  NewDevice,
  NewDeviceCode,
  Redemption,
} from '../../keys/device-store.ts'
import { NO_LIMITS } from '../../keys/key-store.ts'
import type { PersonRecord } from '../../keys/person-store.ts'
import { bool, recordOf, text } from '../rows.ts'
import { endKey, insertKey, recordKeyEvent } from './keys.ts'
import { readMemberLimits } from './member-limits.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { lockPerson, personActor, readPerson } from './people.ts'
import { FOR_DELETE, FOR_UPDATE, now, type Sql, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

/** Sign-in of devices. The codes are in the database, because a device may ask another node than the person. */

/** Expired codes that are deleted when a code is created. More than one, so that they become fewer. */
const PRUNED_MAX = 10

/** False: the code that people compare is in use. */
const createDeviceCode = atomic(function* ({ lifeMs, atMs, ...code }: NewDeviceCode): Operation<boolean> {
  yield sql`
    DELETE FROM device_code WHERE digest IN (
      SELECT digest FROM device_code WHERE expires_at_ms <= (SELECT ${now(atMs)})
      ORDER BY expires_at_ms LIMIT ${PRUNED_MAX} ${FOR_DELETE})`
  const expiresAtMs = sql`${now(atMs)} + ${lifeMs}`
  const unlessUsed = sql`ON CONFLICT (user_code) DO NOTHING RETURNING digest`
  return (yield insertInto('device_code', [{ ...code, expiresAtMs }], unlessUsed)).length > 0
})

/** Returns what the device calls itself; null: nobody waits with this code. */
function* decideDevice({ userCode, personId, status, atMs }: DeviceDecision): Operation<string | null> {
  const [row] = yield sql`
    UPDATE device_code SET status = ${status}, person_id = ${personId}
    WHERE user_code = ${userCode} AND status = 'pending' AND expires_at_ms > (SELECT ${now(atMs)}) RETURNING client`
  return row === undefined ? null : text(row, 'client')
}

/** A device asks whether it was approved. An approved code is exchanged for a key, once. */
const redeemDeviceCode = atomic(function* (digest: Uint8Array, device: NewDevice): Operation<Redemption> {
  const ofCode = sql`digest = ${digest}`
  const [row] = yield sql`
    SELECT status, person_id, client, polled_at_ms, expires_at_ms FROM device_code WHERE ${ofCode} ${FOR_UPDATE}`
  const nowMs = yield* currentTime(device.atMs)
  const code = row && recordOf<Waiting>(row)
  if (code === undefined || code.expiresAtMs <= nowMs) return { kind: 'expired' }
  if (code.status === 'pending') {
    yield sql`UPDATE device_code SET polled_at_ms = ${nowMs} WHERE ${ofCode}`
    const isTooFast = nowMs - (code.polledAtMs ?? -Infinity) < limits.devicePollMs
    return { kind: isTooFast ? 'too_fast' : 'pending' }
  }
  yield sql`DELETE FROM device_code WHERE ${ofCode}`
  const person = code.status === 'approved' ? yield* createDevice(code, device) : null
  return person === null ? { kind: 'denied' } : { kind: 'signed_in', email: person.email }
})

interface Waiting extends Pick<NewDeviceCode, 'client'> {
  readonly status: string
  readonly personId: string
  readonly polledAtMs: number | null
  readonly expiresAtMs: number
}

/** Null: the person has been blocked since. */
function* createDevice(
  { personId, client: name }: Waiting,
  { usableMs, refreshableMs, atMs, ...key }: NewDevice,
): Operation<PersonRecord | null> {
  const locked = yield* lockPerson(personId, atMs)
  if (locked?.person.status !== 'active') return null
  const { person, nowMs } = locked
  const { accountId, budgetId } = person
  const actor = personActor(person)
  const excess = yield sql`
    SELECT id FROM api_key WHERE person_id = ${personId} AND revoked_at_ms IS NULL AND device_until_ms > ${nowMs}
    ORDER BY id DESC LIMIT 100 OFFSET ${limits.devicesPerPersonMax - 1}`
  for (const row of excess) yield* endKey(accountId, text(row, 'id'), nowMs, actor)
  const { allowedModels, logRequests } = yield* readMemberLimits(accountId)
  const value = yield* insertKey({
    ...NO_LIMITS,
    ...key,
    name,
    accountId,
    budgetId,
    personId,
    allowedModels,
    logRequests,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + usableMs,
    deviceUntilMs: nowMs + refreshableMs,
  })
  yield* recordKeyEvent('key.created', value, actor, nowMs)
  return person
}

const isRefreshable = (digest: Uint8Array, atMs: number): Sql =>
  sql`digest = ${digest} AND revoked_at_ms IS NULL AND device_until_ms > (SELECT ${now(atMs)})`

function* findDevice(digest: Uint8Array, atMs: number): Operation<Device | null> {
  const [row] = yield sql`
    SELECT id, account_id, person_id, expires_at_ms, coalesce(expires_at_ms > (SELECT ${now(atMs)}), true) AS is_usable
    FROM api_key WHERE ${isRefreshable(digest, atMs)}`
  return row === undefined ? null : { ...recordOf<Device>(row), isUsable: bool(row, 'is_usable') }
}

/** Makes the key usable again, also after it has expired. Null: it is not a device's any more. */
const refreshDevice = atomic(function* (
  digest: Uint8Array,
  { usableMs, refreshableMs, atMs }: DeviceLife,
): Operation<PersonRecord | null> {
  const device = yield* findDevice(digest, atMs)
  const locked = device && (yield* lockPerson(device.personId, atMs))
  if (locked?.person.status !== 'active') return null
  const { person, nowMs } = locked
  const refreshed = yield sql`
    UPDATE api_key SET expires_at_ms = ${nowMs + usableMs}, device_until_ms = ${nowMs + refreshableMs}
    WHERE ${isRefreshable(digest, atMs)} RETURNING id`
  return refreshed.length === 0 ? null : person
})

const revokeDevice = atomic(function* (digest: Uint8Array, atMs: number): Operation<void> {
  const device = yield* findDevice(digest, atMs)
  const person = device && (yield* readPerson(device.personId, atMs))
  if (device !== null && person !== null)
    yield* endKey(device.accountId, device.id, atMs, personActor(person))
})

export const DEVICES = {
  brief: { createDeviceCode, decideDevice, redeemDeviceCode, findDevice, refreshDevice, revokeDevice },
  reads: {},
}
