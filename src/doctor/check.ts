/**
 * What was looked at, how it is, and, where something is to be done, what. `skipped` is what could not or should not
 * be looked at this time: it is neither good nor bad.
 */
export type Check = { readonly name: CheckName; readonly found: string } & (
  | { readonly state: 'ok' | 'skipped'; readonly todo: null }
  | { readonly state: 'warning' | 'problem'; readonly todo: string }
)

/** In the order in which they are shown. Scripts read these names. */
export type CheckName =
  | 'runtime'
  | 'open_files'
  | 'configuration'
  | 'surfaces'
  | 'data_directory'
  | 'pepper'
  | 'admin_key'
  | 'disk_space'
  | 'disk_speed'
  | 'database'
  | 'serving'
  | 'integrity'
  | 'database_writes'
  | 'durability'
  | 'round_trip'
  | 'database_clock'
  | 'pooler'
  | 'nodes'
  | 'call_months'
  | 'upstream_messages'
  | 'upstream_chat'
  | 'clock'
  | 'prices'

export function ok(name: CheckName, found: string): Check {
  return { name, state: 'ok', found, todo: null }
}

export function skipped(name: CheckName, found: string): Check {
  return { name, state: 'skipped', found, todo: null }
}

export function warning(name: CheckName, found: string, todo: string): Check {
  return { name, state: 'warning', found, todo }
}

export function problem(name: CheckName, found: string, todo: string): Check {
  return { name, state: 'problem', found, todo }
}
