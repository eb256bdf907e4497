/**
 * What a key may do beyond its cap, the commands that may be repeated without being done twice, and the batch files
 * that keys uploaded. Keys from before have no allowlist, keep no bodies and follow no other key.
 */
export const keyLimits = `
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
