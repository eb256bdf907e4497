import { spawnSync } from 'node:child_process'
import { copyFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { makeScratchFolder } from './scratch.ts'

const built = new Map<string, string>()

/** Builds a revision as it is published, outside its folder. Resolves with the path of the program to run. */
export async function buildTollgate(root: string): Promise<string> {
  const known = built.get(root)
  if (known !== undefined) return known
  const folder = makeScratchFolder('built').path
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { status, stdout } = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist')], {
    cwd: root,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${root} could not be built: ${stdout}`)
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const program = join(folder, 'dist/src/cli/tollgate.js')
  built.set(root, program)
  return program
}
