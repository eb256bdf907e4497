import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A Chromium that runs here. */
export interface Browser {
  readonly path: string
  /** Variables that lead to libraries and fonts that the machine does not have. */
  readonly env: Readonly<Record<string, string>>
}

/** The cache is kept from one run to the next, and not among temporary files, which may be on a disk that runs no programs. */
const CACHE_DIR = fileURLToPath(new URL('../../node_modules/.cache/tollgate-browser/', import.meta.url))

const INSTALLED = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chromium-headless-shell',
]

/** Ways to a browser, the cheapest first. Each gives candidates that may turn out not to run. */
const WAYS: readonly { readonly name: string; candidates(): Promise<readonly Browser[]> }[] = [
  {
    name: 'CHROMIUM_PATH',
    candidates: async () => [process.env['CHROMIUM_PATH'] ?? ''].filter((path) => path !== '').map(plain),
  },
  {
    name: `a browser that is installed (${INSTALLED.join(', ')})`,
    candidates: async () =>
      (process.env['PATH'] ?? '')
        .split(':')
        .flatMap((dir) => INSTALLED.map((name) => join(dir, name)))
        .filter((path) => existsSync(path))
        .map(plain),
  },
  { name: 'the package @sparticuz/chromium (x64)', candidates: unpackPackage },
  { name: "Debian's chromium-headless-shell, by apt-get download", candidates: unpackDebian },
  { name: "Playwright's own download", candidates: downloadPlaywright },
]

function plain(path: string): Browser {
  return { path, env: {} }
}

/** Fails without a browser, and says what to install: the tests of the dashboard are not left out. */
export async function findBrowser(): Promise<Browser> {
  const tried: string[] = []
  for (const { name, candidates } of WAYS) {
    try {
      for (const browser of await candidates()) {
        const failure = await failureOf(browser)
        if (failure === null) return browser
        tried.push(`${name}: ${browser.path}: ${failure}`)
      }
    } catch (error) {
      tried.push(`${name}: ${(error as Error).message.split('\n')[0]}`)
    }
  }
  throw new Error(
    `There is no Chromium for the tests of the dashboard. Install one (Debian: apt-get install chromium), or name it in CHROMIUM_PATH.\n${tried.join('\n')}`,
  )
}

/** The reason for which a browser does not start: a missing library shows here, and not in the middle of a test. */
async function failureOf({ path, env }: Browser): Promise<string | null> {
  try {
    await run(path, ['--version', '--no-sandbox'], { env: { ...process.env, ...env }, timeout: 60_000 })
    return null
  } catch (error) {
    return ((error as { stderr?: string }).stderr || (error as Error).message).trim().split('\n')[0] ?? ''
  }
}

/** How long the download of a browser may take, on a slow line. */
const PATIENCE_MS = 240_000

/**
 * A folder of the cache, made by one of the test files that look for a browser at the same time; the others wait for it.
 * The folder gets its name when it is whole.
 */
async function cached(name: string, make: (part: string) => Promise<void>): Promise<string> {
  const dir = join(CACHE_DIR, name)
  const part = `${dir}.part`
  mkdirSync(CACHE_DIR, { recursive: true })
  const givenUpMs = Date.now() + PATIENCE_MS
  while (!existsSync(dir)) {
    try {
      mkdirSync(part)
    } catch {
      // A half folder that is too old was left behind by a process that was killed.
      if (Date.now() - (statSync(part, { throwIfNoEntry: false })?.ctimeMs ?? Infinity) > PATIENCE_MS)
        rmSync(part, { recursive: true, force: true })
      if (Date.now() > givenUpMs) throw new Error(`${part} does not become whole`)
      await setTimeout(200)
      continue
    }
    try {
      await make(part)
      renameSync(part, dir)
    } finally {
      rmSync(part, { recursive: true, force: true })
    }
  }
  return dir
}

/** The package brings the libraries that a bare machine does not have. It unpacks into the folder for temporary files. */
async function unpackPackage(): Promise<readonly Browser[]> {
  if (process.arch !== 'x64') return []
  const dir = await cached('package', inflatePackage)
  const path = join(dir, 'chromium')
  const fonts = { FONTCONFIG_FILE: writeFontsFile(dir) }
  // The machine's own libraries come first: where there are any, they are newer.
  return [
    { path, env: fonts },
    { path, env: { ...fonts, LD_LIBRARY_PATH: join(dir, 'al2023', 'lib') } },
  ]
}

async function inflatePackage(dir: string): Promise<void> {
  const { inflate } = await import('@sparticuz/chromium')
  const archives = fileURLToPath(new URL('../bin/', import.meta.resolve('@sparticuz/chromium')))
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = dir
  try {
    for (const name of ['chromium.br', 'fonts.tar.br', 'al2023.tar.br', 'swiftshader.tar.br']) {
      await inflate(join(archives, name))
    }
  } finally {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  }
}

/** Writes a list of font folders, since the package's list has folders of another machine; without a font Chromium exits. */
function writeFontsFile(dir: string): string {
  const file = join(dir, 'fonts.conf')
  const folders = ['/usr/share/fonts', join(dir, 'fonts', 'fonts')].map((folder) => `<dir>${folder}</dir>`)
  const cache = `<cachedir>${join(dir, 'fonts-cache')}</cachedir>`
  writeFileSync(file, `<?xml version="1.0"?><fontconfig>${folders.join('')}${cache}</fontconfig>\n`)
  return file
}

/** Downloads the browser with the libraries it needs and unpacks them beside each other. Needs no root. */
async function unpackDebian(): Promise<readonly Browser[]> {
  const dir = await cached('debian', downloadDebian)
  const libraries = readdirSync(join(dir, 'usr/lib'))
    .filter((name) => name.includes('-linux-gnu'))
    .flatMap((name) => [join(dir, 'usr/lib', name), join(dir, 'lib', name)])
  const env = { LD_LIBRARY_PATH: libraries.join(':') }
  return ['usr/lib/chromium/chromium-headless-shell', 'usr/bin/chromium-headless-shell']
    .map((path) => ({ path: join(dir, path), env }))
    .filter(({ path }) => existsSync(path))
}

async function downloadDebian(part: string): Promise<void> {
  const options = [
    '--recurse',
    '--no-recommends',
    '--no-suggests',
    '--no-conflicts',
    '--no-breaks',
    '--no-replaces',
    '--no-enhances',
  ]
  const { stdout } = await run('apt-cache', ['depends', ...options, 'chromium-headless-shell'], {
    maxBuffer: 64 << 20,
  })
  const packages = [...new Set(stdout.split('\n').filter((line) => /^[a-z0-9]/.test(line)))]
  await run('apt-get', ['download', ...packages], { cwd: part, maxBuffer: 64 << 20 })
  for (const name of readdirSync(part)) {
    if (!name.endsWith('.deb')) continue
    await run('dpkg', ['-x', join(part, name), part])
    rmSync(join(part, name))
  }
}

async function downloadPlaywright(): Promise<readonly Browser[]> {
  const program = fileURLToPath(new URL('cli.js', import.meta.resolve('playwright-core')))
  const dir = await cached('playwright', async (part) => {
    const env = { ...process.env, PLAYWRIGHT_BROWSERS_PATH: part }
    await run(process.execPath, [program, 'install', 'chromium-headless-shell'], {
      env,
      timeout: PATIENCE_MS,
    })
  })
  const found = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  return found
    .filter((name) => /(?:headless_shell|headless-shell)$/.test(name))
    .map((name) => plain(join(dir, name)))
}
