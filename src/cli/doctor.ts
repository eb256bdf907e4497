import { parseArgs } from 'node:util'
import type { Deadlines } from '../doctor/ask-examiner.ts'
import type { Check } from '../doctor/check.ts'
import { examine } from '../doctor/examine.ts'
import { systemClock } from '../kernel/clock.ts'
import { lookOf } from './look.ts'
import { print } from './print.ts'
import { createProgress } from './progress.ts'
import { runCommand, UsageError } from './run-command.ts'
import { checksAsJson, hasProblem, showCheck, showSummary } from './show-checks.ts'

const HELP = `Usage
  tollgate doctor [--offline] [--json] [--no-color] [--timeout <seconds>]

Looks at configuration, data directory, database, disk, upstreams, their keys, prices and the clock, and says what to
do. It changes nothing, and works beside running gateways or without one. Give it the gateway's own environment.
  --offline            ask no upstream: its key, its models and the clock are not checked
  --json               print one JSON object instead
  --no-color           no colour on a terminal either; the variable NO_COLOR says the same
  --timeout <seconds>  how long each check may take: 10, and 60 for the pages of the database, unless given

Examples
  tollgate doctor                                before the first start, and whenever something is odd
  ANTHROPIC_API_KEY=sk-ant-… tollgate doctor     is this key accepted?
  tollgate doctor --offline                      on a machine without a network
  tollgate doctor --json | jq '.checks[] | select(.state == "problem")'

Exit codes
  0 nothing is a problem, though there may be warnings   1 there is a problem   2 the command line is wrong
`

const DEADLINES: Deadlines = { checkMs: 10_000, integrityMs: 60_000 }
const TIMEOUT_SECONDS_MAX = 3_600

/** Looks at all that the gateway depends on, and says what to do about what is not right. */
export async function doctor(args: readonly string[]): Promise<void> {
  await runCommand({ name: 'doctor', help: HELP, run }, args)
}

async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      offline: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      'no-color': { type: 'boolean', default: false },
      timeout: { type: 'string' },
    },
  })
  const examination = examine({
    environment: process.env,
    workingDir: process.cwd(),
    clock: systemClock,
    offline: values.offline,
    deadlines: values.timeout === undefined ? DEADLINES : deadlinesOf(values.timeout),
    progress: createProgress('Checking the database'),
  })
  const look = lookOf(process.stdout, process.env, values['no-color'])
  const checks: Check[] = []
  for await (const check of examination) {
    checks.push(check)
    if (!values.json) await print(showCheck(check, look))
  }
  if (hasProblem(checks)) process.exitCode = 1
  await print(values.json ? checksAsJson(checks) : showSummary(checks, look))
}

function deadlinesOf(text: string): Deadlines {
  const seconds = /^\d{1,4}(?:\.\d{1,3})?$/.test(text) ? Number(text) : 0
  if (seconds <= 0 || seconds > TIMEOUT_SECONDS_MAX)
    throw new UsageError(`--timeout must be seconds, up to ${TIMEOUT_SECONDS_MAX}`)
  return { checkMs: seconds * 1_000, integrityMs: seconds * 1_000 }
}
