import { InstallationError } from '../kernel/errors.ts'

/** Where tables are: the database on PostgreSQL, and SQLite's two files. Each records its own version. */
export type SchemaPlace = 'postgres' | 'main' | 'bodies'

/** What the database says about its schema. */
export interface RecordedVersion {
  readonly version: number
  /** Releases whose schema has this version or a later one can use the database. */
  readonly oldestVersion: number
}

/**
 * A step to the next version. It is one transaction, so it must be brief: the calls wait for its locks. An index on a
 * large table is a step of its own: PostgreSQL builds it outside a transaction, while calls go on.
 */
export type UpgradeStep = RecordedVersion & (StatementsStep | IndexStep)

export interface StatementsStep {
  /** SQL by place; nothing for a place that does not change. */
  readonly statements: Readonly<Partial<Record<SchemaPlace, string>>>
}

export interface IndexStep {
  readonly index: {
    readonly name: string
    /** The table and its columns, as in `call (model_served)`. */
    readonly on: string
    readonly file: 'main' | 'bodies'
  }
}

/** What a release knows of the schema. */
export interface ReleaseSchema {
  readonly version: number
  /** The steps from the oldest version that this release can upgrade. */
  readonly steps: readonly UpgradeStep[]
  /** Before these steps: the version, and the first release that has it, for the message to those who have less. */
  readonly first: { readonly version: number; readonly release: string }
  /** The statements that create the tables of `version`, and the oldest version that can use them. */
  create(place: SchemaPlace): string
  readonly oldestVersion: number
}

/** The steps to run. None: a node of this release can use the tables as they are. Throws if it cannot. */
export function stepsFrom(recorded: RecordedVersion, release: ReleaseSchema): readonly UpgradeStep[] {
  const { version, first, steps } = release
  const versions = [first.version, ...steps.map((step) => step.version)]
  if (versions.some((each, at) => each !== first.version + at) || versions.at(-1) !== version)
    throw new InstallationError(
      `This release is broken: its upgrades lead to the schema versions ${versions.join(', ')}, and its own is ${version}. ` +
        'Install another release; the database was not changed.',
    )
  if (recorded.oldestVersion > version)
    throw new InstallationError(
      `The database has schema version ${recorded.version}, which needs a Tollgate of schema version ` +
        `${recorded.oldestVersion} or later; this one has ${version}. It was upgraded by a newer release: start that one, ` +
        'or restore a backup made before the upgrade.',
    )
  if (recorded.version < first.version)
    throw new InstallationError(
      `The database has schema version ${recorded.version}, and this release upgrades from ${first.version} or later. ` +
        `Install Tollgate ${first.release} and start it once; then install this release.`,
    )
  return steps.filter((step) => step.version > recorded.version)
}

/** For commands that only read: they do not upgrade. */
export function assertReadable(recorded: RecordedVersion, release: ReleaseSchema): void {
  if (stepsFrom(recorded, release).length > 0)
    throw new InstallationError(
      `The database has schema version ${recorded.version}, this release has ${release.version}. ` +
        'Start the gateway once, which upgrades it; then run the command again.',
    )
}

export const READ_RECORD = 'SELECT version, oldest_version FROM schema_version'

/** Each place records its version in a table of one row. */
export function createRecord({ version, oldestVersion }: RecordedVersion): string {
  return `CREATE TABLE schema_version (version integer NOT NULL, oldest_version integer NOT NULL);
    INSERT INTO schema_version (version, oldest_version) VALUES (${version}, ${oldestVersion})`
}

export function updateRecord({ version, oldestVersion }: RecordedVersion): string {
  return `UPDATE schema_version SET version = ${version}, oldest_version = ${oldestVersion}`
}
