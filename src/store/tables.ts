export interface TableDefinition {
  /**
   * Columns as `name kind`. The kind is text, integer, flag, json or bytes; `?`: may be null; `= …`: default, in SQL
   * that both stores understand; `-> …`: the table whose id it holds. `--` begins a comment.
   */
  readonly columns: string
  readonly key: string
  /** The columns of each index, by its name. `unique` and `where` are as in SQL. */
  readonly indexes?: Readonly<Record<string, string>>
  readonly checks?: readonly string[]
  /** Rows are updated often, so PostgreSQL leaves free space in their pages. Then updates need not change indexes. */
  readonly isHot?: boolean
  /** Rows may be large: SQLite stores them outside the primary key's index. */
  readonly isWide?: boolean
  /** `main`: the database. `bodies`: a separate file in SQLite. `postgres`: a table that SQLite does not have. */
  readonly location?: 'main' | 'bodies' | 'postgres'
  /** False for rows that have no meaning in another installation. They are not exported. */
  readonly isExported?: boolean
}

/** Each table comes after those that it references. Amounts are nanodollars, times are milliseconds (UTC). */
export const TABLE_DEFINITIONS: Readonly<Record<string, TableDefinition>> = {
  setting: { columns: 'name text, value text', key: 'name' },

  /** Balance and holds are sums over `call` and `credit`, updated in the transaction that changes these tables. */
  account: {
    columns: `
      id text, name text = 'default',
      -- As of api_key.
      name_upper text = 'DEFAULT', created_at_ms integer, status text = 'active',
      -- Whether there is another account: then a credential of the installation is shared.
      has_others flag = false, discount_billionths integer?, metadata json?,
      -- Upstreams of its own, with their keys as ciphertext in base 64.
      messages_url text?, messages_key text?, chat_url text?, chat_key text?, credited_nanos integer = 0,
      charged_nanos integer = 0,
      -- Open holds, each as far as it counts against the account.
      held_nanos integer = 0, credit_enforced flag = false, monthly_budget_nanos integer?,
      -- The month that spent_nanos is of.
      month text = '', spent_nanos integer = 0`,
    key: 'id',
    isHot: true,
  },

  budget: {
    columns: `
      id text, account_id text -> account, monthly_budget_nanos integer?, daily_budget_nanos integer?,
      requests_per_minute integer?,
      -- exact or settled; null: as the installation is configured.
      budget_mode text?,
      -- The month that the counters are of; a later month resets them. Holds count against month and day.
      month text = '', spent_nanos integer = 0, held_nanos integer = 0, lost_nanos integer = 0,
      -- Whether hold_floor has rows of this month.
      has_floors flag = false, day text = '', day_spent_nanos integer = 0,
      -- The minute, counted from 1970, that minute_requests were admitted in.
      minute integer = 0, minute_requests integer = 0`,
    key: 'id',
    indexes: {
      budget_capped: 'account_id, id where monthly_budget_nanos > 0',
      budget_day_capped: 'account_id, id where daily_budget_nanos > 0',
    },
    checks: ['monthly_budget_nanos >= 0', 'daily_budget_nanos >= 0', 'requests_per_minute > 0'],
    isHot: true,
  },

  api_key: {
    columns: `
      id text, account_id text -> account, budget_id text -> budget, name text,
      -- Upper case by our own runtime: what the databases know of letters depends on version and locale.
      name_upper text, digest bytes, prefix text, last4 text, created_at_ms integer,
      expires_at_ms integer?, revoked_at_ms integer?, last_used_at_ms integer?,
      -- A JSON array; null is every model.
      allowed_models json?, log_requests flag = false, metadata json = '{}', rotated_from text?`,
    key: 'id',
    indexes: {
      api_key_by_digest: 'unique digest',
      api_key_by_account: 'account_id, id',
      api_key_by_budget: 'budget_id',
      api_key_expiring: 'account_id, expires_at_ms where expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL',
      api_key_by_expiry: 'expires_at_ms, id where expires_at_ms IS NOT NULL',
    },
    isHot: true,
  },

  admin_key: {
    columns: `
      id text, role text,
      -- Null for operators.
      account_id text? -> account, name text, digest bytes, prefix text, last4 text,
      created_at_ms integer, revoked_at_ms integer?, last_used_at_ms integer?, bootstrap flag`,
    key: 'id',
    indexes: {
      admin_key_by_digest: 'unique digest',
      admin_key_by_account: 'account_id, id',
      admin_key_bootstrap: 'unique bootstrap where bootstrap AND revoked_at_ms IS NULL',
    },
  },

  session: {
    columns: 'digest bytes, key_id text, expires_at_ms integer',
    key: 'digest',
    indexes: { session_by_key: 'key_id, expires_at_ms', session_by_expiry: 'expires_at_ms' },
    isExported: false,
  },

  price_version: { columns: 'id text, json text', key: 'id', isWide: true },

  /** A fenced node cannot admit or settle. A node raises its epoch if it does not know the outcome of an admission. */
  node: {
    columns: `
      id text, name text, epoch integer = 1, started_at_ms integer, seen_at_ms integer,
      fenced_at_ms integer?`,
    key: 'id',
    isHot: true,
    location: 'postgres',
    isExported: false,
  },

  call: {
    columns: `
      id text, account_id text, key_id text, node_id text = '', state text, started_at_ms integer,
      ended_at_ms integer?, month text, day text, method text, path text, surface text, endpoint text?,
      model_asked text?, model_served text?, status integer?, stop_reason text?, streamed flag = false,
      estimated flag = false, unpriced flag = false, overrun flag = false,
      priced_as_requested flag = false, usage text?, input_tokens integer = 0, output_tokens integer = 0,
      cache_read_tokens integer = 0, cache_write_tokens integer = 0, hold_nanos integer,
      hold_list_nanos integer,
      -- The hold as it counts against the account.
      account_hold_nanos integer = 0, cost_nanos integer?, list_nanos integer?,
      lost_list_nanos integer = 0, balance_nanos integer?, upstream_ms integer?, overhead_ms integer?,
      price_version text, rating text, upstream_request_id text?, client_ip text, user_agent text?,
      bytes_in integer = 0, bytes_out integer = 0, credited flag = false, object_id text?,
      parent_id text?, children integer?, children_nanos integer?, socket_id text?, requests integer = 1`,
    key: 'id',
    indexes: {
      call_open: "node_id, id where state = 'in_flight'",
      call_by_key: 'key_id, started_at_ms, id',
      call_by_start: 'account_id, started_at_ms, id',
      call_by_socket: 'socket_id, started_at_ms, id where socket_id IS NOT NULL',
      call_by_object: 'object_id where object_id IS NOT NULL',
    },
    // Written as ORs: for an IN of four values SQLite builds a temporary table in every statement that writes a call.
    checks: [
      "state = 'in_flight' OR state = 'settled' OR state = 'released' OR state = 'interrupted'",
      ...['hold_nanos', 'hold_list_nanos', 'account_hold_nanos', 'cost_nanos', 'list_nanos', 'requests'].map(
        (column) => `${column} >= 0`,
      ),
    ],
  },

  /** The largest costs that exceeded their holds. Later holds are at least as large. */
  hold_floor: {
    columns: 'budget_id text, month text, endpoint text, model text, nanos integer, list_nanos integer',
    key: 'budget_id, month, endpoint, model',
  },

  rollup: {
    columns: `
      account_id text, day text, model text, key_id text, requests integer = 0, input_tokens integer = 0,
      output_tokens integer = 0, cache_read_tokens integer = 0, cache_write_tokens integer = 0,
      cost_nanos integer = 0, list_nanos integer = 0, credited_nanos integer = 0,
      unpriced_requests integer = 0, estimated_requests integer = 0`,
    key: 'account_id, day, model, key_id',
    indexes: { rollup_by_key: 'key_id, day' },
    isHot: true,
  },

  /** The ledger of everything that moves the balance and is not a call. A negative amount is a charge. */
  credit: {
    columns: `
      id text, account_id text -> account, kind text, amount_nanos integer, reason text, actor_kind text,
      actor_id text?, actor_name text?, balance_after_nanos integer, at_ms integer`,
    key: 'id',
    indexes: { credit_by_account: 'account_id, id' },
  },

  /** The calls of a ledger entry. `once`: a call is credited once, and rerated once per price version. */
  credit_call: {
    columns: 'call_id text, once text, credit_id text, amount_nanos integer',
    key: 'call_id, once',
    indexes: { credit_call_by_credit: 'credit_id, call_id' },
  },

  idempotency: {
    columns: `
      account_id text -> account, name text, fingerprint bytes,
      -- The id of the record that the command made.
      subject text, at_ms integer`,
    key: 'account_id, name',
    indexes: { idempotency_by_age: 'at_ms' },
  },

  batch_file: {
    columns: `
      account_id text -> account, key_id text -> api_key, file_id text,
      -- Null: not the file of a batch, or one that cannot be read.
      models json?,
      -- The bound of the cost of the file's requests, as JSON.
      bound text?, at_ms integer`,
    key: 'account_id, file_id',
    indexes: { batch_file_by_file: 'file_id' },
  },

  deferred_object: {
    columns: `
      surface text, scope text = '', object_id text, call_id text, key_id text, kind text,
      due_at_ms integer, claimed_until_ms integer`,
    key: 'surface, scope, object_id',
    indexes: { deferred_object_due: 'due_at_ms' },
  },

  /** Refused calls. They are apart from `call`, which every admission writes, because no sum includes them. */
  refused_call: {
    columns: `
      id text, account_id text, key_id text, started_at_ms integer, ended_at_ms integer, method text,
      path text, surface text, model_asked text?, status integer, code text, client_ip text,
      user_agent text?, socket_id text?`,
    key: 'id',
    indexes: {
      refused_call_by_start: 'account_id, started_at_ms, id',
      refused_call_by_key: 'key_id, started_at_ms, id',
    },
  },

  refused_total: { columns: 'account_id text, calls integer', key: 'account_id', isHot: true },

  webhook: {
    columns: `
      id text, account_id text -> account, url text, events json, description text, format text,
      enabled flag = true, disabled_reason text?, created_at_ms integer,
      -- The first failure after the last success.
      failing_since_ms integer?, last_delivery_at_ms integer?, last_status integer?,
      -- Secrets are sealed.
      secret bytes, former_secret bytes?, former_until_ms integer?, older_secret bytes?,
      older_until_ms integer?`,
    key: 'id',
    indexes: { webhook_enabled: 'account_id where enabled' },
  },

  /** Changes and crossed thresholds, written in the transactions that cause them. This table is the activity log. */
  event: {
    columns: `
      id text, account_id text, type text, created_at_ms integer, actor_kind text, actor_id text?,
      actor_name text?,
      -- JSON, as it is sent: a column of the kind json would lose digits of money and the order of members.
      data text,
      -- An event with the same text is not recorded again for the account.
      once text?`,
    key: 'id',
    indexes: {
      event_by_account: 'account_id, id',
      event_once: 'unique account_id, once where once IS NOT NULL',
    },
    isWide: true,
  },

  webhook_delivery: {
    columns: `
      id text, webhook_id text, event_id text, status text, attempts integer = 0,
      response_status integer?, response_body text?, error text?, last_attempt_at_ms integer?,
      -- While a node has claimed the delivery: when it is due again if that node never reports.
      next_attempt_at_ms integer?, created_at_ms integer`,
    key: 'id',
    indexes: {
      webhook_delivery_pending: "webhook_id, next_attempt_at_ms, id where status = 'pending'",
      webhook_delivery_by_webhook: 'webhook_id, id',
      webhook_delivery_once: 'unique event_id, webhook_id',
    },
    checks: ["status IN ('pending', 'succeeded', 'failed')"],
    isHot: true,
  },

  call_body: {
    columns: `
      call_id text, at_ms integer, request bytes?, request_type text?, request_bytes integer?,
      request_truncated flag?, response bytes?, response_type text?, response_bytes integer?,
      response_truncated flag?`,
    key: 'call_id',
    indexes: { call_body_by_age: 'at_ms' },
    isWide: true,
    location: 'bodies',
  },

  /** The total size of all bodies, in one row. Adding the sizes up would read the whole file. */
  body_total: {
    columns: 'id integer, bytes integer',
    key: 'id',
    isHot: true,
    location: 'bodies',
  },
}
