import type { Check, Deadlines } from '../doctor/check.ts'
import { systemClock } from '../kernel/clock.ts'
import { defineCommand, flag, NO_COLOR, option, UsageError } from './command.ts'
import { createProgress } from './progress.ts'
import { outputStyle, print, type Style, shownText, type TerminalStyle } from './terminal.ts'

const DEADLINES: Deadlines = { checkMs: 10_000, integrityMs: 60_000 }
const TIMEOUT_SECONDS_MAX = 3_600

/** Checks all that the gateway depends on, and says what to do about problems and warnings. */
export const command = defineCommand({
  name: 'doctor',
  usage: 'tollgate doctor [--offline] [--json] [--no-color] [--timeout <seconds>]',
  about: `Looks at configuration, certificate, data directory, database, disk, upstreams, their keys, prices and the clock, and
says what to do. It changes nothing, and works beside running gateways or without one. Give it the gateway's own environment.`,
  options: {
    offline: flag('ask no upstream: its key, its models and the clock are not checked'),
    json: flag('print one JSON object instead'),
    'no-color': NO_COLOR,
    timeout: option(
      '<seconds>',
      'how long each check may take: 10, and 60 for the pages of the database, unless given',
    ),
  },
  examples: [
    'tollgate doctor                                before the first start, and whenever something is odd',
    'ANTHROPIC_API_KEY=sk-ant-… tollgate doctor     is this key accepted?',
    'tollgate doctor --offline                      on a machine without a network',
    `tollgate doctor --json | jq '.checks[] | select(.state == "problem")'`,
  ],
  exitCodes:
    '0 nothing is a problem, though there may be warnings   1 there is a problem   2 the command line is wrong',
  async run(values) {
    const { examine } = await import('../doctor/examine.ts')
    const examination = examine({
      environment: process.env,
      workingDir: process.cwd(),
      clock: systemClock,
      offline: values.offline,
      deadlines: values.timeout === undefined ? DEADLINES : deadlinesOf(values.timeout),
      progress: createProgress('Checking the database'),
    })
    const style = outputStyle(values)
    const checks: Check[] = []
    for await (const check of examination) {
      checks.push(check)
      if (!values.json) await print(showCheck(check, style))
    }
    if (hasProblem(checks)) process.exitCode = 1
    await print(values.json ? checksAsJson(checks) : showSummary(checks, style))
  },
})

function deadlinesOf(text: string): Deadlines {
  const seconds = /^\d{1,4}(?:\.\d{1,3})?$/.test(text) ? Number(text) : 0
  if (seconds <= 0 || seconds > TIMEOUT_SECONDS_MAX)
    throw new UsageError(`--timeout must be seconds, up to ${TIMEOUT_SECONDS_MAX}`)
  return { checkMs: seconds * 1_000, integrityMs: seconds * 1_000 }
}

type State = Check['state']

const MARKS: Readonly<Record<State, string>> = { ok: '✓', warning: '!', problem: '✗', skipped: '-' }
const STYLES: Readonly<Record<State, Style>> = {
  ok: 'green',
  warning: 'yellow',
  problem: 'red',
  skipped: 'dim',
}
const STATE_WIDTH = 9
const NAME_WIDTH = 19
const TEXT_WIDTH_MAX = 2_000

/** Marks are for people; a program that reads the lines gets words. */
export function showCheck(check: Check, style: TerminalStyle): string {
  const state = style.isTerminal ? `${MARKS[check.state]} ` : check.state.padEnd(STATE_WIDTH)
  const name = check.name.replaceAll('_', ' ').padEnd(NAME_WIDTH)
  const first = `${style.paint(STYLES[check.state], state)}${name}${shown(check.found)}\n`
  if (check.todo === null) return first
  const indent = ' '.repeat(state.length + NAME_WIDTH)
  return `${first}${indent}${style.isTerminal ? '→' : 'to do:'} ${shown(check.todo)}\n`
}

export function showSummary(checks: readonly Check[], style: TerminalStyle): string {
  const counted = (['problem', 'warning'] as const)
    .map((state) => ({ state, count: checks.filter((check) => check.state === state).length }))
    .filter(({ count }) => count > 0)
  if (counted.length === 0) return `\n${style.paint('green', 'Nothing to mend.')}\n`
  const text = counted.map(({ state, count }) => `${count} ${state}${count === 1 ? '' : 's'}`).join(', ')
  return `\n${style.paint(STYLES[counted[0]?.state ?? 'ok'], `${text}.`)}\n`
}

function checksAsJson(checks: readonly Check[]): string {
  const plain = checks.map(({ name, state, found, todo }) => ({
    name,
    state,
    found: shown(found),
    todo: todo === null ? null : shown(todo),
  }))
  return `${JSON.stringify({ object: 'doctor', ok: !hasProblem(checks), checks: plain }, null, 2)}\n`
}

function hasProblem(checks: readonly Check[]): boolean {
  return checks.some(({ state }) => state === 'problem')
}

function shown(text: string): string {
  return shownText(text, TEXT_WIDTH_MAX)
}
