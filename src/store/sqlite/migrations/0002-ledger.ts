/**
 * Calls with their holds, the money columns they move, and the journal of credits. Amounts are nanodollars. The
 * columns of `account`, `key_month` and `rollup` are sums over `call` and `credit` that are kept in the transaction
 * that changes those; `tollgate audit` derives them again and compares.
 */
export const ledger = `
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
