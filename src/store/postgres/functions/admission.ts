import { OPENING_COLUMNS } from '../../../ledger/call-columns.ts'
import { HOT_SETTINGS, inJson } from './settings.ts'

/**
 * Admission of a batch in one round trip. Every row that a decision depends on is locked before it is read, in a fixed
 * order (node, keys, their months, accounts, each by id), so that admissions of the same key on any number of nodes
 * follow each other, and each sees the holds of those before it. Settlement locks the calls, then months, accounts and
 * rollups: the common rows come in the same order, so no two transactions wait for each other. The decisions themselves
 * are those of ledger/decide-admission.ts, made one after the other because each depends on the holds of the ones before;
 * rows are written once per batch.
 *
 * Time is the database's: the clocks of nodes do not matter. A node that was given up is answered with null. So is an
 * admission of an earlier epoch, which its node has given up waiting for, and which got through after all.
 */
export const admission = `
  CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

  CREATE OR REPLACE FUNCTION month_of(at_ms bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT to_char(to_timestamp(at_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM') $$;

  CREATE OR REPLACE FUNCTION day_of(at_ms bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT to_char(to_timestamp(at_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD') $$;

  CREATE OR REPLACE FUNCTION next_month_ms(at_ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    $$ SELECT (extract(epoch FROM (date_trunc('month', to_timestamp(at_ms / 1000.0) AT TIME ZONE 'UTC')
         + interval '1 month') AT TIME ZONE 'UTC') * 1000)::bigint $$;

  -- A statement that has waited for a key's lock still sees the months as they were when it began; what it asks through
  -- this it sees as they are now.
  CREATE OR REPLACE FUNCTION key_month_now(p_key text, p_month text) RETURNS key_month LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_month key_month;
  BEGIN
    SELECT * INTO v_month FROM key_month WHERE key_id = p_key AND month = p_month;
    RETURN v_month;
  END $$;

  CREATE OR REPLACE FUNCTION admit_calls(p_node text, p_epoch bigint, p_caller_clock boolean, p_calls jsonb)
  RETURNS jsonb LANGUAGE plpgsql ${HOT_SETTINGS} AS $$
  DECLARE
    v_now      bigint;
    -- How things stood before this batch: keys by digest, months by key and month, accounts by id.
    v_keys     jsonb;
    v_wanted   jsonb;
    v_found    bigint;
    v_months   jsonb;
    v_accounts jsonb;
    -- What this batch has come to so far.
    v_month_held   jsonb := '{}';
    v_account_held jsonb := '{}';
    v_used     jsonb := '{}';
    v_answers  jsonb[] := '{}';
    v_rows     jsonb[] := '{}';
    -- Of the call at hand.
    v_call     jsonb;
    v_key      jsonb;
    v_key_id   text;
    v_account  jsonb;
    v_account_id text;
    v_at       bigint;
    v_month    text;
    v_free     boolean;
    v_held_counts boolean;
    v_listed   boolean;
    v_enforced boolean;
    v_cap      bigint;
    v_spent    bigint;
    v_held     bigint;
    v_balance  bigint;
    v_all_held bigint;
    v_budget   jsonb;
    v_batch    jsonb;
    v_stranger text;
    v_refusal  jsonb;
    v_by       jsonb;
    v_hold     bigint;
    v_unreached bigint;
    v_hold_list bigint;
  BEGIN
    -- The weakest lock: a heartbeat passes it, fencing the node or raising its epoch waits.
    PERFORM 1 FROM node WHERE id = p_node AND epoch = p_epoch AND fenced_at_ms IS NULL FOR KEY SHARE;
    IF NOT FOUND THEN RETURN NULL; END IF;

    -- A revocation that has committed is seen here; one that has not waits until this batch has.
    WITH locked AS (
      SELECT * FROM api_key
      WHERE digest IN (SELECT decode(c ->> 'digest', 'hex') FROM jsonb_array_elements(p_calls) c)
      ORDER BY id FOR NO KEY UPDATE
    )
    SELECT coalesce(jsonb_object_agg(encode(digest, 'hex'), jsonb_build_object(
      'id', id, 'account', account_id, 'expires', expires_at_ms, 'revoked', revoked_at_ms,
      'cap', monthly_budget_nanos, 'models', allowed_models, 'log', log_requests)), '{}')
    INTO v_keys FROM locked;
    v_now := now_ms();

    -- The months of all that may hold something. A row has to be there to be locked.
    SELECT coalesce(jsonb_agg(to_jsonb(w)), '[]') INTO v_wanted FROM (
      SELECT DISTINCT v_keys -> (c ->> 'digest') ->> 'id' AS key_id,
        month_of(CASE WHEN p_caller_clock THEN (c ->> 'atMs')::bigint ELSE v_now END) AS month
      FROM jsonb_array_elements(p_calls) c
      WHERE v_keys ? (c ->> 'digest') AND c #>> '{hold,kind}' <> 'none'
        AND (v_keys -> (c ->> 'digest') ->> 'revoked' IS NULL OR (c ->> 'hasBegun')::boolean)) w;
    LOOP
      SELECT coalesce(jsonb_object_agg(l.key_id || ' ' || l.month,
        jsonb_build_object('spent', l.spent_nanos, 'held', l.held_nanos, 'floors', l.has_floors)), '{}'), count(*)
      INTO v_months, v_found FROM (
        SELECT m.* FROM jsonb_to_recordset(v_wanted) AS w(key_id text, month text)
        JOIN key_month m ON m.key_id = w.key_id AND m.month = w.month
        ORDER BY m.key_id, m.month FOR NO KEY UPDATE OF m) l;
      EXIT WHEN v_found = jsonb_array_length(v_wanted);
      INSERT INTO key_month (key_id, month)
      SELECT w.key_id, w.month FROM jsonb_to_recordset(v_wanted) AS w(key_id text, month text)
      ORDER BY w.key_id COLLATE "C", w.month COLLATE "C" ON CONFLICT DO NOTHING;
    END LOOP;

    -- Where credit counts, admissions of the account follow each other. Where it does not, they need not.
    SELECT coalesce(jsonb_object_agg(id, jsonb_build_object(
      'balance', credited_nanos - charged_nanos, 'held', held_nanos, 'enforced', credit_enforced)), '{}')
    INTO v_accounts FROM account WHERE id IN (SELECT k.value ->> 'account' FROM jsonb_each(v_keys) k);
    IF jsonb_path_exists(v_accounts, '$.*.enforced ? (@ == true)') THEN
      WITH locked AS (
        SELECT * FROM account
        WHERE id IN (SELECT a.key FROM jsonb_each(v_accounts) a WHERE (a.value ->> 'enforced')::boolean)
        ORDER BY id FOR NO KEY UPDATE
      )
      SELECT v_accounts || jsonb_object_agg(id, jsonb_build_object(
        'balance', credited_nanos - charged_nanos, 'held', held_nanos, 'enforced', credit_enforced))
      INTO v_accounts FROM locked;
    END IF;

    FOR v_call IN SELECT c FROM jsonb_array_elements(p_calls) WITH ORDINALITY AS e(c, n) ORDER BY n LOOP
      -- The holder of a key that is not in force learns nothing of the account, and uses nothing.
      v_key := v_keys -> (v_call ->> 'digest');
      v_at := CASE WHEN p_caller_clock THEN (v_call ->> 'atMs')::bigint ELSE v_now END;
      IF v_key IS NULL OR (v_key ->> 'revoked' IS NOT NULL OR (v_key ->> 'expires')::bigint <= v_at)
          AND (v_call ->> 'hasBegun')::boolean IS NOT TRUE THEN
        v_answers := v_answers || jsonb_build_object('refusal', jsonb_build_object('reason', CASE
          WHEN v_key IS NULL THEN 'unknown_key'
          WHEN v_key ->> 'revoked' IS NOT NULL THEN 'revoked_key'
          ELSE 'expired_key' END));
        CONTINUE;
      END IF;

      v_key_id := v_key ->> 'id';
      v_account_id := v_key ->> 'account';
      v_account := v_accounts -> v_account_id;
      v_balance := (v_account ->> 'balance')::bigint;
      v_enforced := (v_account ->> 'enforced')::boolean;
      v_all_held := (v_account ->> 'held')::bigint + coalesce((v_account_held ->> v_account_id)::bigint, 0);
      v_cap := (v_key ->> 'cap')::bigint;
      v_listed := jsonb_typeof(v_key -> 'models') = 'array';
      v_month := month_of(v_at);
      v_free := v_call #>> '{hold,kind}' = 'none';
      v_held_counts := (v_call ->> 'heldCounts')::boolean;
      v_budget := NULL; v_spent := NULL; v_held := NULL;
      IF v_cap IS NOT NULL AND NOT v_free THEN
        v_spent := (v_months -> (v_key_id || ' ' || v_month) ->> 'spent')::bigint;
        v_held := (v_months -> (v_key_id || ' ' || v_month) ->> 'held')::bigint
          + coalesce((v_month_held ->> (v_key_id || ' ' || v_month))::bigint, 0);
        v_budget := jsonb_build_object('spentNanos', v_spent::text, 'heldNanos', v_held::text,
          'capNanos', v_cap::text, 'resetsAtMs', next_month_ms(v_at));
      END IF;

      -- The checks, in the order in which they count.
      v_refusal := NULL;
      IF v_call ->> 'ambiguity' IS NOT NULL AND (v_cap IS NOT NULL OR v_listed OR v_enforced) THEN
        v_refusal := jsonb_build_object('reason', 'ambiguous_body', 'detail', v_call ->> 'ambiguity');
      ELSIF v_listed THEN
        v_batch := NULL;
        IF v_call #>> '{models,batchFile}' IS NOT NULL THEN
          SELECT models INTO v_batch FROM batch_file WHERE account_id = v_account_id
            AND file_id = v_call #>> '{models,batchFile}' AND key_id = v_key_id;
        END IF;
        SELECT name INTO v_stranger FROM jsonb_array_elements_text(
            (v_call #> '{models,names}') || coalesce(v_batch, '[]')) WITH ORDINALITY AS e(name, n)
          WHERE NOT (v_key -> 'models') ? name AND NOT EXISTS (
            SELECT FROM jsonb_array_elements_text(v_key -> 'models') AS entry
            WHERE entry LIKE '%*' AND starts_with(name, left(entry, -1))) ORDER BY n LIMIT 1;
        IF FOUND THEN
          v_refusal := jsonb_build_object('reason', 'model_not_allowed', 'model', v_stranger);
        ELSIF v_call #>> '{models,unknown}' IS NOT NULL THEN
          v_refusal := jsonb_build_object('reason', 'models_unknown', 'detail', v_call #>> '{models,unknown}');
        ELSIF v_call #>> '{models,batchFile}' IS NOT NULL AND v_batch IS NULL THEN
          v_refusal := jsonb_build_object('reason', 'models_unknown', 'detail', v_call ->> 'foreignFile');
        END IF;
      END IF;
      IF v_refusal IS NULL AND (v_call #>> '{unratable,refuse}' = 'always'
          OR v_call #>> '{unratable,refuse}' = 'limited' AND (v_cap IS NOT NULL OR v_enforced
            OR v_listed AND v_call #>> '{unratable,reason}' = 'endpoint_not_metered')) THEN
        v_refusal := jsonb_build_object('reason', v_call #>> '{unratable,reason}');
      END IF;
      IF v_refusal IS NULL AND NOT v_free THEN
        IF v_spent >= v_cap THEN
          v_refusal := jsonb_build_object('reason', 'budget_exceeded', 'budget', v_budget);
        ELSIF v_enforced AND v_balance <= 0 THEN
          v_refusal := jsonb_build_object('reason', 'credit_exhausted');
        END IF;
      END IF;

      -- What stands in the way now and may not stand there later.
      v_by := NULL;
      IF v_refusal IS NULL AND NOT v_free THEN
        IF v_cap IS NOT NULL AND (v_held_counts AND v_cap - v_spent - v_held <= 0
            OR (v_call #>> '{ahead,key}')::boolean) THEN
          v_by := jsonb_build_object('limit', 'budget', 'budget', v_budget);
        ELSIF v_enforced AND (v_held_counts AND v_balance - v_all_held <= 0
            OR (v_call #>> '{ahead,key}')::boolean OR (v_call #> '{ahead,accounts}') ? v_account_id) THEN
          v_by := jsonb_build_object('limit', 'credit');
        END IF;
      END IF;

      IF NOT (v_call ->> 'askedBefore')::boolean OR v_refusal IS NULL AND v_by IS NULL THEN
        v_used := v_used || jsonb_build_object(v_key_id, greatest((v_used ->> v_key_id)::bigint, v_at));
      END IF;
      IF v_refusal IS NOT NULL THEN
        v_answers := v_answers || jsonb_build_object('refusal', v_refusal, 'balanceNanos', v_balance::text);
        CONTINUE;
      ELSIF v_by IS NOT NULL THEN
        v_answers := v_answers || jsonb_build_object('by', v_by, 'keyId', v_key_id,
          'accountId', v_account_id, 'balanceNanos', v_balance::text);
        CONTINUE;
      END IF;

      -- After this point the call is admitted. What nothing bounds takes all that is left of its key's cap; of credit,
      -- which it shares with other keys, and where there is no limit, what no call has reached.
      CASE v_call #>> '{hold,kind}'
        WHEN 'none' THEN
          v_hold := 0; v_hold_list := 0;
        WHEN 'bound' THEN
          v_hold := (v_call #>> '{hold,nanos}')::bigint; v_hold_list := (v_call #>> '{hold,listNanos}')::bigint;
          IF (v_months -> (v_key_id || ' ' || v_month) -> 'floors')::boolean THEN
            SELECT greatest(v_hold, max(nanos)), greatest(v_hold_list, max(list_nanos)) INTO v_hold, v_hold_list
            FROM hold_floor WHERE key_id = v_key_id AND month = v_month
              AND (endpoint = v_call ->> 'endpoint' AND model = coalesce(v_call ->> 'modelAsked', '')
                OR endpoint = '' AND model = '');
          END IF;
        WHEN 'unbounded' THEN
          v_unreached := (v_call #>> '{hold,unreachedNanos}')::bigint;
          v_hold := greatest(0, CASE
            WHEN v_cap IS NOT NULL THEN least(v_cap - v_spent - v_held, (v_call #>> '{hold,mostNanos}')::bigint)
            WHEN v_enforced THEN least(v_balance - v_all_held, v_unreached)
            ELSE v_unreached END);
          v_hold_list := least(v_hold, v_unreached);
      END CASE;
      IF v_hold > 0 THEN
        v_month_held := v_month_held || jsonb_build_object(v_key_id || ' ' || v_month,
          coalesce((v_month_held ->> (v_key_id || ' ' || v_month))::bigint, 0) + v_hold);
        v_account_held := v_account_held || jsonb_build_object(v_account_id,
          coalesce((v_account_held ->> v_account_id)::bigint, 0) + v_hold);
      END IF;
      v_rows := v_rows || (v_call || jsonb_build_object('at', v_at, 'month', v_month, 'day', day_of(v_at),
        'keyId', v_key_id, 'accountId', v_account_id, 'holdNanos', v_hold, 'holdListNanos', v_hold_list));
      v_answers := v_answers || jsonb_build_object('keyId', v_key_id, 'accountId', v_account_id,
        'logRequests', v_key -> 'log', 'balanceNanos', v_balance::text);
    END LOOP;

    UPDATE api_key SET last_used_at_ms = greatest(last_used_at_ms, u.value::bigint)
    FROM jsonb_each_text(v_used) u WHERE api_key.id = u.key;
    IF cardinality(v_rows) = 0 THEN RETURN to_jsonb(v_answers); END IF;

    INSERT INTO call (month, account_id, key_id, node_id, state, started_at_ms, day, hold_nanos, hold_list_nanos,
      requests, ${OPENING_COLUMNS.map(({ column }) => column).join(', ')})
    SELECT r.month, r."accountId", r."keyId", p_node, 'in_flight', r.at, r.day, r."holdNanos", r."holdListNanos",
      CASE WHEN r."socketId" = r."requestId" THEN 0 ELSE 1 END, ${OPENING_COLUMNS.map(({ name }) => `r."${name}"`).join(', ')}
    FROM jsonb_to_recordset(to_jsonb(v_rows)) AS r(month text, "accountId" text, "keyId" text, at bigint, day text,
      "holdNanos" bigint, "holdListNanos" bigint, ${inJson(OPENING_COLUMNS)});
    UPDATE key_month m SET held_nanos = m.held_nanos + h.value::bigint FROM jsonb_each_text(v_month_held) h
    WHERE m.key_id = split_part(h.key, ' ', 1) AND m.month = split_part(h.key, ' ', 2);
    IF v_account_held <> '{}' THEN
      -- One account needs no order.
      IF v_account_held - v_account_id <> '{}' THEN
        PERFORM 1 FROM account WHERE id IN (SELECT h.key FROM jsonb_each_text(v_account_held) h)
        ORDER BY id FOR NO KEY UPDATE;
      END IF;
      -- With a first top-up credit begins to count, and this batch has been decided as if it did not.
      UPDATE account SET held_nanos = held_nanos + h.value::bigint FROM jsonb_each_text(v_account_held) h
      WHERE account.id = h.key AND credit_enforced = (v_accounts -> h.key ->> 'enforced')::boolean;
      GET DIAGNOSTICS v_found = ROW_COUNT;
      IF v_found < (SELECT count(*) FROM jsonb_object_keys(v_account_held)) THEN
        RAISE serialization_failure USING MESSAGE = 'credit has begun to count meanwhile';
      END IF;
    END IF;
    RETURN to_jsonb(v_answers);
  END $$;
`
