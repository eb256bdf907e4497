import type { Command } from 'commander'
import type { Finding } from '../doctor/check.ts'
import { systemClock } from '../kernel/clock.ts'
import { examples } from './command.ts'
import { JSON_OPTION, outputStyle, print, type Style, shownText, type TerminalStyle } from './terminal.ts'

export function register(command: Command): void {
  command
    .option('--offline', 'do not contact upstream')
    .option(...JSON_OPTION)
    .option('--no-color', 'no colour on a terminal')
    .addHelpText('after', examples('tollgate doctor', 'tollgate doctor --offline --json'))
    .action(async (values: { offline?: true; json?: true; color: boolean }) => {
      const { runDoctor } = await import('../doctor/run-checks.ts')
      const style = outputStyle(values)
      const all: Finding[] = []
      for await (const finding of runDoctor(
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
    })
}

const MARKS: Readonly<Record<Finding['state'], readonly [mark: string, style: Style]>> = {
  ok: ['✓', 'green'],
  warning: ['!', 'yellow'],
  problem: ['✗', 'red'],
  skipped: ['-', 'dim'],
}
const TEXT_WIDTH_MAX = 2_000

export function showFinding({ name, state, found, todo }: Finding, style: TerminalStyle): string {
  const [mark, colour] = MARKS[state]
  const label = `${style.isTerminal ? mark : state.padEnd(8)} ${name.padEnd(15)}`
  const line = `${style.paint(colour, label)} ${shownText(found, TEXT_WIDTH_MAX)}\n`
  return todo === null ? line : `${line}${' '.repeat(label.length + 1)}→ ${shownText(todo, TEXT_WIDTH_MAX)}\n`
}
