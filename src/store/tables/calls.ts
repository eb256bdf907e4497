import type { ActorKind } from '../../kernel/actor.ts'
import type { CallState, CreditKind, ObjectKind, Surface } from '../../kernel/vocabulary.ts'
import { column } from '../columns.ts'
import { table } from '../table.ts'

/** Calls and everything that moves money. Amounts are nanodollars, times are milliseconds (UTC). */

const { amount, bytes, flag, integer, json, text } = column

/** The sums of an account's calls of a day, by model and key. */
const DAILY = {
  accountId: text,
  day: text,
  model: text,
  keyId: text,
  requests: integer.default(0),
  inputTokens: integer.default(0),
  outputTokens: integer.default(0),
  cacheReadTokens: integer.default(0),
  cacheWriteTokens: integer.default(0),
  costNanos: amount.default(0n),
  listNanos: amount.default(0n),
}

const DAILY_PARTS = {
  creditedNanos: amount.default(0n),
  unpricedRequests: integer.default(0),
  estimatedRequests: integer.default(0),
}

export const CALLS_TABLES = {
  /**
   * Open calls. Closing a hold deletes it, so it closes once. `deferred`: the cost is stated later by an object of the
   * provider. `standing`: a socket on which upstream may begin a turn; the log does not show it. `interrupted`: the call
   * is in the log already, and holds nothing, but its object may still state a cost.
   */
  hold: table('hold', {
    columns: {
      id: text,
      accountId: text,
      keyId: text,
      budgetId: text,
      // Whose key it was; null: a service's.
      personId: text.orNull(),
      // Empty: the hold survives the node.
      nodeId: text.default(''),
      state: text.of<'in_flight' | 'deferred' | 'standing' | 'interrupted'>().default('in_flight'),
      startedAtMs: integer,
      month: text,
      day: text,
      holdNanos: amount,
      holdListNanos: amount,
      // The hold as it counts against the account, and the rest of its bound.
      accountHoldNanos: amount.default(0n),
      shortNanos: amount.default(0n),
      // The bound without the budget's surcharge; 0 for calls without a bound.
      boundNanos: amount.default(0n),
      method: text,
      path: text,
      surface: text.of<Surface>(),
      modelAsked: text.orNull(),
      priceVersion: text,
      rating: text,
      clientIp: text,
      userAgent: text.orNull(),
      socketId: text.orNull(),
      sessionId: text.orNull(),
      requests: integer.default(1),
      // The reply that created the object.
      status: integer.orNull(),
      streamed: flag.default(false),
      upstreamMs: integer.orNull(),
      overheadMs: integer.orNull(),
      upstreamRequestId: text.orNull(),
      bytesIn: integer.default(0),
      bytesOut: integer.default(0),
      // The object, by which credential it was created (an account's id, or empty), and its next poll.
      kind: text.of<ObjectKind>().orNull(),
      scope: text.orNull(),
      objectId: text.orNull(),
      dueAtMs: integer.orNull(),
      claimedUntilMs: integer.orNull(),
      // The parts of a batch by model.
      parentId: text.orNull(),
      children: integer.orNull(),
      childrenNanos: amount.orNull(),
    },
    key: ['id'],
    indexes: {
      hold_by_object: {
        columns: ['surface', 'scope', 'objectId'],
        isUnique: true,
        where: 'due_at_ms IS NOT NULL',
      },
      hold_by_node: { columns: ['nodeId', 'id'], isOnlyOnPostgres: true },
    },
    checks: ['hold_nanos >= 0', 'hold_list_nanos >= 0', 'account_hold_nanos >= 0', 'requests >= 0'],
  }),

  /** Closed calls. Rows are only added, except that an interrupted call may settle late, and be credited back. */
  call: table('call', {
    columns: {
      id: text,
      accountId: text,
      keyId: text,
      personId: text.orNull(),
      state: text.of<CallState>(),
      startedAtMs: integer,
      endedAtMs: integer,
      month: text,
      day: text,
      method: text,
      path: text,
      surface: text.of<Surface>(),
      modelAsked: text.orNull(),
      modelServed: text.orNull(),
      status: integer.orNull(),
      stopReason: text.orNull(),
      streamed: flag.default(false),
      estimated: flag.default(false),
      unpriced: flag.default(false),
      overrun: flag.default(false),
      pricedAsRequested: flag.default(false),
      usage: text.orNull(),
      inputTokens: integer.default(0),
      outputTokens: integer.default(0),
      cacheReadTokens: integer.default(0),
      cacheWriteTokens: integer.default(0),
      holdNanos: amount,
      holdListNanos: amount,
      costNanos: amount,
      listNanos: amount,
      lostListNanos: amount.default(0n),
      balanceNanos: amount,
      upstreamMs: integer.orNull(),
      overheadMs: integer,
      priceVersion: text,
      rating: text,
      upstreamRequestId: text.orNull(),
      clientIp: text,
      userAgent: text.orNull(),
      bytesIn: integer.default(0),
      bytesOut: integer.default(0),
      credited: flag.default(false),
      objectId: text.orNull(),
      parentId: text.orNull(),
      children: integer.orNull(),
      childrenNanos: amount.orNull(),
      socketId: text.orNull(),
      sessionId: text.orNull(),
      requests: integer.default(1),
    },
    key: ['id'],
    indexes: {
      call_by_key: { columns: ['keyId', 'id'] },
      call_by_account: { columns: ['accountId', 'id'] },
      call_by_person: { columns: ['personId', 'id'], where: 'person_id IS NOT NULL' },
      call_by_socket: { columns: ['socketId', 'id'], where: 'socket_id IS NOT NULL' },
      call_by_object: { columns: ['objectId'], where: 'object_id IS NOT NULL' },
    },
    // Written as ORs: for an IN SQLite builds a temporary table in every statement that writes a call.
    checks: [
      "state = 'settled' OR state = 'released' OR state = 'interrupted'",
      'hold_nanos >= 0',
      'hold_list_nanos >= 0',
      'cost_nanos >= 0',
      'list_nanos >= 0',
      'requests >= 0',
    ],
  }),

  rollup: table('rollup', {
    columns: { ...DAILY, ...DAILY_PARTS },
    key: ['accountId', 'day', 'model', 'keyId'],
    indexes: {
      rollup_by_key: { columns: ['keyId', 'day'] },
    },
    isHot: true,
  }),

  /** The sums of removed calls, as in `rollup`. The sums of all calls are those of `call` and these. */
  removedTotal: table('removed_total', {
    columns: { ...DAILY, lostListNanos: amount.default(0n), ...DAILY_PARTS },
    key: ['accountId', 'day', 'model', 'keyId'],
    isHot: true,
  }),

  /** The ledger of everything that moves the balance and is not a call. A negative amount is a charge. */
  credit: table('credit', {
    columns: {
      id: text,
      accountId: text.references('account'),
      kind: text.of<CreditKind>(),
      amountNanos: amount,
      reason: text,
      actorKind: text.of<ActorKind>(),
      actorId: text.orNull(),
      actorName: text.orNull(),
      balanceAfterNanos: amount,
      atMs: integer,
      // What it moved for calls that were removed since, with their rows of credit_call.
      removedNanos: amount.default(0n),
    },
    key: ['id'],
    indexes: {
      credit_by_account: { columns: ['accountId', 'id'] },
    },
  }),

  /** The calls of a ledger entry. `once`: a call is credited once, and rerated once per price version. */
  creditCall: table('credit_call', {
    columns: {
      callId: text,
      once: text,
      creditId: text,
      amountNanos: amount,
    },
    key: ['callId', 'once'],
    indexes: {
      credit_call_by_credit: { columns: ['creditId', 'callId'] },
    },
  }),

  idempotency: table('idempotency', {
    columns: {
      accountId: text.references('account'),
      name: text,
      fingerprint: bytes,
      // The id of the record that the command made.
      subject: text,
      atMs: integer,
    },
    key: ['accountId', 'name'],
    indexes: {
      idempotency_by_age: { columns: ['atMs'] },
    },
  }),

  batchFile: table('batch_file', {
    columns: {
      accountId: text.references('account'),
      keyId: text.references('api_key'),
      fileId: text,
      // Null: not the file of a batch, or one that cannot be read.
      models: json<readonly string[]>().orNull(),
      // The bound of the cost of the file's requests, as JSON.
      bound: text.orNull(),
      atMs: integer,
    },
    key: ['accountId', 'fileId'],
    indexes: {
      batch_file_by_file: { columns: ['fileId'] },
      batch_file_by_age: { columns: ['atMs'] },
    },
  }),

  /** The containers that were paid for in the last 20 minutes. */
  containerFee: table('container_fee', {
    columns: {
      // Whose credential ran it, as in `hold`.
      scope: text,
      id: text,
      callId: text,
      paidAtMs: integer,
    },
    key: ['scope', 'id'],
    isHot: true,
  }),

  /** Refused calls. They are apart from `call`, which every admission writes, because no sum includes them. */
  refusedCall: table('refused_call', {
    columns: {
      id: text,
      accountId: text,
      keyId: text,
      personId: text.orNull(),
      startedAtMs: integer,
      endedAtMs: integer,
      method: text,
      path: text,
      surface: text.of<Surface>(),
      modelAsked: text.orNull(),
      status: integer,
      code: text,
      clientIp: text,
      userAgent: text.orNull(),
      socketId: text.orNull(),
      sessionId: text.orNull(),
    },
    key: ['id'],
    indexes: {
      refused_call_by_account: { columns: ['accountId', 'id'] },
      refused_call_by_key: { columns: ['keyId', 'id'] },
      refused_call_by_person: {
        columns: ['personId', 'id'],
        where: 'person_id IS NOT NULL',
      },
    },
  }),

  refusedTotal: table('refused_total', {
    columns: {
      accountId: text,
      calls: integer,
    },
    key: ['accountId'],
    isHot: true,
  }),

  callBody: table('call_body', {
    columns: {
      callId: text,
      atMs: integer,
      request: bytes.orNull(),
      requestType: text.orNull(),
      requestBytes: integer.orNull(),
      requestTruncated: flag.orNull(),
      response: bytes.orNull(),
      responseType: text.orNull(),
      responseBytes: integer.orNull(),
      responseTruncated: flag.orNull(),
    },
    key: ['callId'],
    indexes: {
      call_body_by_age: { columns: ['atMs'] },
    },
    isWide: true,
    location: 'bodies',
  }),

  /** The total size of all bodies, in one row. Adding the sizes up would read the whole file. */
  bodyTotal: table('body_total', {
    columns: {
      id: integer,
      bytes: integer,
    },
    key: ['id'],
    isHot: true,
    location: 'bodies',
  }),
}
