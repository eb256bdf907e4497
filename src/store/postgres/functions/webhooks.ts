import { DEFAULT_THRESHOLDS, limits } from '../../../kernel/limits.ts'
import { CAP_PERCENT } from '../../../ledger/budget-crossings.ts'
import { BALANCE_LOW, BUDGET_THRESHOLDS, lowMark, MARK_MS } from '../../operations/outbox.ts'
import { PLAN_SETTINGS } from './settings.ts'

/**
 * The events of a settlement, written in its own transaction, only where there is an endpoint that is enabled. The facts
 * are those of operations/outbox.ts, the thresholds those of ledger/budget-crossings.ts. Marks are made under the locks
 * of the months and before that of the account, in the order of their names: batches of several nodes follow each other.
 */
export const webhooks = `
  CREATE OR REPLACE FUNCTION tell_booked(p_booked booking[], p_caller_clock boolean)
  RETURNS void LANGUAGE plpgsql ${PLAN_SETTINGS} AS $$
  DECLARE
    v_now bigint := now_ms();
  BEGIN
    -- The months are locked, and an edit of a cap locks its month: the cap that is read here is the one that stands.
    WITH told AS (
      SELECT b.n, b.id, b.account_id, b.key_id, b.month, CASE WHEN p_caller_clock THEN b.at_ms ELSE v_now END AS at_ms,
        b.cost_nanos, m.held_nanos, k.monthly_budget_nanos AS cap,
        m.spent_nanos - coalesce(sum(b.cost_nanos) OVER (PARTITION BY b.key_id, b.month ORDER BY b.n
          ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0) AS spent
      FROM unnest(p_booked) b JOIN key_month m ON m.key_id = b.key_id AND m.month = b.month
      JOIN api_key k ON k.id = b.key_id
      WHERE b.cost_nanos > 0 AND k.monthly_budget_nanos IS NOT NULL
        AND EXISTS (SELECT FROM webhook w WHERE w.account_id = b.account_id AND w.enabled)
    ), threshold AS (
      SELECT p::integer AS percent FROM jsonb_array_elements_text(coalesce(
        (SELECT value::jsonb FROM setting WHERE name = '${BUDGET_THRESHOLDS}'), '${JSON.stringify(DEFAULT_THRESHOLDS)}')) p
      UNION SELECT ${CAP_PERCENT}
    ), crossed AS (
      SELECT * FROM told JOIN threshold
        ON (spent - cost_nanos) * 100 < cap::numeric * percent AND cap::numeric * percent <= spent * 100
    ), marked AS (
      -- An edit that brings this very cap back must not tell it again.
      INSERT INTO webhook_mark (name, until_ms)
      SELECT 'exceeded/' || key_id || '/' || month || '/' || cap, at_ms + ${MARK_MS} FROM crossed
      WHERE percent = ${CAP_PERCENT} ORDER BY 1 ON CONFLICT DO NOTHING
    )
    INSERT INTO webhook_outbox (account_id, type, key_id, at_ms, facts)
    SELECT account_id, CASE percent WHEN ${CAP_PERCENT} THEN 'key.budget.exceeded' ELSE 'key.budget.threshold' END, key_id,
      at_ms, jsonb_build_object('budget', jsonb_build_object('percent', percent, 'spent', spent::text,
        'held', held_nanos::text, 'cap', cap::text, 'month', month, 'requestId', id))
    FROM crossed ORDER BY n, percent;

    IF NOT EXISTS (SELECT FROM unnest(p_booked) b WHERE b.unpriced) THEN RETURN; END IF;
    WITH first AS (
      SELECT DISTINCT ON (b.account_id, b.day, b.model) b.account_id, b.id, b.model,
        'unpriced/' || b.account_id || '/' || b.day || '/' AS marks,
        CASE WHEN p_caller_clock THEN b.at_ms ELSE v_now END AS at_ms
      FROM unnest(p_booked) b WHERE b.unpriced AND b.state = 'settled'
        AND EXISTS (SELECT FROM webhook w WHERE w.account_id = b.account_id AND w.enabled)
      ORDER BY b.account_id, b.day, b.model, b.n
    ), marked AS (
      INSERT INTO webhook_mark (name, until_ms)
      SELECT marks || model, at_ms + ${MARK_MS} FROM first
      WHERE (SELECT count(*) FROM webhook_mark WHERE name >= marks AND name < marks || U&'\\+10FFFF')
        < ${limits.webhookUnpricedModelsMax}
      ORDER BY (marks || model) COLLATE "C" ON CONFLICT DO NOTHING RETURNING name
    )
    INSERT INTO webhook_outbox (account_id, type, at_ms, facts)
    SELECT account_id, 'call.unpriced', at_ms, jsonb_build_object('model', nullif(model, ''), 'requestId', id)
    FROM first JOIN marked ON marked.name = marks || model;
  END $$;

  -- The account is locked, and has been charged. A sweep that marks a low balance locks no account, so it may be waited for.
  CREATE OR REPLACE FUNCTION tell_balance(p_booked booking[], p_caller_clock boolean)
  RETURNS void LANGUAGE plpgsql ${PLAN_SETTINGS} AS $$
  BEGIN
    WITH charged AS (
      SELECT a.*, a.credited_nanos - a.charged_nanos AS balance, s.cost,
        CASE WHEN p_caller_clock THEN s.at_ms ELSE now_ms() END AS at_ms,
        (SELECT value::bigint FROM setting WHERE name = '${BALANCE_LOW}') AS low
      FROM (SELECT b.account_id, sum(b.cost_nanos) AS cost, max(b.at_ms) AS at_ms FROM unnest(p_booked) b
        GROUP BY b.account_id) s
      JOIN account a ON a.id = s.account_id
      WHERE a.credit_enforced AND EXISTS (SELECT FROM webhook w WHERE w.account_id = a.id AND w.enabled)
    ), passed AS (
      -- Whole nanodollars: below the smallest of them is nothing.
      SELECT * FROM charged, LATERAL (VALUES (1, 'balance.low', low), (2, 'balance.exhausted', 1)) AS told (n, type, nanos)
      WHERE balance < nanos AND nanos <= balance + cost
    ), marked AS (
      INSERT INTO webhook_mark (name, until_ms)
      SELECT DISTINCT '${lowMark('')}' || id, NULL::bigint FROM passed WHERE low IS NOT NULL ORDER BY 1 ON CONFLICT DO NOTHING
    )
    INSERT INTO webhook_outbox (account_id, type, at_ms, facts)
    SELECT id, type, at_ms, jsonb_build_object('balance', jsonb_build_object('credited', credited_nanos::text,
      'charged', charged_nanos::text, 'held', held_nanos::text, 'enforced', true))
    FROM passed ORDER BY id, n;
  END $$;
`
