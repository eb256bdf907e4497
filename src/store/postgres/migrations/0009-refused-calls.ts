/**
 * Calls that were refused: in no sum, and away from the table of calls. How many there are of an account, and what all
 * logged bodies take, is kept beside them by triggers: so it is right whoever writes, nodes of the version before and
 * COPY included, and nobody has to count.
 */
export const refusedCalls = `
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
