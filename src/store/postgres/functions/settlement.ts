import { limits } from '../../../kernel/limits.ts'
import { CLOSING_COLUMNS } from '../../../ledger/call-columns.ts'
import { HOLD_NANOS_MAX } from '../../../ledger/decide-admission.ts'
import { HOT_SETTINGS, inJson, PLAN_SETTINGS } from './settings.ts'

/** Raises the hold floor after a call that cost more than it held. The call's month is locked by settlement. */
export const holdFloors = `
  CREATE OR REPLACE FUNCTION raise_hold_floor(p_key text, p_month text, p_endpoint text, p_model text,
    p_nanos bigint, p_list_nanos bigint)
  RETURNS void LANGUAGE plpgsql ${PLAN_SETTINGS} AS $$
  DECLARE
    v_own boolean := EXISTS (SELECT FROM hold_floor
      WHERE key_id = p_key AND month = p_month AND endpoint = p_endpoint AND model = p_model)
      OR (SELECT count(*) FROM hold_floor WHERE key_id = p_key AND month = p_month) < ${limits.holdFloorsMax};
  BEGIN
    INSERT INTO hold_floor AS f (key_id, month, endpoint, model, nanos, list_nanos)
    VALUES (p_key, p_month, CASE WHEN v_own THEN p_endpoint ELSE '' END, CASE WHEN v_own THEN p_model ELSE '' END,
      least(p_nanos, ${HOLD_NANOS_MAX}), least(p_list_nanos, ${HOLD_NANOS_MAX}))
    ON CONFLICT (key_id, month, endpoint, model) DO UPDATE SET nanos = greatest(f.nanos, excluded.nanos),
      list_nanos = greatest(f.list_nanos, excluded.list_nanos);
    UPDATE key_month SET has_floors = true WHERE key_id = p_key AND month = p_month AND NOT has_floors;
  END $$;
`

/**
 * Settlement of a batch in one round trip: each call is closed once, and its cost booked on the key's month, the
 * account and the day. Rows that many calls share are written once per batch. Rows are locked in a fixed order (calls,
 * months, accounts, rollups, each by id), so that batches of many nodes follow each other and never wait in a circle.
 */
export const settlement = `
  CREATE OR REPLACE FUNCTION settle_calls(p_closings jsonb)
  RETURNS jsonb LANGUAGE plpgsql ${HOT_SETTINGS} AS $$
  DECLARE
    v_ids      text[];
    v_calls    jsonb;
    v_booked   booking[];
    v_overran  boolean;
    v_over     booking;
    v_balances jsonb;
    v_results  jsonb;
    v_answers  jsonb;
    v_told     boolean := EXISTS (SELECT FROM webhook WHERE enabled);
  BEGIN
    SELECT array_agg(DISTINCT c ->> 'requestId') INTO v_ids FROM jsonb_array_elements(p_closings) c;
    SELECT coalesce(jsonb_object_agg(c.id, to_jsonb(c)), '{}') INTO v_calls FROM (
      SELECT id, month, account_id, key_id, day, state, started_at_ms, model_asked, endpoint, hold_nanos,
        hold_list_nanos, lost_list_nanos, balance_nanos, requests
      FROM call WHERE id = ANY (v_ids) ORDER BY id FOR NO KEY UPDATE) c;

    -- Of closings of the same call the first counts, and one that says that it is lost only if there is no other. An
    -- interrupted call has given its hold back already. lost_nanos is what is no longer lost: below 0 if it is lost now.
    SELECT coalesce(array_agg(b ORDER BY (b).n), '{}'), bool_or((b).hold_nanos < (b).cost_nanos)
    INTO v_booked, v_overran FROM (
      SELECT DISTINCT ON (c."requestId") ROW(c.n, c."requestId", k.month, k.account_id, k.key_id, k.day,
        coalesce(c."modelServed", k.model_asked, ''), c.state,
        coalesce(c."atMs", greatest(k.started_at_ms, now_ms() - c."agoMs")), k.hold_nanos,
        CASE WHEN k.state = 'in_flight' THEN k.hold_nanos ELSE 0 END,
        k.lost_list_nanos - CASE WHEN c.state = 'interrupted' THEN k.hold_list_nanos ELSE 0 END,
        c."costNanos", c."listNanos", c."inputTokens", c."outputTokens", c."cacheReadTokens",
        c."cacheWriteTokens", c.unpriced, c.estimated)::booking AS b
      FROM jsonb_to_recordset(p_closings) AS c(n integer, "requestId" text, state text, "atMs" bigint,
        "agoMs" bigint, "modelServed" text, "costNanos" bigint, "listNanos" bigint, "inputTokens" bigint,
        "outputTokens" bigint, "cacheReadTokens" bigint, "cacheWriteTokens" bigint, unpriced boolean,
        estimated boolean)
      CROSS JOIN LATERAL jsonb_to_record(v_calls -> c."requestId") AS k(month text, account_id text, key_id text,
        day text, state text, started_at_ms bigint, model_asked text, hold_nanos bigint, hold_list_nanos bigint,
        lost_list_nanos bigint)
      WHERE k.state = 'in_flight' OR k.state = 'interrupted' AND c.state <> 'interrupted'
      ORDER BY c."requestId", c.state = 'interrupted', c.n
    ) first;

    INSERT INTO key_month AS m (key_id, month, held_nanos, spent_nanos, lost_nanos)
    SELECT b.key_id, b.month, -sum(b.held_nanos), sum(b.cost_nanos), -sum(b.lost_nanos) FROM unnest(v_booked) b
    WHERE b.held_nanos > 0 OR b.lost_nanos <> 0 OR b.cost_nanos > 0
    GROUP BY b.key_id, b.month ORDER BY b.key_id COLLATE "C", b.month COLLATE "C"
    ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = m.held_nanos + excluded.held_nanos,
      spent_nanos = m.spent_nanos + excluded.spent_nanos, lost_nanos = m.lost_nanos + excluded.lost_nanos;

    -- Under the lock of the month.
    IF v_told THEN PERFORM tell_booked(v_booked, p_closings -> 0 ? 'atMs'); END IF;
    IF v_overran THEN
      FOR v_over IN SELECT * FROM unnest(v_booked) b WHERE b.hold_nanos < b.cost_nanos ORDER BY b.n LOOP
        CONTINUE WHEN v_calls -> v_over.id ->> 'endpoint' IS NULL;
        PERFORM raise_hold_floor(v_over.key_id, v_over.month, v_calls -> v_over.id ->> 'endpoint',
          coalesce(v_calls -> v_over.id ->> 'model_asked', ''), v_over.cost_nanos, v_over.list_nanos);
      END LOOP;
    END IF;

    PERFORM 1 FROM account WHERE id IN (SELECT b.account_id FROM unnest(v_booked) b)
    ORDER BY id FOR NO KEY UPDATE;
    WITH moved AS (
      UPDATE account a SET held_nanos = a.held_nanos - s.held, charged_nanos = a.charged_nanos + s.cost
      FROM (SELECT b.account_id, sum(b.held_nanos) AS held, sum(b.cost_nanos) AS cost FROM unnest(v_booked) b
        GROUP BY b.account_id) s
      WHERE a.id = s.account_id RETURNING a.id, a.credited_nanos - a.charged_nanos AS balance
    )
    SELECT jsonb_object_agg(id, balance) INTO v_balances FROM moved;
    IF v_told THEN PERFORM tell_balance(v_booked, p_closings -> 0 ? 'atMs'); END IF;
    -- The balance after each call, as if they had been booked one after the other.
    SELECT coalesce(jsonb_object_agg(s.id, jsonb_build_object('n', s.n, 'balance', s.balance)), '{}')
    INTO v_results FROM (
      SELECT b.id, b.n, (v_balances ->> b.account_id)::bigint + coalesce(sum(b.cost_nanos) OVER (
        PARTITION BY b.account_id ORDER BY b.n ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0) AS balance
      FROM unnest(v_booked) b) s;

    INSERT INTO rollup AS r (account_id, day, model, key_id, requests, input_tokens, output_tokens,
      cache_read_tokens, cache_write_tokens, cost_nanos, list_nanos, unpriced_requests, estimated_requests)
    SELECT b.account_id, b.day, b.model, b.key_id, sum(c.requests), sum(b.input_tokens), sum(b.output_tokens),
      sum(b.cache_read_tokens), sum(b.cache_write_tokens), sum(b.cost_nanos), sum(b.list_nanos),
      coalesce(sum(c.requests) FILTER (WHERE b.unpriced), 0), coalesce(sum(c.requests) FILTER (WHERE b.estimated), 0)
    FROM unnest(v_booked) b, LATERAL (SELECT (v_calls -> b.id ->> 'requests')::bigint AS requests) c
    WHERE b.state = 'settled' AND c.requests > 0 GROUP BY b.account_id, b.day, b.model, b.key_id
    ORDER BY b.account_id, b.day COLLATE "C", b.model COLLATE "C", b.key_id COLLATE "C"
    ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET requests = r.requests + excluded.requests,
      input_tokens = r.input_tokens + excluded.input_tokens,
      output_tokens = r.output_tokens + excluded.output_tokens,
      cache_read_tokens = r.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = r.cache_write_tokens + excluded.cache_write_tokens,
      cost_nanos = r.cost_nanos + excluded.cost_nanos, list_nanos = r.list_nanos + excluded.list_nanos,
      unpriced_requests = r.unpriced_requests + excluded.unpriced_requests,
      estimated_requests = r.estimated_requests + excluded.estimated_requests;

    UPDATE call k SET state = b.state, ended_at_ms = b.at_ms, overrun = b.hold_nanos < b.cost_nanos,
      lost_list_nanos = CASE WHEN b.state = 'interrupted' THEN k.hold_list_nanos ELSE 0 END,
      balance_nanos = (v_results -> b.id ->> 'balance')::bigint,
      ${CLOSING_COLUMNS.map(({ column, name }) => `${column} = c."${name}"`).join(', ')}
    FROM unnest(v_booked) b, LATERAL jsonb_to_record(p_closings -> b.n) AS c(${inJson(CLOSING_COLUMNS)})
    WHERE k.id = b.id AND k.month = b.month;

    SELECT jsonb_agg(CASE
      WHEN v_calls ? (c ->> 'requestId') THEN jsonb_build_object(
        'booked', coalesce(v_results -> (c ->> 'requestId') -> 'n' = c -> 'n', false),
        'balanceNanos', coalesce(v_results -> (c ->> 'requestId') ->> 'balance',
          v_calls -> (c ->> 'requestId') ->> 'balance_nanos',
          (SELECT (credited_nanos - charged_nanos)::text FROM account
           WHERE id = v_calls -> (c ->> 'requestId') ->> 'account_id')))
      ELSE 'null' END ORDER BY (c ->> 'n')::integer)
    INTO v_answers FROM jsonb_array_elements(p_closings) c;
    RETURN v_answers;
  END $$;
`
