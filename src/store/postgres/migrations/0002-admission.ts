/**
 * Admission of a batch in one round trip. Everything that a decision depends on is locked before it is read, in a fixed
 * order (node, keys by id, accounts by id), so that admissions of the same key on any number of nodes follow each
 * other, and each sees the holds of those before it. The decisions themselves are those of ledger/decide-admission.ts,
 * made one after the other because each depends on the holds of the ones before; rows are written once per batch.
 *
 * Time is the database's: the clocks of nodes do not matter. A node that the others have given up is told so instead.
 */
export const admission = `
  CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

  CREATE FUNCTION month_of(at_ms bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT to_char(to_timestamp(at_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM') $$;

  CREATE FUNCTION day_of(at_ms bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT to_char(to_timestamp(at_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD') $$;

  CREATE FUNCTION next_month_ms(at_ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    $$ SELECT (extract(epoch FROM (date_trunc('month', to_timestamp(at_ms / 1000.0) AT TIME ZONE 'UTC')
         + interval '1 month') AT TIME ZONE 'UTC') * 1000)::bigint $$;

  CREATE FUNCTION admit_calls(p_node text, p_caller_clock boolean, p_calls jsonb)
  RETURNS jsonb LANGUAGE plpgsql AS $$
  DECLARE
    v_now      bigint;
    v_keys     jsonb;
    v_accounts jsonb;
    -- What this batch has held so far, by key and month, and by account.
    v_key_held     jsonb := '{}';
    v_account_held jsonb := '{}';
    v_used     jsonb := '{}';
    v_answers  jsonb := '[]';
    v_call     jsonb;
    v_key      jsonb;
    v_account  jsonb;
    v_at       bigint;
    v_month    text;
    v_key_month text;
    v_budget   jsonb;
    v_cap      bigint;
    v_spent    bigint;
    v_held     bigint;
    v_balance  bigint;
    v_account_held_now bigint;
    v_enforced boolean;
    v_listed   boolean;
    v_stranger text;
    v_batch    jsonb;
    v_refusal  jsonb;
    v_by       jsonb;
    v_free     boolean;
    v_hold     bigint;
    v_hold_list bigint;
    v_ids      text[] := '{}';
    v_rows     jsonb := '[]';
  BEGIN
    PERFORM 1 FROM node WHERE id = p_node AND fenced_at_ms IS NULL FOR SHARE;
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

    -- Where credit counts, admissions of the account follow each other.
    PERFORM 1 FROM account
    WHERE credit_enforced AND id IN (SELECT k.value ->> 'account' FROM jsonb_each(v_keys) k)
    ORDER BY id FOR NO KEY UPDATE;
    SELECT coalesce(jsonb_object_agg(id, jsonb_build_object(
      'balance', credited_nanos - charged_nanos, 'held', held_nanos, 'enforced', credit_enforced)), '{}')
    INTO v_accounts FROM account WHERE id IN (SELECT k.value ->> 'account' FROM jsonb_each(v_keys) k);

    v_now := now_ms();

    FOR v_call IN SELECT c FROM jsonb_array_elements(p_calls) WITH ORDINALITY AS e(c, n) ORDER BY n LOOP
      v_key := v_keys -> (v_call ->> 'digest');
      IF v_key IS NULL THEN
        v_answers := v_answers || jsonb_build_object('refusal', jsonb_build_object('reason', 'unknown_key'));
        CONTINUE;
      END IF;
      v_at := CASE WHEN p_caller_clock THEN (v_call ->> 'atMs')::bigint ELSE v_now END;
      IF v_key ->> 'revoked' IS NOT NULL THEN
        v_answers := v_answers || jsonb_build_object('refusal', jsonb_build_object('reason', 'revoked_key'));
        CONTINUE;
      END IF;
      IF (v_key ->> 'expires')::bigint <= v_at THEN
        v_answers := v_answers || jsonb_build_object('refusal', jsonb_build_object('reason', 'expired_key'));
        CONTINUE;
      END IF;

      v_account := v_accounts -> (v_key ->> 'account');
      v_balance := (v_account ->> 'balance')::bigint;
      v_enforced := (v_account ->> 'enforced')::boolean;
      v_account_held_now := (v_account ->> 'held')::bigint
        + coalesce((v_account_held ->> (v_key ->> 'account'))::bigint, 0);
      v_cap := (v_key ->> 'cap')::bigint;
      v_listed := jsonb_typeof(v_key -> 'models') = 'array';
      v_month := month_of(v_at);
      v_key_month := (v_key ->> 'id') || ' ' || v_month;
      v_free := v_call #>> '{hold,kind}' = 'none';
      v_budget := NULL; v_spent := NULL; v_held := NULL;
      IF v_cap IS NOT NULL THEN
        SELECT spent_nanos, held_nanos INTO v_spent, v_held FROM key_month
        WHERE key_id = v_key ->> 'id' AND month = v_month;
        v_spent := coalesce(v_spent, 0);
        v_held := coalesce(v_held, 0) + coalesce((v_key_held ->> v_key_month)::bigint, 0);
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
          SELECT models INTO v_batch FROM batch_file WHERE account_id = v_key ->> 'account'
            AND file_id = v_call #>> '{models,batchFile}' AND key_id = v_key ->> 'id';
        END IF;
        SELECT name INTO v_stranger FROM jsonb_array_elements_text(
            (v_call #> '{models,names}') || coalesce(v_batch, '[]')) WITH ORDINALITY AS e(name, n)
          WHERE NOT (v_key -> 'models') ? name ORDER BY n LIMIT 1;
        IF FOUND THEN
          v_refusal := jsonb_build_object('reason', 'model_not_allowed', 'model', v_stranger);
        ELSIF v_call #>> '{models,unknown}' IS NOT NULL THEN
          v_refusal := jsonb_build_object('reason', 'models_unknown', 'detail', v_call #>> '{models,unknown}');
        ELSIF v_call #>> '{models,batchFile}' IS NOT NULL AND v_batch IS NULL THEN
          v_refusal := jsonb_build_object('reason', 'models_unknown', 'detail', v_call ->> 'foreignFile');
        END IF;
      END IF;
      IF v_refusal IS NULL AND v_call #>> '{unratable,refuse}' IN ('always', 'limited')
        AND (v_call #>> '{unratable,refuse}' = 'always' OR v_cap IS NOT NULL OR v_enforced) THEN
        v_refusal := jsonb_build_object('reason', v_call #>> '{unratable,reason}');
      END IF;
      IF v_refusal IS NULL AND NOT v_free THEN
        IF v_cap IS NOT NULL AND v_spent >= v_cap THEN
          v_refusal := jsonb_build_object('reason', 'budget_exceeded', 'budget', v_budget);
        ELSIF v_enforced AND v_balance <= 0 THEN
          v_refusal := jsonb_build_object('reason', 'credit_exhausted');
        END IF;
      END IF;
      IF v_refusal IS NOT NULL THEN
        IF NOT (v_call ->> 'askedBefore')::boolean THEN
          v_used := v_used || jsonb_build_object(v_key ->> 'id', v_at);
        END IF;
        v_answers := v_answers || jsonb_build_object('refusal', v_refusal, 'balanceNanos', v_balance::text);
        CONTINUE;
      END IF;

      v_by := NULL;
      IF NOT v_free THEN
        IF v_cap IS NOT NULL AND ((v_call ->> 'heldCounts')::boolean AND v_cap - v_spent - v_held <= 0
            OR (v_call #>> '{ahead,key}')::boolean) THEN
          v_by := jsonb_build_object('limit', 'budget', 'budget', v_budget);
        ELSIF v_enforced AND ((v_call ->> 'heldCounts')::boolean AND v_balance - v_account_held_now <= 0
            OR (v_call #>> '{ahead,key}')::boolean OR (v_call #> '{ahead,accounts}') ? (v_key ->> 'account')) THEN
          v_by := jsonb_build_object('limit', 'credit');
        END IF;
      END IF;
      IF v_by IS NOT NULL THEN
        IF NOT (v_call ->> 'askedBefore')::boolean THEN
          v_used := v_used || jsonb_build_object(v_key ->> 'id', v_at);
        END IF;
        v_answers := v_answers || jsonb_build_object('by', v_by, 'accountId', v_key ->> 'account',
          'balanceNanos', v_balance::text);
        CONTINUE;
      END IF;

      -- After this point the call is admitted.
      CASE v_call #>> '{hold,kind}'
        WHEN 'none' THEN
          v_hold := 0; v_hold_list := 0;
        WHEN 'bound' THEN
          v_hold := (v_call #>> '{hold,nanos}')::bigint; v_hold_list := (v_call #>> '{hold,listNanos}')::bigint;
        ELSE
          v_hold := greatest(0, coalesce(
            greatest(v_cap - v_spent - v_held, CASE WHEN v_enforced THEN v_balance - v_account_held_now END),
            (v_call ->> 'unboundedNanos')::bigint));
          v_hold_list := v_hold;
      END CASE;
      v_key_held := v_key_held || jsonb_build_object(v_key_month,
        coalesce((v_key_held ->> v_key_month)::bigint, 0) + v_hold);
      v_account_held := v_account_held || jsonb_build_object(v_key ->> 'account',
        coalesce((v_account_held ->> (v_key ->> 'account'))::bigint, 0) + v_hold);
      v_used := v_used || jsonb_build_object(v_key ->> 'id', v_at);
      v_rows := v_rows || (v_call || jsonb_build_object('at', v_at, 'month', v_month, 'day', day_of(v_at),
        'keyId', v_key ->> 'id', 'accountId', v_key ->> 'account', 'holdNanos', v_hold, 'holdListNanos', v_hold_list));
      v_answers := v_answers || jsonb_build_object('admitted', v_key ->> 'id', 'accountId', v_key ->> 'account',
        'logRequests', v_key -> 'log', 'balanceNanos', v_balance::text);
    END LOOP;

    UPDATE api_key SET last_used_at_ms = greatest(last_used_at_ms, (u.value)::bigint)
    FROM jsonb_each_text(v_used) u WHERE api_key.id = u.key;
    INSERT INTO call (id, month, account_id, key_id, node_id, state, started_at_ms, day, method, path, surface,
      model_asked, hold_nanos, hold_list_nanos, price_version, rating, client_ip, user_agent)
    SELECT r."requestId", r.month, r."accountId", r."keyId", p_node, 'in_flight', r.at, r.day, r.method, r.path,
      r.surface, r."modelAsked", r."holdNanos", r."holdListNanos", r."priceVersion", r.rating, r."clientIp",
      r."userAgent"
    FROM jsonb_to_recordset(v_rows) AS r("requestId" text, month text, "accountId" text, "keyId" text, at bigint,
      day text, method text, path text, surface text, "modelAsked" text, "holdNanos" bigint,
      "holdListNanos" bigint, "priceVersion" text, rating text, "clientIp" text, "userAgent" text);
    INSERT INTO key_month (key_id, month, held_nanos)
    SELECT split_part(h.key, ' ', 1), split_part(h.key, ' ', 2), h.value::bigint
    FROM jsonb_each_text(v_key_held) h WHERE h.value::bigint > 0 ORDER BY h.key COLLATE "C"
    ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = key_month.held_nanos + excluded.held_nanos;
    PERFORM 1 FROM account WHERE id IN (SELECT h.key FROM jsonb_each_text(v_account_held) h WHERE h.value::bigint > 0)
    ORDER BY id FOR NO KEY UPDATE;
    UPDATE account SET held_nanos = held_nanos + h.value::bigint
    FROM jsonb_each_text(v_account_held) h WHERE account.id = h.key AND h.value::bigint > 0;
    RETURN v_answers;
  END $$;
`
