/**
 * What holds have learned from costs above them. Calls from before have no endpoint and taught nothing. The month says
 * whether there is anything to look up: for nearly all keys there is not.
 */
export const holdFloors = `
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
