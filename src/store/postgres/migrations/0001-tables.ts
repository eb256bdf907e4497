/**
 * The same tables as those of the SQLite store. Rows that every call of a key or an account touches are narrow and
 * leave room in their page, so that an update stays in it and no index changes. Calls are partitioned by the month of
 * their admission: an old month is detached in no time, and the indexes of the present one stay small.
 */
export const tables = `
  CREATE TABLE account (
    id              text PRIMARY KEY,
    created_at_ms   bigint NOT NULL,
    credited_nanos  bigint NOT NULL DEFAULT 0,
    charged_nanos   bigint NOT NULL DEFAULT 0,
    held_nanos      bigint NOT NULL DEFAULT 0,
    credit_enforced boolean NOT NULL DEFAULT false
  ) WITH (fillfactor = 50);

  INSERT INTO account (id, created_at_ms) VALUES ('default', 0);

  CREATE TABLE api_key (
    id                   text PRIMARY KEY COLLATE "C",
    account_id           text NOT NULL REFERENCES account (id),
    name                 text NOT NULL,
    -- As our own runtime says it: what PostgreSQL's upper() knows depends on its version and locale.
    name_upper           text NOT NULL,
    digest               bytea NOT NULL UNIQUE,
    prefix               text NOT NULL,
    last4                text NOT NULL,
    created_at_ms        bigint NOT NULL,
    expires_at_ms        bigint,
    revoked_at_ms        bigint,
    last_used_at_ms      bigint,
    monthly_budget_nanos bigint CHECK (monthly_budget_nanos >= 0),
    -- A JSON array of exact names; null is every model.
    allowed_models       jsonb,
    log_requests         boolean NOT NULL DEFAULT false,
    rotated_from         text COLLATE "C" REFERENCES api_key (id)
  ) WITH (fillfactor = 70);

  CREATE INDEX api_key_by_account ON api_key (account_id, id);

  CREATE TABLE admin_key (
    id            text PRIMARY KEY COLLATE "C",
    account_id    text NOT NULL REFERENCES account (id),
    name          text NOT NULL,
    digest        bytea NOT NULL UNIQUE,
    prefix        text NOT NULL,
    last4         text NOT NULL,
    created_at_ms bigint NOT NULL,
    revoked_at_ms bigint,
    bootstrap     boolean NOT NULL
  );

  CREATE UNIQUE INDEX admin_key_bootstrap ON admin_key (account_id) WHERE bootstrap AND revoked_at_ms IS NULL;

  CREATE TABLE setting (
    name  text PRIMARY KEY,
    value text NOT NULL
  );

  CREATE TABLE price_version (
    id   text PRIMARY KEY,
    json text NOT NULL
  );

  -- A process that serves. Fenced is one that has been given up: it admits nothing any more. Cleared is a fenced one
  -- that has no call open any more. The epoch rises when the node no longer knows what became of an admission.
  CREATE TABLE node (
    id            text PRIMARY KEY COLLATE "C",
    name          text NOT NULL,
    epoch         bigint NOT NULL DEFAULT 1,
    started_at_ms bigint NOT NULL,
    seen_at_ms    bigint NOT NULL,
    fenced_at_ms  bigint,
    cleared_at_ms bigint
  ) WITH (fillfactor = 50);

  CREATE INDEX node_uncleared ON node (id) WHERE cleared_at_ms IS NULL;

  CREATE TABLE call (
    id                  text COLLATE "C" NOT NULL,
    month               text COLLATE "C" NOT NULL,
    account_id          text NOT NULL,
    key_id              text COLLATE "C" NOT NULL,
    node_id             text NOT NULL,
    state               text NOT NULL CHECK (state IN ('in_flight', 'settled', 'released', 'interrupted')),
    started_at_ms       bigint NOT NULL,
    ended_at_ms         bigint,
    day                 text COLLATE "C" NOT NULL,
    method              text NOT NULL,
    path                text NOT NULL,
    surface             text NOT NULL,
    model_asked         text,
    model_served        text,
    status              integer,
    stop_reason         text,
    streamed            boolean NOT NULL DEFAULT false,
    estimated           boolean NOT NULL DEFAULT false,
    unpriced            boolean NOT NULL DEFAULT false,
    overrun             boolean NOT NULL DEFAULT false,
    priced_as_requested boolean NOT NULL DEFAULT false,
    usage               text,
    input_tokens        bigint NOT NULL DEFAULT 0,
    output_tokens       bigint NOT NULL DEFAULT 0,
    cache_read_tokens   bigint NOT NULL DEFAULT 0,
    cache_write_tokens  bigint NOT NULL DEFAULT 0,
    hold_nanos          bigint NOT NULL CHECK (hold_nanos >= 0),
    hold_list_nanos     bigint NOT NULL CHECK (hold_list_nanos >= 0),
    cost_nanos          bigint CHECK (cost_nanos >= 0),
    list_nanos          bigint CHECK (list_nanos >= 0),
    lost_list_nanos     bigint NOT NULL DEFAULT 0,
    balance_nanos       bigint,
    upstream_ms         bigint,
    overhead_ms         bigint,
    price_version       text NOT NULL,
    rating              text NOT NULL,
    upstream_request_id text,
    client_ip           text NOT NULL,
    user_agent          text,
    bytes_in            bigint NOT NULL DEFAULT 0,
    bytes_out           bigint NOT NULL DEFAULT 0,
    credited            boolean NOT NULL DEFAULT false,
    PRIMARY KEY (id, month)
  ) PARTITION BY LIST (month);

  CREATE INDEX call_open ON call (node_id, id) WHERE state = 'in_flight';
  CREATE INDEX call_by_key ON call (key_id, started_at_ms, id);
  CREATE INDEX call_by_start ON call (account_id, started_at_ms, id);

  CREATE TABLE key_month (
    key_id      text COLLATE "C" NOT NULL,
    month       text COLLATE "C" NOT NULL,
    spent_nanos bigint NOT NULL DEFAULT 0,
    held_nanos  bigint NOT NULL DEFAULT 0,
    lost_nanos  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (key_id, month)
  ) WITH (fillfactor = 50);

  CREATE TABLE rollup (
    account_id         text NOT NULL,
    day                text COLLATE "C" NOT NULL,
    model              text COLLATE "C" NOT NULL,
    key_id             text COLLATE "C" NOT NULL,
    requests           bigint NOT NULL DEFAULT 0,
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    cost_nanos         bigint NOT NULL DEFAULT 0,
    list_nanos         bigint NOT NULL DEFAULT 0,
    credited_nanos     bigint NOT NULL DEFAULT 0,
    unpriced_requests  bigint NOT NULL DEFAULT 0,
    estimated_requests bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, day, model, key_id)
  ) WITH (fillfactor = 50);

  CREATE INDEX rollup_by_key ON rollup (key_id, day);

  -- The journal of everything that moves the balance and is not a call. A negative amount is a charge.
  CREATE TABLE credit (
    id           text PRIMARY KEY COLLATE "C",
    account_id   text NOT NULL REFERENCES account (id),
    kind         text NOT NULL CHECK (kind IN ('top_up', 'credit_back', 'rerate')),
    amount_nanos bigint NOT NULL,
    reason       text NOT NULL,
    call_id      text COLLATE "C",
    -- What makes an entry about a call unique: a call is credited back once, and rerated once per price version.
    once         text,
    at_ms        bigint NOT NULL
  );

  CREATE UNIQUE INDEX credit_once ON credit (call_id, once) WHERE call_id IS NOT NULL;

  CREATE TABLE idempotency (
    account_id  text NOT NULL REFERENCES account (id),
    name        text NOT NULL,
    fingerprint bytea NOT NULL,
    -- The id of what the command made.
    subject     text NOT NULL,
    at_ms       bigint NOT NULL,
    PRIMARY KEY (account_id, name)
  );

  CREATE INDEX idempotency_by_age ON idempotency (at_ms);

  CREATE TABLE batch_file (
    account_id text NOT NULL REFERENCES account (id),
    key_id     text COLLATE "C" NOT NULL REFERENCES api_key (id),
    file_id    text NOT NULL,
    models     jsonb NOT NULL,
    at_ms      bigint NOT NULL,
    PRIMARY KEY (account_id, file_id)
  );

  CREATE TABLE call_body (
    call_id            text PRIMARY KEY COLLATE "C",
    at_ms              bigint NOT NULL,
    request            bytea,
    request_type       text,
    request_bytes      bigint,
    request_truncated  boolean,
    response           bytea,
    response_type      text,
    response_bytes     bigint,
    response_truncated boolean
  );

  -- They are compressed already.
  ALTER TABLE call_body ALTER COLUMN request SET STORAGE EXTERNAL;
  ALTER TABLE call_body ALTER COLUMN response SET STORAGE EXTERNAL;
  CREATE INDEX call_body_by_age ON call_body (at_ms);
`
