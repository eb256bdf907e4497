import type { Environment } from '../config.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'

const NODE_MAJOR_MIN = 24
const OPEN_FILES_MIN = 4_096

export interface Runtime {
  readonly version: string
  readonly execArgv: readonly string[]
  readonly environment: Environment
}

export function checkRuntime({ version, execArgv, environment }: Runtime): Check {
  if (Number.parseInt(version, 10) < NODE_MAJOR_MIN)
    return problem('runtime', `Node.js ${version}`, `Install Node.js ${NODE_MAJOR_MIN} or newer.`)
  const flags = [...execArgv, ...(environment['NODE_OPTIONS'] ?? '').split(/\s+/)]
  // It accepts a request with two lengths, which is how a second request is smuggled behind a first.
  if (flags.some((flag) => /^--insecure[-_]http[-_]parser$/.test(flag))) {
    return problem(
      'runtime',
      `Node.js ${version} with --insecure-http-parser, which lets requests be smuggled past the checks`,
      'Take it out of the command line and of NODE_OPTIONS.',
    )
  }
  return ok('runtime', `Node.js ${version}`)
}

/** A call takes two: one to the client, one to upstream. `limits` is the text of /proc/self/limits. */
export function checkOpenFiles(limits: string | null): Check {
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits ?? '')?.[1]
  if (soft === undefined) return skipped('open_files', 'this system does not tell how many may be open')
  if (soft === 'unlimited' || Number(soft) >= OPEN_FILES_MIN)
    return ok('open_files', `${soft} may be open at once`)
  return warning(
    'open_files',
    `only ${soft} may be open at once, and a call takes two: some ${Math.floor(Number(soft) / 2)} calls at a time`,
    `Raise it to ${OPEN_FILES_MIN} or more: ulimit -n, LimitNOFILE= of a systemd unit, --ulimit of a container.`,
  )
}
