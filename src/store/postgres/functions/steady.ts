/** For a function that is part of another, or of a command that has time. */
export const STEADY_PLANS = `
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off`

/**
 * What a function of the hot path is run with. Its plans are made once and find rows by their index, however small the
 * table was when they were made: a month begins empty, and a plan that reads all of it would be kept while it grows. A
 * lock that is not to be had ends it before whoever asked has gone. Each is set for the function alone, because behind
 * a pooler the connection is not ours to set anything on.
 */
export const STEADY = `
  SET lock_timeout = '1500ms'
  ${STEADY_PLANS}`
