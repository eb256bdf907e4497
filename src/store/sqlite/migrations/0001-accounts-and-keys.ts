/** Accounts, API keys and admin keys. Every row names its account, so that more accounts later need no rewrite. */
export const accountsAndKeys = `
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
