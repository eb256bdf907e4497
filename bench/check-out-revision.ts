import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { git, root } from './machine.ts'
import { makeScratchFolder } from './scratch.ts'

export interface OtherRevision {
  readonly name: string
  readonly root: string
}

/**
 * The source of another revision in a folder of its own. It shares the packages installed here if its lock file is the same. The source is unpacked
 * from an archive and is no work tree of git's, so that nothing is left in the repository however the run ends.
 */
export function checkOutRevision(revision: string): OtherRevision {
  const name = git('rev-parse', '--short=9', `${revision}^{commit}`)
  if (name === null) throw new Error(`git knows no revision ${revision}`)
  const folder = makeScratchFolder('revision').path
  const archive = join(folder, 'source.tar')
  const steps: [string, string[]][] = [
    ['git', ['archive', '--format=tar', '-o', archive, name]],
    ['tar', ['-xf', archive, '-C', folder]],
  ]
  for (const [command, args] of steps) {
    const { status, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  }
  const lockOf = (path: string) => readFileSync(join(path, 'package-lock.json'), 'utf8')
  if (lockOf(folder) === lockOf(root)) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  else if (spawnSync('npm', ['ci'], { cwd: folder }).status !== 0)
    throw new Error(`npm ci failed in ${folder}`)
  return { name, root: folder }
}
