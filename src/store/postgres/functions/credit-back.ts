import { STEADY, STEADY_PLANS } from './steady.ts'

/**
 * Gives back what calls cost, as one statement from outside: many statements inside, each of which sees what was
 * committed before it began, and no lock that outlives a round trip. Calls are locked first, so that what was paid for
 * them cannot change any more; then the account, then the days, in the order in which settlement locks them.
 *
 * With a name (`Idempotency-Key`) it is done once. What is kept under it begins with `p_subject`; a digit for each call
 * follows, its outcome's place in `p_kinds`.
 */
export const creditBack = `
  CREATE OR REPLACE FUNCTION credit_back(p_account text, p_calls jsonb, p_reason text, p_at_ms bigint, p_once text,
    p_kinds text[], p_subject text, p_name text, p_fingerprint bytea, p_name_at_ms bigint, p_name_ms bigint,
    p_forgotten_max integer)
  RETURNS jsonb LANGUAGE plpgsql ${STEADY} AS $$
  DECLARE
    v_subject     text;
    v_fingerprint bytea;
    v_name_at     bigint := coalesce(p_name_at_ms, now_ms());
    v_calls       jsonb;
    v_outcomes    jsonb;
    v_days        bigint;
    v_moved       bigint;
  BEGIN
    IF p_name IS NOT NULL THEN
      -- An empty subject is never committed: it says that the name was taken here.
      INSERT INTO idempotency AS kept (account_id, name, fingerprint, subject, at_ms)
      VALUES (p_account, p_name, p_fingerprint, '', v_name_at)
      ON CONFLICT (account_id, name) DO UPDATE SET
        fingerprint = CASE WHEN kept.at_ms > v_name_at - p_name_ms THEN kept.fingerprint ELSE excluded.fingerprint END,
        subject = CASE WHEN kept.at_ms > v_name_at - p_name_ms THEN kept.subject ELSE '' END,
        at_ms = CASE WHEN kept.at_ms > v_name_at - p_name_ms THEN kept.at_ms ELSE excluded.at_ms END
      RETURNING subject, fingerprint INTO v_subject, v_fingerprint;
      IF v_subject <> '' THEN
        RETURN jsonb_build_object('subject', v_subject, 'fingerprint', encode(v_fingerprint, 'hex'));
      END IF;
      WITH outdated AS MATERIALIZED (
        SELECT account_id, name FROM idempotency WHERE at_ms <= v_name_at - p_name_ms
        ORDER BY at_ms LIMIT p_forgotten_max FOR UPDATE SKIP LOCKED
      )
      DELETE FROM idempotency USING outdated
      WHERE idempotency.account_id = outdated.account_id AND idempotency.name = outdated.name;
    END IF;

    -- The account is compared in a way for which no index serves: that of the account's calls holds all of them.
    SELECT coalesce(jsonb_object_agg(c.id, to_jsonb(c)), '{}') INTO v_calls FROM (
      SELECT id, month, state, credited, key_id, day, coalesce(model_served, model_asked, '') AS model,
        coalesce(cost_nanos, 0) AS cost_nanos
      FROM call WHERE account_id IS NOT DISTINCT FROM p_account
        AND id = ANY (ARRAY(SELECT c ->> 'requestId' FROM jsonb_array_elements(p_calls) c))
      ORDER BY id FOR NO KEY UPDATE) c;

    SELECT coalesce(jsonb_agg(to_jsonb(o) ORDER BY o.n), '[]') INTO v_outcomes FROM (
      SELECT n, id, "creditId", month, key_id AS "keyId", day, model, paid,
        CASE WHEN state IS NULL THEN 'not_found'
          WHEN state = 'in_flight' THEN 'in_flight'
          WHEN credited THEN 'already_credited'
          WHEN state <> 'settled' OR paid <= 0 THEN 'nothing_to_credit'
          -- The same call once more.
          WHEN nth > 1 THEN 'already_credited'
          ELSE 'credited' END AS kind
      FROM (
        SELECT a.n, a.c ->> 'requestId' AS id, a.c ->> 'creditId' AS "creditId", k.*, k.cost_nanos - (
            SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE credit.call_id = a.c ->> 'requestId'
          )::bigint AS paid,
          row_number() OVER (PARTITION BY a.c ->> 'requestId' ORDER BY a.n) AS nth
        FROM jsonb_array_elements(p_calls) WITH ORDINALITY AS a(c, n)
          CROSS JOIN LATERAL jsonb_to_record(coalesce(v_calls -> (a.c ->> 'requestId'), '{}')) AS k(month text,
            state text, credited boolean, key_id text, day text, model text, cost_nanos bigint)
      ) AS looked
    ) AS o;

    -- After this point the calls are credited back. A second entry of the kind would break the unique index, and with
    -- it the whole command.
    INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
    SELECT o."creditId", p_account, 'credit_back', o.paid, p_reason, o.id, p_once, p_at_ms
    FROM jsonb_to_recordset(v_outcomes) AS o(id text, "creditId" text, paid bigint, kind text)
    WHERE o.kind = 'credited' ORDER BY o."creditId";

    UPDATE call SET credited = true
    FROM jsonb_to_recordset(v_outcomes) AS o(id text, month text, kind text)
    WHERE call.id = o.id AND call.month = o.month AND o.kind = 'credited';

    -- Only a top-up makes credit count: who never prepaid must not be held to a balance by getting money back.
    UPDATE account SET credited_nanos = credited_nanos + o.total
    FROM (SELECT sum(paid) AS total FROM jsonb_to_recordset(v_outcomes) AS r(paid bigint, kind text)
      WHERE r.kind = 'credited') AS o
    WHERE account.id = p_account AND o.total > 0;

    SELECT days, moved INTO v_days, v_moved FROM credit_days((
      SELECT jsonb_agg(jsonb_build_object('accountId', p_account, 'day', o.day, 'model', o.model, 'keyId', o."keyId",
        'nanos', o.paid))
      FROM jsonb_to_recordset(v_outcomes) AS o(day text, model text, "keyId" text, paid bigint, kind text)
      WHERE o.kind = 'credited'));
    IF v_days <> v_moved THEN
      RAISE EXCEPTION 'there is no rollup for a call; tollgate audit says what is wrong with the books';
    END IF;

    IF p_name IS NOT NULL THEN
      UPDATE idempotency SET subject = p_subject || coalesce(
        (SELECT string_agg((array_position(p_kinds, o.kind) - 1)::text, '' ORDER BY o.n)
         FROM jsonb_to_recordset(v_outcomes) AS o(n bigint, kind text)), '')
      WHERE account_id = p_account AND name = p_name;
    END IF;
    RETURN jsonb_build_object('calls', (
      SELECT coalesce(jsonb_agg(jsonb_build_object('kind', o.kind, 'nanos', o.paid::text) ORDER BY o.n), '[]')
      FROM jsonb_to_recordset(v_outcomes) AS o(n bigint, kind text, paid bigint)
    ), 'balance', (
      SELECT jsonb_build_object('creditedNanos', credited_nanos::text, 'chargedNanos', charged_nanos::text,
        'heldNanos', held_nanos::text, 'enforced', credit_enforced)
      FROM account WHERE id = p_account));
  END $$;

  -- What the days of calls show as given back. How many days there should be, and how many there were.
  CREATE OR REPLACE FUNCTION credit_days(p_parts jsonb, OUT days bigint, OUT moved bigint)
  LANGUAGE plpgsql ${STEADY_PLANS} AS $$
  BEGIN
    PERFORM 1 FROM rollup JOIN (
      SELECT DISTINCT "accountId", day, model, "keyId" FROM jsonb_to_recordset(p_parts)
        AS p("accountId" text, day text, model text, "keyId" text)
    ) AS p ON rollup.account_id = p."accountId" AND rollup.day = p.day AND rollup.model = p.model
      AND rollup.key_id = p."keyId"
    ORDER BY rollup.account_id, rollup.day, rollup.model, rollup.key_id FOR NO KEY UPDATE OF rollup;

    WITH parts AS (
      SELECT "accountId", day, model, "keyId", sum(nanos)::bigint AS nanos FROM jsonb_to_recordset(p_parts)
        AS p("accountId" text, day text, model text, "keyId" text, nanos bigint)
      GROUP BY 1, 2, 3, 4
    ), changed AS (
      UPDATE rollup SET credited_nanos = credited_nanos + parts.nanos FROM parts
      WHERE rollup.account_id = parts."accountId" AND rollup.day = parts.day AND rollup.model = parts.model
        AND rollup.key_id = parts."keyId"
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM parts), (SELECT count(*) FROM changed) INTO days, moved;
  END $$;
`
