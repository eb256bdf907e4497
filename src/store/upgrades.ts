import { SCHEMA_VERSION, UPGRADES } from './schema.ts'

/** The database was written by a later version of Tollgate. */
export class NewerSchema extends Error {
  constructor(version: number) {
    super(
      `The database has schema version ${version}, this Tollgate knows up to ${SCHEMA_VERSION}. ` +
        'It was written by a newer version: start that one, or restore a backup made before the upgrade.',
    )
  }
}

/** The statements that bring a database of this version to the present one, in order. */
export function upgradesFrom(version: number, store: 'sqlite' | 'postgres'): readonly string[] {
  if (version > SCHEMA_VERSION) throw new NewerSchema(version)
  const steps = Array.from({ length: SCHEMA_VERSION - version }, (_, i) => version + i + 1)
  return steps.map((step) => UPGRADES[step]?.[store] ?? '')
}
