import { execFile } from 'node:child_process'
import { cpSync, globSync, mkdirSync, statSync, symlinkSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { cleanEnvironment } from '../support/tollgate-process.ts'

const execute = promisify(execFile)

interface Instruction {
  readonly name: string
  readonly text: string
}

export function readDockerfile(text: string): Instruction[] {
  const lines = text.replaceAll(/^#.*\n/gm, '').replaceAll(/\\\n\s*/g, '')
  return [...lines.matchAll(/^([A-Z]+) +(.+)$/gm)].map(([, name = '', rest = '']) => ({ name, text: rest }))
}

export interface Image {
  readonly root: string
  readonly workingDir: string
  readonly environment: Readonly<Record<string, string>>
  readonly user: string
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
}

export interface BuildPlace {
  readonly context: string
  /** An empty folder: each stage gets a folder in it as the root of its file system. */
  readonly folder: string
  /** The packages that `npm ci` installed, linked instead of downloaded again. */
  readonly nodeModules: string
  /** A folder of programs that precedes the machine's on PATH. */
  readonly programs: string
}

/** Runs the instructions, as far as folders can replace images. An unknown instruction fails. */
export async function buildImage(instructions: readonly Instruction[], place: BuildPlace): Promise<Image> {
  const stages = new Map<string, string>()
  let root = ''
  let workingDir = '/'
  let user = 'root'
  let environment: Record<string, string> = {}
  let command: string[] = []
  let healthcheck: string[] = []
  const here = (path: string) => join(root, isAbsolute(path) ? path : join(workingDir, path))

  for (const { name, text } of instructions) {
    switch (name) {
      case 'FROM': {
        root = join(place.folder, `stage-${stages.size}`)
        stages.set(/ AS (\S+)$/.exec(text)?.[1] ?? 'last', root)
        workingDir = '/'
        environment = {}
        mkdirSync(root)
        break
      }
      case 'WORKDIR':
        workingDir = text
        mkdirSync(here('.'), { recursive: true })
        break
      case 'COPY': {
        const [, from] = /^--from=(\S+) /.exec(text) ?? []
        const paths = text.replace(/^--from=\S+ /, '').split(/ +/)
        const to = paths.pop() ?? ''
        const source = from === undefined ? place.context : (stages.get(from) ?? `no stage ${from}`)
        for (const path of paths) copy(source, path, to.endsWith('/') ? `${here(to)}/` : here(to))
        break
      }
      case 'RUN':
        if (text === 'npm ci') symlinkSync(place.nodeModules, here('node_modules'))
        else await run(text.replaceAll(/(?<=\s)\/(?=\w)/g, `${root}/`), here('.'), place.programs)
        break
      case 'ENV':
        for (const [, key = '', value = ''] of text.matchAll(/(\w+)=(\S+)/g)) {
          const mapped = value.replace('$PATH', '').replaceAll(/(?<=^|:)\/(?=\w)/g, `${root}/`)
          environment[key] = value.endsWith('$PATH') ? mapped + pathWith(place.programs) : mapped
        }
        break
      case 'USER':
        user = text
        break
      case 'CMD':
        command = JSON.parse(text) as string[]
        break
      case 'HEALTHCHECK':
        healthcheck = (JSON.parse(text.slice(text.indexOf('['))) as string[]).map((part) =>
          isAbsolute(part) ? here(part) : part,
        )
        break
      case 'VOLUME':
      case 'EXPOSE':
        break
      default:
        throw new Error(`what ${name} does is not known here`)
    }
  }
  return { root, workingDir: here('.'), environment, user, command, healthcheck }
}

export function pathWith(programs: string): string {
  return `${programs}:${process.env['PATH']}`
}

function copy(source: string, pattern: string, to: string): void {
  const found = globSync(pattern.replace(/^\//, ''), { cwd: source })
  if (found.length === 0) throw new Error(`there is no ${pattern} to copy`)
  for (const path of found) {
    const isInto = to.endsWith('/') && !statSync(join(source, path)).isDirectory()
    cpSync(join(source, path), isInto ? join(to, basename(path)) : to, {
      recursive: true,
      verbatimSymlinks: true,
    })
  }
}

async function run(script: string, cwd: string, programs: string): Promise<void> {
  const env = cleanEnvironment({ PATH: pathWith(programs), npm_config_prefer_offline: 'true' })
  await execute('sh', ['-euc', script], { cwd, env, maxBuffer: 16 * 1024 * 1024 })
}
