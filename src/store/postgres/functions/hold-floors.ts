import { limits } from '../../../kernel/limits.ts'
import { HOLD_NANOS_MAX } from '../../../ledger/decide-admission.ts'
import { STEADY_PLANS } from './steady.ts'

/** What a call that cost more than it held teaches the holds after it. Its month is locked by whoever calls this. */
export const holdFloors = `
  CREATE OR REPLACE FUNCTION raise_hold_floor(p_key text, p_month text, p_endpoint text, p_model text,
    p_nanos bigint, p_list_nanos bigint)
  RETURNS void LANGUAGE plpgsql ${STEADY_PLANS} AS $$
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
