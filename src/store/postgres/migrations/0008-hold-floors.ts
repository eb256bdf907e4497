/**
 * What holds have learned from costs above them. Calls from before have no endpoint and taught nothing. The month says
 * whether there is anything to look up: for nearly all keys there is not.
 */
export const holdFloors = `
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
