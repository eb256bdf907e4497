/** Also run on PostgreSQL. Conformance, simulation, cluster and crash tests prove both stores alike. */
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

/** Files that measure their own process, or take long and share nothing with their area. */
export const OWN_PROCESS: readonly RegExp[] = [
  /dashboard\/(?:manage-pages|sign-in|states)/,
  /sqlite-(?:disk|simulation)/,
  /\/(?:caps|compressed-bodies|cut-streams|export-memory|golden-streams|large-bodies|many-streams|slow-readers?)\.test/,
  /\/(?:postgres|postgres-simulation|revoke-hammered|sqlite|against-ws)\.test/,
]

/** Areas are split into processes of at most this many files, so that none outlasts the others. */
export const FILES_MAX = 12

/** Areas whose files start many processes or share a browser: they run one at a time. */
export const ONE_AT_A_TIME: readonly string[] = ['cluster', 'crash', 'dashboard', 'deploy']

/** The slowest processes start first, so that the run ends with short ones and both cores busy. */
export const LONGEST: readonly string[] = [
  'dashboard [',
  'cluster',
  'postgres-simulation',
  'caps.test.ts [PostgreSQL]',
  'store/postgres.test',
  'crash',
  'sqlite-simulation',
  'hostile',
  'test/dashboard',
  'deploy',
  'sockets',
  'limits',
  'cli',
  'export-memory',
]
