import type { Finding } from '../doctor/check.ts'
import { systemClock } from '../kernel/clock.ts'
import { defineCommand, flag, NO_COLOR } from './command.ts'
import { outputStyle, print, type Style, shownText, type TerminalStyle } from './terminal.ts'

/** Checks what the gateway depends on, and says what to do about problems and warnings. */
export const command = defineCommand({
  name: 'doctor',
  usage: 'tollgate doctor [--offline] [--json] [--no-color]',
  about: `Checks configuration, data directory, pepper, database, disk space, certificate, upstream keys and prices. It changes
nothing, and works beside running gateways or without one. Give it the gateway's own environment.`,
  options: {
    offline: flag('do not contact upstream'),
    json: flag('print one JSON object'),
    'no-color': NO_COLOR,
  },
  examples: ['tollgate doctor', 'tollgate doctor --offline --json'],
  exitCodes: '0 no problem, perhaps warnings   1 a problem   2 the command line is wrong',
  async run(values) {
    const { examine } = await import('../doctor/run-checks.ts')
    const style = outputStyle(values)
    const all: Finding[] = []
    for await (const finding of examine(
      process.env,
      values.offline ? 'offline' : 'all',
      systemClock.nowMs(),
    )) {
      all.push(finding)
      if (!values.json) await print(showFinding(finding, style))
    }
    const ok = all.every(({ state }) => state !== 'problem')
    if (!ok) process.exitCode = 1
    if (values.json) await print(`${JSON.stringify({ object: 'doctor', ok, checks: all }, null, 2)}\n`)
  },
})

const MARKS: Readonly<Record<Finding['state'], readonly [mark: string, style: Style]>> = {
  ok: ['✓', 'green'],
  warning: ['!', 'yellow'],
  problem: ['✗', 'red'],
  skipped: ['-', 'dim'],
}
const TEXT_WIDTH_MAX = 2_000

/** Marks are for people; a program that reads the lines gets words. */
export function showFinding({ name, state, found, todo }: Finding, style: TerminalStyle): string {
  const [mark, colour] = MARKS[state]
  const label = `${style.isTerminal ? mark : state.padEnd(8)} ${name.padEnd(15)}`
  const line = `${style.paint(colour, label)} ${shownText(found, TEXT_WIDTH_MAX)}\n`
  return todo === null ? line : `${line}${' '.repeat(label.length + 1)}→ ${shownText(todo, TEXT_WIDTH_MAX)}\n`
}
