/**
 * The request log is read newest first, for the account or for one key; usage by the day, for the account (the
 * primary key of the rollups) or for one key. Ids end both indexes of calls by themselves: the table has no rowid.
 */
export const requestLog = `
  DROP INDEX call_by_key;
  CREATE INDEX call_by_key ON call (key_id, started_at_ms);
  CREATE INDEX call_by_start ON call (account_id, started_at_ms);
  CREATE INDEX rollup_by_key ON rollup (key_id, day);
`
