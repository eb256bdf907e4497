/**
 * The test files that also run on PostgreSQL. All others run on SQLite only: the conformance suite, the
 * simulation, the cluster and the crash tests, which start PostgreSQL themselves, prove that both stores
 * behave alike.
 */
export const POSTGRES_FILES: readonly string[] = [
  'test/billing/deferred-batches.test.ts',
  'test/limits/accounts.test.ts',
  'test/limits/caps.test.ts',
  'test/limits/credit.test.ts',
  'test/limits/revoke-hammered.test.ts',
  'test/limits/waiting.test.ts',
  'test/management/requests.test.ts',
  'test/management/usage.test.ts',
  'test/sdk/openai-batches.test.ts',
  'test/sockets/caps.test.ts',
  'test/webhooks/budget-events.test.ts',
  'test/webhooks/retries.test.ts',
]

/**
 * Files that measure their own process, or that take long and share nothing with the others of their area.
 */
export const OWN_PROCESS: readonly RegExp[] = [
  /dashboard\/(?:manage-pages|sign-in|states)/,
  /sqlite-(?:disk|simulation)/,
  /\/(?:caps|compressed-bodies|cut-streams|export-memory|golden-streams|large-bodies|many-streams|slow-readers?)\.test/,
  /\/(?:postgres|postgres-simulation|revoke-hammered|sqlite|against-ws)\.test/,
]

/** Areas are split into processes of at most this many files, so that none outlasts the others. */
export const FILES_MAX = 12

/**
 * Areas whose files start many processes or share a browser: one process for all, so that they run one at a
 * time.
 */
export const ONE_AT_A_TIME: readonly string[] = ['cluster', 'crash', 'dashboard', 'deploy']

/**
 * Parts of the names of the slowest processes, which start first, so that the run ends with short processes
 * and both cores busy. The runner prints the slowest processes of each run.
 */
export const LONGEST: readonly string[] = [
  'dashboard [',
  'cluster',
  'postgres-simulation',
  'caps.test.ts [PostgreSQL]',
  'store/postgres.test',
  'crash',
  'sqlite-simulation',
  'sockets',
  'limits',
  'cli',
  'test/dashboard',
]
