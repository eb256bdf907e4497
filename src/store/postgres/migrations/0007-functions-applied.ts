/** Which functions the database has, by the hash of their text. */
export const functionsApplied = `
  ALTER TABLE schema_version ADD COLUMN functions text;
`
