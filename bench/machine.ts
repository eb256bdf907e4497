import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

export function describeMachine(): Readonly<Record<string, string | number>> {
  return {
    processor: processorName(),
    cores: cpus().length,
    'memory GiB': Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    'load before the run': (loadavg()[0] ?? 0).toFixed(2),
  }
}

function processorName(): string {
  const model = cpus()[0]?.model.trim() ?? ''
  if (model !== '' && model !== 'unknown') return model
  const info = readFileSync('/proc/cpuinfo', 'utf8')
  return /^(?:model name|CPU part)\s*:\s*(.+)$/m.exec(info)?.[1] ?? process.arch
}

/** The revision of git, with a mark where files differ from it. */
export function revisionHere(): string {
  const revision = git('rev-parse', '--short=9', 'HEAD')
  if (revision === null) return 'unknown'
  return git('status', '--porcelain', '--', 'src', 'package-lock.json') === ''
    ? revision
    : `${revision}-changed`
}

/** The output of git, or null where git fails. */
export function git(...args: string[]): string | null {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : null
}
