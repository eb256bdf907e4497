/**
 * Calls that were refused: in no sum, and away from the table of calls, which every admission writes. How many there
 * are of an account is kept beside them, since they are counted with every batch.
 */
export const refusedCalls = `
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
