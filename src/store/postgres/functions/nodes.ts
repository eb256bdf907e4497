import { HOT_SETTINGS } from './settings.ts'

/**
 * The life of nodes: they register, are seen, are given up by the others, and the calls that they left open are closed.
 */
export const nodes = `
  -- With p_alone, a node that was here under the same name is gone.
  CREATE OR REPLACE FUNCTION register_node(p_id text, p_name text, p_alone boolean)
  RETURNS bigint LANGUAGE plpgsql SET lock_timeout = '1500ms' AS $$
  BEGIN
    IF p_alone THEN
      PERFORM 1 FROM node WHERE name = p_name AND cleared_at_ms IS NULL AND fenced_at_ms IS NULL
      ORDER BY id FOR UPDATE;
      UPDATE node SET fenced_at_ms = now_ms()
      WHERE name = p_name AND cleared_at_ms IS NULL AND fenced_at_ms IS NULL;
    END IF;
    INSERT INTO node (id, name, started_at_ms, seen_at_ms) VALUES (p_id, p_name, now_ms(), now_ms());
    RETURN 1;
  END $$;

  -- Admissions of this node that are under way are waited for; those that begin later with the old epoch are not made.
  -- Null if the node has been given up, which comes to the same.
  CREATE OR REPLACE FUNCTION raise_epoch(p_id text)
  RETURNS bigint LANGUAGE plpgsql SET lock_timeout = '1500ms' AS $$
  DECLARE
    v_epoch bigint;
  BEGIN
    PERFORM 1 FROM node WHERE id = p_id AND fenced_at_ms IS NULL FOR UPDATE;
    UPDATE node SET epoch = epoch + 1 WHERE id = p_id AND fenced_at_ms IS NULL RETURNING epoch INTO v_epoch;
    RETURN v_epoch;
  END $$;

  -- The lock waits for admissions under way: what a fenced node has admitted is all there to be closed. A node whose
  -- admission is under way this instant is left for the next time.
  CREATE OR REPLACE FUNCTION fence_silent_nodes(p_silent_ms bigint)
  RETURNS SETOF text LANGUAGE plpgsql SET lock_timeout = '1500ms' AS $$
  DECLARE
    v_ids text[];
  BEGIN
    v_ids := ARRAY(SELECT id FROM node WHERE cleared_at_ms IS NULL AND fenced_at_ms IS NULL
      AND seen_at_ms < now_ms() - p_silent_ms ORDER BY id FOR UPDATE SKIP LOCKED);
    UPDATE node SET fenced_at_ms = now_ms() WHERE id = ANY (v_ids);
    RETURN QUERY SELECT unnest(v_ids);
  END $$;

  CREATE OR REPLACE FUNCTION fence_node(p_id text)
  RETURNS void LANGUAGE plpgsql SET lock_timeout = '1500ms' AS $$
  BEGIN
    PERFORM 1 FROM node WHERE id = p_id FOR UPDATE;
    UPDATE node SET fenced_at_ms = now_ms() WHERE id = p_id AND fenced_at_ms IS NULL;
  END $$;

  -- Gives back the holds of some calls that the node has open. How many they were.
  CREATE OR REPLACE FUNCTION interrupt_calls(p_node text, p_at_ms bigint, p_limit integer)
  RETURNS integer LANGUAGE plpgsql ${HOT_SETTINGS} AS $$
  DECLARE
    v_open jsonb;
  BEGIN
    SELECT jsonb_agg(to_jsonb(c)) INTO v_open FROM (
      SELECT id, month, account_id, key_id, hold_nanos, hold_list_nanos FROM call
      WHERE node_id = p_node AND state = 'in_flight' ORDER BY id LIMIT p_limit FOR NO KEY UPDATE) c;
    IF v_open IS NULL THEN RETURN 0; END IF;

    INSERT INTO key_month AS m (key_id, month, held_nanos, lost_nanos)
    SELECT c.key_id, c.month, -sum(c.hold_nanos), sum(c.hold_list_nanos)
    FROM jsonb_to_recordset(v_open) AS c(key_id text, month text, hold_nanos bigint, hold_list_nanos bigint)
    WHERE c.hold_nanos > 0 OR c.hold_list_nanos > 0
    GROUP BY c.key_id, c.month ORDER BY c.key_id COLLATE "C", c.month COLLATE "C"
    ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = m.held_nanos + excluded.held_nanos,
      lost_nanos = m.lost_nanos + excluded.lost_nanos;
    PERFORM 1 FROM account WHERE id IN (SELECT c ->> 'account_id' FROM jsonb_array_elements(v_open) c)
    ORDER BY id FOR NO KEY UPDATE;
    UPDATE account a SET held_nanos = a.held_nanos - s.held
    FROM (SELECT c.account_id, sum(c.hold_nanos) AS held
      FROM jsonb_to_recordset(v_open) AS c(account_id text, hold_nanos bigint) GROUP BY c.account_id) s
    WHERE a.id = s.account_id;
    UPDATE call k SET state = 'interrupted', ended_at_ms = greatest(k.started_at_ms, coalesce(p_at_ms, now_ms())),
      cost_nanos = 0, list_nanos = 0, lost_list_nanos = k.hold_list_nanos
    FROM jsonb_to_recordset(v_open) AS c(id text, month text) WHERE k.id = c.id AND k.month = c.month;
    RETURN jsonb_array_length(v_open);
  END $$;

  -- True if a node that was given up has nothing open any more; it is not looked at again.
  CREATE OR REPLACE FUNCTION clear_node(p_id text)
  RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE node SET cleared_at_ms = now_ms() WHERE id = p_id AND fenced_at_ms IS NOT NULL
      AND NOT EXISTS (SELECT FROM call WHERE node_id = p_id AND state = 'in_flight');
    RETURN FOUND;
  END $$;
`
