import { deliveryErrors, olderSecrets, webhookTables } from './webhook-tables.ts'

/** Accounts, API keys and admin keys. Every row names its account, so that more accounts later need no rewrite. */
const accountsAndKeys = `
  CREATE TABLE account (
    id            TEXT PRIMARY KEY,
    created_at_ms INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE api_key (
    id              TEXT PRIMARY KEY,
    account_id      TEXT NOT NULL REFERENCES account (id),
    name            TEXT NOT NULL,
    digest          BLOB NOT NULL UNIQUE,
    prefix          TEXT NOT NULL,
    last4           TEXT NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    expires_at_ms   INTEGER,
    revoked_at_ms   INTEGER,
    last_used_at_ms INTEGER
  ) STRICT;

  CREATE TABLE admin_key (
    id            TEXT PRIMARY KEY,
    account_id    TEXT NOT NULL REFERENCES account (id),
    name          TEXT NOT NULL,
    digest        BLOB NOT NULL UNIQUE,
    prefix        TEXT NOT NULL,
    last4         TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER,
    bootstrap     INTEGER NOT NULL CHECK (bootstrap IN (0, 1))
  ) STRICT;

  -- At most one bootstrap key is in force; the statement that installs a new one revokes the former first.
  CREATE UNIQUE INDEX admin_key_bootstrap ON admin_key (account_id) WHERE bootstrap = 1 AND revoked_at_ms IS NULL;

  CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT;

  INSERT INTO account (id, created_at_ms) VALUES ('default', 0);
`

/**
 * Calls with their holds, the money columns they move, and the journal of credits. Amounts are nanodollars. The
 * columns of `account`, `key_month` and `rollup` are sums over `call` and `credit` that are kept in the transaction
 * that changes those; `tollgate audit` derives them again and compares.
 */
const ledger = `
  ALTER TABLE account ADD COLUMN credited_nanos INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE account ADD COLUMN charged_nanos INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE account ADD COLUMN held_nanos INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE account ADD COLUMN credit_enforced INTEGER NOT NULL DEFAULT 0 CHECK (credit_enforced IN (0, 1));

  ALTER TABLE api_key ADD COLUMN monthly_budget_nanos INTEGER CHECK (monthly_budget_nanos >= 0);

  CREATE TABLE price_version (
    id   TEXT PRIMARY KEY,
    json TEXT NOT NULL
  ) STRICT;

  CREATE TABLE call (
    id                  TEXT PRIMARY KEY,
    account_id          TEXT NOT NULL REFERENCES account (id),
    key_id              TEXT NOT NULL REFERENCES api_key (id),
    -- Written out: for an IN of four values every statement that writes a call builds a table of them first, which
    -- was a sixth of the time of both.
    state               TEXT NOT NULL CHECK (state = 'in_flight' OR state = 'settled' OR state = 'released'
                                             OR state = 'interrupted'),
    started_at_ms       INTEGER NOT NULL,
    ended_at_ms         INTEGER,
    month               TEXT NOT NULL,
    day                 TEXT NOT NULL,
    method              TEXT NOT NULL,
    path                TEXT NOT NULL,
    surface             TEXT NOT NULL,
    model_asked         TEXT,
    model_served        TEXT,
    status              INTEGER,
    stop_reason         TEXT,
    streamed            INTEGER NOT NULL DEFAULT 0,
    estimated           INTEGER NOT NULL DEFAULT 0,
    unpriced            INTEGER NOT NULL DEFAULT 0,
    overrun             INTEGER NOT NULL DEFAULT 0,
    priced_as_requested INTEGER NOT NULL DEFAULT 0,
    usage               TEXT,
    input_tokens        INTEGER NOT NULL DEFAULT 0,
    output_tokens       INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens   INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens  INTEGER NOT NULL DEFAULT 0,
    hold_nanos          INTEGER NOT NULL CHECK (hold_nanos >= 0),
    hold_list_nanos     INTEGER NOT NULL CHECK (hold_list_nanos >= 0),
    cost_nanos          INTEGER CHECK (cost_nanos >= 0),
    list_nanos          INTEGER CHECK (list_nanos >= 0),
    lost_list_nanos     INTEGER NOT NULL DEFAULT 0,
    balance_nanos       INTEGER,
    upstream_ms         INTEGER,
    overhead_ms         INTEGER,
    price_version       TEXT NOT NULL,
    rating              TEXT NOT NULL,
    upstream_request_id TEXT,
    client_ip           TEXT NOT NULL,
    user_agent          TEXT,
    bytes_in            INTEGER NOT NULL DEFAULT 0,
    bytes_out           INTEGER NOT NULL DEFAULT 0,
    credited            INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX call_open ON call (id) WHERE state = 'in_flight';
  CREATE INDEX call_by_key ON call (key_id, id);

  CREATE TABLE key_month (
    key_id      TEXT NOT NULL REFERENCES api_key (id),
    month       TEXT NOT NULL,
    spent_nanos INTEGER NOT NULL DEFAULT 0,
    held_nanos  INTEGER NOT NULL DEFAULT 0,
    lost_nanos  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (key_id, month)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE rollup (
    account_id         TEXT NOT NULL REFERENCES account (id),
    day                TEXT NOT NULL,
    model              TEXT NOT NULL,
    key_id             TEXT NOT NULL REFERENCES api_key (id),
    requests           INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cost_nanos         INTEGER NOT NULL DEFAULT 0,
    list_nanos         INTEGER NOT NULL DEFAULT 0,
    credited_nanos     INTEGER NOT NULL DEFAULT 0,
    unpriced_requests  INTEGER NOT NULL DEFAULT 0,
    estimated_requests INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, day, model, key_id)
  ) STRICT, WITHOUT ROWID;

  -- The journal of everything that moves the balance and is not a call. A negative amount is a charge.
  CREATE TABLE credit (
    id           TEXT PRIMARY KEY,
    account_id   TEXT NOT NULL REFERENCES account (id),
    kind         TEXT NOT NULL CHECK (kind IN ('top_up', 'credit_back', 'rerate')),
    amount_nanos INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    call_id      TEXT REFERENCES call (id),
    -- What makes an entry about a call unique: a call is credited back once, and rerated once per price version.
    once         TEXT,
    at_ms        INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE UNIQUE INDEX credit_once ON credit (call_id, once) WHERE call_id IS NOT NULL;
`

/**
 * The limits of a key besides its cap, the commands that may be repeated without being done twice, and the batch files
 * that keys uploaded. Keys from before have no allowlist, keep no bodies and follow no other key.
 */
const keyLimits = `
  -- A JSON array of exact names; null is every model.
  ALTER TABLE api_key ADD COLUMN allowed_models TEXT;
  ALTER TABLE api_key ADD COLUMN log_requests INTEGER NOT NULL DEFAULT 0 CHECK (log_requests IN (0, 1));
  ALTER TABLE api_key ADD COLUMN rotated_from TEXT REFERENCES api_key (id);

  -- Ids begin with the time of creation, so their order is the order of a list.
  CREATE INDEX api_key_by_account ON api_key (account_id, id);

  CREATE TABLE idempotency (
    account_id  TEXT NOT NULL REFERENCES account (id),
    name        TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    -- The id of what the command made.
    subject     TEXT NOT NULL,
    at_ms       INTEGER NOT NULL,
    PRIMARY KEY (account_id, name)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX idempotency_by_age ON idempotency (at_ms);

  CREATE TABLE batch_file (
    account_id TEXT NOT NULL REFERENCES account (id),
    key_id     TEXT NOT NULL REFERENCES api_key (id),
    file_id    TEXT NOT NULL,
    models     TEXT NOT NULL,
    at_ms      INTEGER NOT NULL,
    PRIMARY KEY (account_id, file_id)
  ) STRICT, WITHOUT ROWID;
`

/**
 * The request log is read newest first, for the account or for one key; usage by the day, for the account (the
 * primary key of the rollups) or for one key. Ids end both indexes of calls by themselves: the table has no rowid.
 */
const requestLog = `
  DROP INDEX call_by_key;
  CREATE INDEX call_by_key ON call (key_id, started_at_ms);
  CREATE INDEX call_by_start ON call (account_id, started_at_ms);
  CREATE INDEX rollup_by_key ON rollup (key_id, day);
`

/**
 * Hold floors, learned from costs above holds. Calls from before have no endpoint and raised no floor. `has_floors` of the
 * month says whether there is a floor to look up: for nearly all keys there is none.
 */
const holdFloors = `
  ALTER TABLE call ADD COLUMN endpoint TEXT;
  ALTER TABLE key_month ADD COLUMN has_floors INTEGER NOT NULL DEFAULT 0;

  CREATE TABLE hold_floor (
    key_id     TEXT NOT NULL REFERENCES api_key (id),
    month      TEXT NOT NULL,
    -- Both empty: all that have no row of their own.
    endpoint   TEXT NOT NULL,
    model      TEXT NOT NULL,
    nanos      INTEGER NOT NULL,
    list_nanos INTEGER NOT NULL,
    PRIMARY KEY (key_id, month, endpoint, model)
  ) STRICT, WITHOUT ROWID;
`

/**
 * Calls that were refused: in no sum, and away from the table of calls, which every admission writes. The number of an
 * account's refused calls is kept beside them, since every batch needs it.
 */
const refusedCalls = `
  CREATE TABLE refused_call (
    id            TEXT PRIMARY KEY,
    account_id    TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    started_at_ms INTEGER NOT NULL,
    ended_at_ms   INTEGER NOT NULL,
    method        TEXT NOT NULL,
    path          TEXT NOT NULL,
    surface       TEXT NOT NULL,
    model_asked   TEXT,
    status        INTEGER NOT NULL,
    code          TEXT NOT NULL,
    client_ip     TEXT NOT NULL,
    user_agent    TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX refused_call_by_start ON refused_call (account_id, started_at_ms);
  CREATE INDEX refused_call_by_key ON refused_call (key_id, started_at_ms);

  CREATE TABLE refused_total (
    account_id TEXT PRIMARY KEY,
    calls      INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TRIGGER refused_call_added AFTER INSERT ON refused_call BEGIN
    INSERT INTO refused_total (account_id, calls) VALUES (NEW.account_id, 1)
    ON CONFLICT (account_id) DO UPDATE SET calls = calls + 1;
  END;

  CREATE TRIGGER refused_call_deleted AFTER DELETE ON refused_call BEGIN
    UPDATE refused_total SET calls = calls - 1 WHERE account_id = OLD.account_id;
  END;
`

/** Sessions of the dashboard. They are short, and stay behind when the books move to PostgreSQL. */
const sessions = `
  CREATE TABLE session (
    digest        BLOB PRIMARY KEY,
    admin_key_id  TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX session_by_key ON session (admin_key_id, expires_at_ms);
`

/** Audits that are begun in the dashboard, and indexes for the figures that it asks for every few seconds. */
const attention = `
  CREATE TABLE audit_run (
    id            TEXT PRIMARY KEY,
    node          TEXT NOT NULL,
    state         TEXT NOT NULL,
    started_at_ms INTEGER NOT NULL,
    seen_at_ms    INTEGER NOT NULL,
    ended_at_ms   INTEGER,
    done          INTEGER NOT NULL,
    total         INTEGER NOT NULL,
    result        TEXT
  ) STRICT, WITHOUT ROWID;

  -- Keys that need a look are found among those that can: with a cap, or with an end.
  CREATE INDEX api_key_capped ON api_key (account_id, id) WHERE monthly_budget_nanos > 0 AND revoked_at_ms IS NULL;
  CREATE INDEX api_key_expiring ON api_key (account_id, expires_at_ms)
    WHERE expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL;
`

/** The bound of the cost of a file's requests in a batch, as JSON. */
const batchFileBounds = 'ALTER TABLE batch_file ADD COLUMN bound TEXT'

/** Deferred costs: the objects that calls have made upstream, and the parts of a batch, one for each model. */
const deferredObjects = `
  ALTER TABLE call ADD COLUMN object_id TEXT;
  ALTER TABLE call ADD COLUMN parent_id TEXT;
  ALTER TABLE call ADD COLUMN requests INTEGER NOT NULL DEFAULT 1 CHECK (requests >= 0);

  CREATE TABLE deferred_object (
    surface   TEXT NOT NULL,
    object_id TEXT NOT NULL,
    call_id   TEXT NOT NULL,
    month     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    path      TEXT NOT NULL,
    polls     INTEGER NOT NULL,
    due_at_ms INTEGER NOT NULL,
    PRIMARY KEY (surface, object_id)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX deferred_object_due ON deferred_object (due_at_ms);
`

/** The turns of a WebSocket name its handshake, as do refused turns. */
const sockets = `
  ALTER TABLE call ADD COLUMN socket_id TEXT;
  ALTER TABLE refused_call ADD COLUMN socket_id TEXT;

  CREATE INDEX call_by_socket ON call (socket_id, started_at_ms) WHERE socket_id IS NOT NULL;
`

/** Migrations in the order in which they are applied. A migration that has shipped is never edited; a new one follows it. */
export const migrations: readonly string[] = [
  accountsAndKeys,
  ledger,
  keyLimits,
  requestLog,
  holdFloors,
  refusedCalls,
  webhookTables,
  sessions,
  attention,
  deferredObjects,
  olderSecrets,
  deliveryErrors,
  batchFileBounds,
  sockets,
]
