import type { Config } from './read-config.ts'

/** The setting that a database gets with the first call that a real upstream answered. */
export const REAL_UPSTREAM = 'real_upstream'

/** Why the simulator does not answer calls although no upstream is configured; null if it does. */
export function whyNotSimulated(
  { simulator, databaseUrl }: Pick<Config, 'simulator' | 'databaseUrl'>,
  facts: { readonly hasOwnUpstreams: boolean; readonly hasRealUpstream: boolean },
): string | null {
  if (simulator === true) return null
  if (simulator === false) return 'TOLLGATE_SIMULATOR is false'
  if (databaseUrl !== null) return 'on PostgreSQL, it serves only with TOLLGATE_SIMULATOR=true'
  if (facts.hasOwnUpstreams) return 'an account has its own upstream'
  return facts.hasRealUpstream ? 'a real upstream has answered calls of this database' : null
}
