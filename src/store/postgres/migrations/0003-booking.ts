/**
 * What settlement works with. A type that has shipped is not changed, since a settlement may be using it: one of another
 * name follows.
 */
export const booking = `
  -- A closing together with what the call was opened with.
  CREATE TYPE booking AS (
    n integer, id text, month text, account_id text, key_id text, day text, model text, state text, at_ms bigint,
    hold_nanos bigint, held_nanos bigint, lost_nanos bigint, cost_nanos bigint, list_nanos bigint,
    input_tokens bigint, output_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint,
    unpriced boolean, estimated boolean
  );
`
