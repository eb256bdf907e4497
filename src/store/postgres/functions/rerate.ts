import { STEADY_PLANS } from './steady.ts'

/**
 * Books calls that were priced again. The call itself is never edited: its record stays what was billed then. The
 * entry, the account's credit and what the day shows as credited move together. What was booked before, or has changed
 * since it was read, is left out. Locks as in `credit_back`.
 */
export const rerate = `
  CREATE OR REPLACE FUNCTION book_rerates(p_changed jsonb, p_at_ms bigint, OUT calls bigint, OUT nanos numeric)
  LANGUAGE plpgsql ${STEADY_PLANS} AS $$
  DECLARE
    v_entries jsonb;
    v_booked  jsonb;
    v_days    bigint;
    v_moved   bigint;
  BEGIN
    PERFORM 1 FROM call JOIN jsonb_to_recordset(p_changed) AS c("callId" text, day text)
      ON call.id = c."callId" AND call.month = left(c.day, 7)
    ORDER BY call.id FOR NO KEY UPDATE OF call;

    -- The condition holds off whoever credited the call since it was read; the unique index holds off a second run.
    WITH entries AS (
      INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
      SELECT c.id, c."accountId", 'rerate', c.nanos, c.reason, c."callId", c.once, p_at_ms
      FROM jsonb_to_recordset(p_changed) AS c(id text, "accountId" text, nanos bigint, reason text, "callId" text,
        once text, credited bigint)
      WHERE (SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE credit.call_id = c."callId") = c.credited
        AND NOT EXISTS (SELECT 1 FROM credit WHERE credit.call_id = c."callId" AND credit.kind = 'credit_back')
      ON CONFLICT DO NOTHING
      RETURNING id
    )
    SELECT coalesce(jsonb_object_agg(id, true), '{}') INTO v_entries FROM entries;
    SELECT coalesce(jsonb_agg(c), '[]') INTO v_booked
    FROM jsonb_array_elements(p_changed) AS c WHERE v_entries ? (c ->> 'id');

    PERFORM 1 FROM account
    WHERE id IN (SELECT c ->> 'accountId' FROM jsonb_array_elements(v_booked) c) ORDER BY id FOR NO KEY UPDATE;
    UPDATE account SET credited_nanos = credited_nanos + b.total
    FROM (SELECT "accountId", sum(r.nanos) AS total
      FROM jsonb_to_recordset(v_booked) AS r("accountId" text, nanos bigint) GROUP BY 1) AS b
    WHERE account.id = b."accountId";

    SELECT d.days, d.moved INTO v_days, v_moved FROM credit_days(v_booked) AS d;
    IF v_days <> v_moved THEN
      RAISE EXCEPTION 'there is no rollup for a call; tollgate audit says what is wrong with the books';
    END IF;
    SELECT count(*), coalesce(sum(r.nanos), 0) INTO calls, nanos
    FROM jsonb_to_recordset(v_booked) AS r(nanos bigint);
  END $$;
`
