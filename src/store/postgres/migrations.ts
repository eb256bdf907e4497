import { deliveryErrors, olderSecrets, webhookTables } from './webhook-tables.ts'

/**
 * The same tables as those of the SQLite store. Rows that every call of a key or an account touches are narrow and
 * leave room in their page, so that an update stays in it and no index changes. Calls are partitioned by the month of
 * their admission: an old month is detached in no time, and the indexes of the present one stay small.
 */
const tables = `
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

/**
 * The type that settlement works with. A type that has shipped is not changed, since a settlement may be using it: a type
 * of another name follows.
 */
const booking = `
  -- A closing together with what the call was opened with.
  CREATE TYPE booking AS (
    n integer, id text, month text, account_id text, key_id text, day text, model text, state text, at_ms bigint,
    hold_nanos bigint, held_nanos bigint, lost_nanos bigint, cost_nanos bigint, list_nanos bigint,
    input_tokens bigint, output_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint,
    unpriced boolean, estimated boolean
  );
`

/** The hash of the text of the functions that the database has. */
const functionsApplied = `
  ALTER TABLE schema_version ADD COLUMN functions text;
`

/**
 * Hold floors, learned from costs above holds. Calls from before have no endpoint and raised no floor. `has_floors` of the
 * month says whether there is a floor to look up: for nearly all keys there is none.
 */
const holdFloors = `
  ALTER TABLE call ADD COLUMN endpoint text;
  ALTER TABLE key_month ADD COLUMN has_floors boolean NOT NULL DEFAULT false;

  CREATE TABLE hold_floor (
    key_id     text COLLATE "C" NOT NULL,
    month      text COLLATE "C" NOT NULL,
    -- Both empty: all that have no row of their own.
    endpoint   text COLLATE "C" NOT NULL,
    model      text COLLATE "C" NOT NULL,
    nanos      bigint NOT NULL,
    list_nanos bigint NOT NULL,
    PRIMARY KEY (key_id, month, endpoint, model)
  );
`

/**
 * Calls that were refused: in no sum, and away from the table of calls. Their number of an account, and the size of all
 * logged bodies, are kept beside them by triggers: so both are right for every writer, nodes of the version before and
 * COPY included, and no statement has to count.
 */
const refusedCalls = `
  CREATE TABLE refused_call (
    id            text PRIMARY KEY COLLATE "C",
    account_id    text NOT NULL,
    key_id        text COLLATE "C" NOT NULL,
    started_at_ms bigint NOT NULL,
    ended_at_ms   bigint NOT NULL,
    method        text NOT NULL,
    path          text NOT NULL,
    surface       text NOT NULL,
    model_asked   text,
    status        integer NOT NULL,
    code          text NOT NULL,
    client_ip     text NOT NULL,
    user_agent    text
  );

  CREATE INDEX refused_call_by_start ON refused_call (account_id, started_at_ms, id);
  CREATE INDEX refused_call_by_key ON refused_call (key_id, started_at_ms, id);

  CREATE TABLE refused_total (
    account_id text PRIMARY KEY,
    calls      bigint NOT NULL
  ) WITH (fillfactor = 50);

  CREATE FUNCTION count_refused_calls() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      INSERT INTO refused_total AS t (account_id, calls)
      SELECT account_id, count(*) FROM changed GROUP BY account_id ORDER BY account_id
      ON CONFLICT (account_id) DO UPDATE SET calls = t.calls + excluded.calls;
    ELSIF TG_OP = 'DELETE' THEN
      UPDATE refused_total t SET calls = t.calls - c.calls
      FROM (SELECT account_id, count(*) AS calls FROM changed GROUP BY account_id) c
      WHERE t.account_id = c.account_id;
    ELSE
      DELETE FROM refused_total;
    END IF;
    RETURN NULL;
  END $$;

  CREATE TRIGGER refused_call_added AFTER INSERT ON refused_call
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_refused_calls();
  CREATE TRIGGER refused_call_deleted AFTER DELETE ON refused_call
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_refused_calls();
  CREATE TRIGGER refused_call_truncated AFTER TRUNCATE ON refused_call
    FOR EACH STATEMENT EXECUTE FUNCTION count_refused_calls();

  -- One row.
  CREATE TABLE body_total (bytes bigint NOT NULL) WITH (fillfactor = 50);

  -- 256: what a row takes besides its bodies. A megabyte of zeros is compressed to a hundred bytes.
  CREATE FUNCTION sum_bodies() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    v_bytes bigint;
  BEGIN
    IF TG_OP = 'TRUNCATE' THEN
      UPDATE body_total SET bytes = 0;
      RETURN NULL;
    END IF;
    SELECT sum(coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0) + 256)
    INTO v_bytes FROM changed;
    IF v_bytes IS NOT NULL THEN
      UPDATE body_total SET bytes = bytes + CASE TG_OP WHEN 'INSERT' THEN v_bytes ELSE -v_bytes END;
    END IF;
    RETURN NULL;
  END $$;

  -- Before the sum: whoever writes bodies waits from here on.
  CREATE TRIGGER call_body_added AFTER INSERT ON call_body
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION sum_bodies();
  CREATE TRIGGER call_body_deleted AFTER DELETE ON call_body
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION sum_bodies();
  CREATE TRIGGER call_body_truncated AFTER TRUNCATE ON call_body
    FOR EACH STATEMENT EXECUTE FUNCTION sum_bodies();

  INSERT INTO body_total
  SELECT coalesce(sum(coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0) + 256), 0) FROM call_body;
`

/** Sessions of the dashboard. They have no foreign keys, so that other tables can be emptied without them. */
const sessions = `
  CREATE TABLE session (
    digest        bytea PRIMARY KEY,
    admin_key_id  text COLLATE "C" NOT NULL,
    expires_at_ms bigint NOT NULL
  );

  CREATE INDEX session_by_key ON session (admin_key_id, expires_at_ms);
`

/** Audits that are begun in the dashboard, and indexes for the figures that it asks for every few seconds. */
const attention = `
  CREATE TABLE audit_run (
    id            text PRIMARY KEY COLLATE "C",
    node          text NOT NULL,
    state         text NOT NULL,
    started_at_ms bigint NOT NULL,
    seen_at_ms    bigint NOT NULL,
    ended_at_ms   bigint,
    done          bigint NOT NULL,
    total         bigint NOT NULL,
    result        text
  );

  -- Keys that need a look are found among those that can: with a cap, or with an end.
  CREATE INDEX api_key_capped ON api_key (account_id, id) WHERE monthly_budget_nanos > 0 AND revoked_at_ms IS NULL;
  CREATE INDEX api_key_expiring ON api_key (account_id, expires_at_ms)
    WHERE expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL;
`

/** The bound of the cost of a file's requests in a batch, as JSON. */
const batchFileBounds = 'ALTER TABLE batch_file ADD COLUMN bound text'

/** Deferred costs: the objects that calls have made upstream, and the parts of a batch, one for each model. */
const deferredObjects = `
  ALTER TABLE call ADD COLUMN object_id text;
  ALTER TABLE call ADD COLUMN parent_id text;
  ALTER TABLE call ADD COLUMN requests bigint NOT NULL DEFAULT 1 CHECK (requests >= 0);

  CREATE TABLE deferred_object (
    surface   text NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    call_id   text COLLATE "C" NOT NULL,
    month     text COLLATE "C" NOT NULL,
    kind      text NOT NULL,
    path      text NOT NULL,
    polls     bigint NOT NULL,
    due_at_ms bigint NOT NULL,
    PRIMARY KEY (surface, object_id)
  );

  CREATE INDEX deferred_object_due ON deferred_object (due_at_ms);
`

/** The turns of a WebSocket name its handshake, as do refused turns. */
const sockets = `
  ALTER TABLE call ADD COLUMN socket_id text COLLATE "C";
  ALTER TABLE refused_call ADD COLUMN socket_id text COLLATE "C";

  CREATE INDEX call_by_socket ON call (socket_id, started_at_ms, id) WHERE socket_id IS NOT NULL;
`

/** A migration that made functions, which are in functions/ now. */
const FUNCTIONS_ONLY = ''

/**
 * Tables, indexes and types, in the order in which they are applied. A migration that has shipped is never edited; a
 * new one follows it. Nodes of the version before still run while a migration is applied and afterwards: a migration may
 * add, it must not take away.
 */
export const migrations: readonly string[] = [
  tables,
  FUNCTIONS_ONLY,
  booking,
  FUNCTIONS_ONLY,
  FUNCTIONS_ONLY,
  FUNCTIONS_ONLY,
  functionsApplied,
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
