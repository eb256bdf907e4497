/**
 * Webhooks. `webhook_outbox` has the events that are to be told; the relay puts an event, and a delivery for each endpoint
 * that subscribes to it, in the place of each of its rows. A mark is an event that must not be told again, or not yet.
 */
export const webhookTables = `
  CREATE TABLE webhook (
    id                  TEXT PRIMARY KEY,
    account_id          TEXT NOT NULL REFERENCES account (id),
    url                 TEXT NOT NULL,
    events              TEXT NOT NULL,
    description         TEXT NOT NULL,
    format              TEXT NOT NULL,
    enabled             INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    disabled_reason     TEXT,
    created_at_ms       INTEGER NOT NULL,
    -- Since when it is enabled: what happened before is not for it.
    since_ms            INTEGER NOT NULL,
    -- The first failure after the last success.
    failing_since_ms    INTEGER,
    last_delivery_at_ms INTEGER,
    last_status         INTEGER,
    -- Sealed.
    secret              BLOB NOT NULL,
    former_secret       BLOB,
    former_until_ms     INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX webhook_enabled ON webhook (account_id) WHERE enabled = 1;

  -- A number is never given twice: a row that was read is deleted by it.
  CREATE TABLE webhook_outbox (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL,
    type       TEXT NOT NULL,
    key_id     TEXT,
    at_ms      INTEGER NOT NULL,
    facts      TEXT NOT NULL
  ) STRICT;

  CREATE TABLE webhook_event (
    id            TEXT PRIMARY KEY,
    account_id    TEXT NOT NULL,
    type          TEXT NOT NULL,
    payload       TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
  ) STRICT;

  CREATE INDEX webhook_event_by_age ON webhook_event (created_at_ms);

  CREATE TABLE webhook_delivery (
    id                 TEXT PRIMARY KEY,
    webhook_id         TEXT NOT NULL,
    event_id           TEXT NOT NULL,
    event_type         TEXT NOT NULL,
    status             TEXT NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
    attempts           INTEGER NOT NULL DEFAULT 0,
    response_status    INTEGER,
    last_attempt_at_ms INTEGER,
    next_attempt_at_ms INTEGER,
    created_at_ms      INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, next_attempt_at_ms) WHERE status = 'pending';
  CREATE INDEX webhook_delivery_by_webhook ON webhook_delivery (webhook_id, id);
  CREATE INDEX webhook_delivery_by_age ON webhook_delivery (created_at_ms);

  CREATE TABLE webhook_lease (
    name     TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    until_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE webhook_mark (
    name     TEXT PRIMARY KEY,
    -- Null: until it is taken away.
    until_ms INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX webhook_mark_by_age ON webhook_mark (until_ms);

  CREATE INDEX api_key_by_expiry ON api_key (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
`

/** The secret before the former one, which was replaced before its own time was over. */
export const olderSecrets = `
  ALTER TABLE webhook ADD COLUMN older_secret BLOB;
  ALTER TABLE webhook ADD COLUMN older_until_ms INTEGER;
`

export const deliveryErrors = 'ALTER TABLE webhook_delivery ADD COLUMN error TEXT'
