import { SCHEMA } from '../../src/store/schema.ts'
import type { ReleaseSchema, UpgradeStep } from '../../src/store/upgrades.ts'

/** The next release as the upgrade tests imagine it: two columns and a table, and an index on a large table. */
const STEPS: readonly UpgradeStep[] = [
  {
    version: 2,
    oldestVersion: 1,
    statements: {
      postgres: `ALTER TABLE call ADD COLUMN region text COLLATE "C";
        CREATE TABLE team (id text COLLATE "C" PRIMARY KEY, name text NOT NULL)`,
      main: `ALTER TABLE call ADD COLUMN region TEXT;
        CREATE TABLE team (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL) STRICT`,
      bodies: 'ALTER TABLE call_body ADD COLUMN coding TEXT',
    },
  },
  { version: 3, oldestVersion: 1, index: { name: 'call_by_region', on: 'call (region)', file: 'main' } },
]

/** Releases of version 1 cannot use the database after this step. */
const BREAKING: UpgradeStep = {
  version: 4,
  oldestVersion: 4,
  statements: { postgres: 'ALTER TABLE team DROP COLUMN name', main: 'ALTER TABLE team DROP COLUMN name' },
}

export const NEXT: ReleaseSchema = { ...SCHEMA, version: 3, steps: STEPS }
export const BREAKING_RELEASE: ReleaseSchema = {
  ...SCHEMA,
  version: 4,
  oldestVersion: 4,
  steps: [...STEPS, BREAKING],
}
