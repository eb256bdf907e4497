import { parseArgs } from 'node:util'
import type { Deadlines } from '../doctor/ask-examiner.ts'
import type { Check } from '../doctor/check.ts'
import { examine } from '../doctor/examine.ts'
import { systemClock } from '../kernel/clock.ts'
import { createProgress } from './progress.ts'
import { checksAsJson, hasProblem, type Look, showCheck, showSummary } from './show-checks.ts'

const USAGE = `Usage
  tollgate doctor [--offline] [--json] [--no-color] [--timeout <seconds>]

Looks at configuration, data directory, database, disk, upstreams, their keys, prices and the clock, and says what to
do. It changes nothing, and works beside a running gateway or without one. Give it the gateway's own environment.
  --offline     ask no upstream: its key, its models and the clock are not checked
  --json        one JSON object, for scripts
  --no-color    no colours; there are none in a pipe
  --timeout     how long each check may take, in seconds: 10, and 60 for the pages of the database

Examples
  tollgate doctor                                    before the first start, and whenever something is odd
  ANTHROPIC_API_KEY=sk-ant-… tollgate doctor         is this key accepted?
  tollgate doctor --offline                          on a machine without a network
  tollgate doctor --json | jq '.checks[] | select(.state != "ok")'

Exit codes
  0 nothing is a problem, though there may be warnings   1 there is a problem   2 the command line is wrong
`

const DEADLINES: Deadlines = { checkMs: 10_000, integrityMs: 60_000 }
const TIMEOUT_SECONDS_MAX = 3_600

class UsageError extends Error {}

interface Request {
  readonly offline: boolean
  readonly json: boolean
  readonly colour: boolean
  readonly deadlines: Deadlines
}

export async function doctor(args: readonly string[]): Promise<void> {
  let request: Request | null
  try {
    request = readArguments(args)
  } catch (error) {
    if (!(error instanceof UsageError || (error instanceof TypeError && 'code' in error))) throw error
    process.stderr.write(`tollgate doctor: ${error.message}\n\n${USAGE}`)
    process.exitCode = 2
    return
  }
  if (request === null) process.stdout.write(USAGE)
  else if (hasProblem(await run(request))) process.exitCode = 1
}

async function run({ offline, json, colour, deadlines }: Request): Promise<readonly Check[]> {
  const marks = process.stdout.isTTY === true
  const look: Look = { marks, colour: marks && colour && process.stdout.hasColors() }
  const checks: Check[] = []
  const patient = {
    environment: process.env,
    workingDir: process.cwd(),
    clock: systemClock,
    offline,
    deadlines,
    progress: createProgress('Checking the database'),
  }
  for await (const check of examine(patient)) {
    checks.push(check)
    if (!json) process.stdout.write(showCheck(check, look))
  }
  process.stdout.write(json ? checksAsJson(checks) : showSummary(checks, look))
  return checks
}

function readArguments(args: readonly string[]): Request | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      offline: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      'no-color': { type: 'boolean', default: false },
      timeout: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return null
  return {
    offline: values.offline,
    json: values.json,
    colour: !values['no-color'],
    deadlines: values.timeout === undefined ? DEADLINES : deadlinesOf(values.timeout),
  }
}

function deadlinesOf(text: string): Deadlines {
  const seconds = /^\d{1,4}(?:\.\d{1,3})?$/.test(text) ? Number(text) : 0
  if (seconds <= 0 || seconds > TIMEOUT_SECONDS_MAX)
    throw new UsageError(`--timeout takes seconds, up to ${TIMEOUT_SECONDS_MAX}, not "${text}"`)
  return { checkMs: seconds * 1_000, integrityMs: seconds * 1_000 }
}
