/** The two parts of undici that are used here; upstream.ts says why they are loaded by themselves. */

declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici'

  export = Pool
}

declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'

  export = buildConnector
}
