import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { git, root } from './machine.ts'
import { makeScratchFolder } from './scratch.ts'

export interface OtherRevision {
  readonly name: string
  readonly root: string
}

/**
 * The source of another revision in a folder of its own, with the packages that are installed here. The source is unpacked
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
  const modules = join(folder, 'node_modules')
  if (!existsSync(modules)) symlinkSync(join(root, 'node_modules'), modules)
  return { name, root: folder }
}
