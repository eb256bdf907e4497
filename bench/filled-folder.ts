import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FillContent, FillPlan } from './fill-plan.ts'
import { makeScratchFolder } from './scratch.ts'
import { startProcess } from './start-process.ts'
import { PEPPER, type TollgateParts } from './subjects/tollgate.ts'

const program = fileURLToPath(new URL('fill-database.ts', import.meta.url))

/** Filled folders are made once and kept for all rounds: filling takes far longer than measuring. */
const filled = new Map<string, Promise<string>>()

/** A data directory for this revision with so many keys and calls. */
export function filledFolder({ root }: TollgateParts, content: FillContent): Promise<string> {
  const name = JSON.stringify([root, content])
  const known = filled.get(name)
  if (known !== undefined) return known
  const making = fill(root, content)
  filled.set(name, making)
  return making
}

async function fill(root: string, content: FillContent): Promise<string> {
  const began = performance.now()
  const dataDir = join(makeScratchFolder('filled').path, 'data')
  mkdirSync(dataDir)
  const plan: FillPlan = { root, dataDir, pepper: PEPPER, ...content }
  const { keys, calls } = content
  const started = startProcess({
    command: process.execPath,
    args: [program, JSON.stringify(plan)],
    core: null,
    errors: 'shown',
  })
  if ((await started.ended) !== 0) throw new Error(`${keys} keys and ${calls} calls could not be filled in`)
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  const what = `${keys.toLocaleString('en')} keys and ${calls.toLocaleString('en')} calls`
  process.stderr.write(`  filled a database with ${what} in ${seconds} s\n`)
  return dataDir
}
