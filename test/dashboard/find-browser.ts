import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'

const run = promisify(execFile)

export interface Browser {
  readonly path: string
  /** Variables with the paths of libraries and fonts that the machine lacks. */
  readonly env: Readonly<Record<string, string>>
}

export const BROWSER_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
]

/** The variable in which test/run.ts passes the browser to the test processes. */
export const BROWSER_VARIABLE = 'TEST_BROWSER'

/** Not in the folder for temporary files, whose disk may not run programs. */
const CACHE_DIR = fileURLToPath(new URL('../../node_modules/.cache/tollgate-browser/', import.meta.url))

const INSTALLED = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chromium-headless-shell',
]

/** Sources of a browser, the cheapest first. Each gives candidates that may not run. */
const WAYS: readonly { readonly name: string; candidates(): Promise<readonly Browser[]> }[] = [
  {
    name: 'CHROMIUM_PATH',
    candidates: async () => [process.env['CHROMIUM_PATH'] ?? ''].filter((path) => path !== '').map(plain),
  },
  {
    name: `an installed browser (${INSTALLED.join(', ')})`,
    candidates: async () =>
      (process.env['PATH'] ?? '')
        .split(':')
        .flatMap((dir) => INSTALLED.map((name) => join(dir, name)))
        .filter((path) => existsSync(path))
        .map(plain),
  },
  { name: 'the browser of the last run', candidates: readRemembered },
  { name: 'the package @sparticuz/chromium (x64)', candidates: unpackPackage },
  { name: "Debian's chromium-headless-shell by apt-get", candidates: unpackDebian },
  { name: "Playwright's download", candidates: downloadPlaywright },
]

function plain(path: string): Browser {
  return { path, env: {} }
}

/** Candidates that hang cost half a minute each, so the next run begins with the one that worked. */
const REMEMBERED = join(CACHE_DIR, 'worked.json')

function remember(browser: Browser): Browser {
  if (browser.path.startsWith(CACHE_DIR)) writeFileSync(REMEMBERED, JSON.stringify(browser))
  return browser
}

async function readRemembered(): Promise<readonly Browser[]> {
  return existsSync(REMEMBERED) ? [JSON.parse(readFileSync(REMEMBERED, 'utf8')) as Browser] : []
}

/** The browser that test/run.ts found, or found here if a test file runs alone. */
export async function findBrowser(): Promise<Browser> {
  const found = process.env[BROWSER_VARIABLE]
  return found === undefined ? await searchBrowser() : (JSON.parse(found) as Browser)
}

/** Throws if no browser runs here: browser tests are never skipped. */
export async function searchBrowser(): Promise<Browser> {
  const tried: string[] = []
  for (const { name, candidates } of WAYS) {
    try {
      for (const browser of await candidates()) {
        const failure = await tryBrowser(browser)
        if (failure === null) return remember(browser)
        tried.push(`${name}: ${browser.path}: ${failure}`)
      }
    } catch (error) {
      tried.push(`${name}: ${firstError(error)}`)
    }
  }
  throw new Error(
    `The browser tests need Chromium, and none was found. Install one (Debian: apt-get install chromium) or set CHROMIUM_PATH. Tried:\n  ${tried.join('\n  ')}`,
  )
}

/**
 * Renders a page over DevTools, as the tests do, so that a missing library is noticed here and not during a test. With
 * `--dump-dom`, some builds of Chromium hang.
 */
async function tryBrowser({ path, env }: Browser): Promise<string | null> {
  try {
    const browser = await chromium.launch({
      executablePath: path,
      env: { ...process.env, ...env } as Record<string, string>,
      args: BROWSER_ARGS,
    })
    try {
      const page = await browser.newPage()
      await page.goto('data:text/html,<p>rendered')
      return (await page.textContent('p')) === 'rendered' ? null : 'it rendered nothing'
    } finally {
      await browser.close()
    }
  } catch (error) {
    return firstError(error)
  }
}

function firstError(error: unknown): string {
  const text = (error as { stderr?: string }).stderr || (error as Error).message
  return text.trim().split('\n')[0] ?? ''
}

/** A folder of the cache. It is filled under another name and renamed when complete. */
async function cached(name: string, fill: (part: string) => Promise<void>): Promise<string> {
  const dir = join(CACHE_DIR, name)
  if (existsSync(dir)) return dir
  mkdirSync(CACHE_DIR, { recursive: true })
  const part = mkdtempSync(`${dir}.`)
  try {
    await fill(part)
    if (!existsSync(dir)) renameSync(part, dir)
    return dir
  } finally {
    rmSync(part, { recursive: true, force: true })
  }
}

/** The package includes its own libraries. It unpacks into the folder for temporary files. */
async function unpackPackage(): Promise<readonly Browser[]> {
  if (process.arch !== 'x64') return []
  const dir = await cached('package', inflatePackage)
  const path = join(dir, 'chromium')
  const fonts = { FONTCONFIG_FILE: writeFontsFile(dir, join(dir, 'fonts', 'fonts')) }
  // The machine's own libraries come first: they are newer, if any.
  return [
    { path, env: fonts },
    { path, env: { ...fonts, LD_LIBRARY_PATH: join(dir, 'al2023', 'lib') } },
  ]
}

/** In a process of its own, because TMPDIR would also move the files of PostgreSQL and of tests that start meanwhile. */
async function inflatePackage(dir: string): Promise<void> {
  const module = import.meta.resolve('@sparticuz/chromium')
  const archives = ['chromium', 'fonts.tar', 'al2023.tar', 'swiftshader.tar'].map((name) =>
    fileURLToPath(new URL(`../bin/${name}.br`, module)),
  )
  const script = `const { inflate } = await import('${module}')
    for (const archive of ${JSON.stringify(archives)}) await inflate(archive)`
  const args = ['--input-type=module', '--eval', script]
  await run(process.execPath, args, { env: { ...process.env, TMPDIR: dir } })
}

/** Lists the font folders of the machine and the unpacked browser: without a font Chromium exits. */
function writeFontsFile(dir: string, fonts: string): string {
  const file = join(dir, 'fonts.conf')
  const folders = ['/usr/share/fonts', fonts].map((folder) => `<dir>${folder}</dir>`)
  const cache = `<cachedir>${join(dir, 'fonts-cache')}</cachedir>`
  writeFileSync(file, `<?xml version="1.0"?><fontconfig>${folders.join('')}${cache}</fontconfig>\n`)
  return file
}

/** Unpacks the browser with every package that this machine lacks into one tree, without root. */
async function unpackDebian(): Promise<readonly Browser[]> {
  const dir = await cached('debian', downloadDebian)
  // Some libraries are in separate folders, such as usr/lib/aarch64-linux-gnu/pulseaudio.
  const libraries = readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.so(?:\.|$)/.test(name))
    .map((name) => dirname(join(dir, name)))
  const env = {
    LD_LIBRARY_PATH: [...new Set(libraries)].join(':'),
    FONTCONFIG_FILE: writeFontsFile(dir, join(dir, 'usr/share/fonts')),
  }
  return ['usr/lib/chromium/chromium-headless-shell', 'usr/bin/chromium-headless-shell']
    .map((path) => ({ path: join(dir, path), env }))
    .filter(({ path }) => existsSync(path))
}

async function downloadDebian(part: string): Promise<void> {
  const state = join(part, 'apt')
  for (const folder of ['cache/archives/partial', 'state/lists/partial'])
    mkdirSync(join(state, folder), { recursive: true })
  const option = (name: string, value: string | number) => ['-o', `${name}=${value}`]
  const common = [
    '-qq',
    ...option('Dir::Cache', join(state, 'cache')),
    ...option('Debug::NoLocking', 1),
    ...option('APT::Sandbox::User', 'root'),
    ...option('Acquire::Retries', 0),
    ...option('Acquire::http::Timeout', 10),
  ]
  const install = ['install', '--download-only', '--no-install-recommends', '-y', 'chromium-headless-shell']
  try {
    await run('apt-get', [...common, ...install], { maxBuffer: 64 << 20 })
  } catch {
    // The machine has no package lists, or old ones: fetch them into our own folder.
    copyFileSync('/var/lib/dpkg/status', join(state, 'state/status'))
    common.push(
      ...option('Dir::State', join(state, 'state')),
      ...option('Dir::State::status', join(state, 'state/status')),
    )
    await run('apt-get', [...common, 'update'], { maxBuffer: 64 << 20 })
    await run('apt-get', [...common, ...install], { maxBuffer: 64 << 20 })
  }
  const archives = join(state, 'cache/archives')
  for (const name of readdirSync(archives)) {
    if (name.endsWith('.deb')) await run('dpkg', ['-x', join(archives, name), part])
  }
  rmSync(state, { recursive: true })
}

async function downloadPlaywright(): Promise<readonly Browser[]> {
  const program = fileURLToPath(new URL('cli.js', import.meta.resolve('playwright-core')))
  const dir = await cached('playwright', async (part) => {
    const env = {
      ...process.env,
      PLAYWRIGHT_BROWSERS_PATH: part,
      PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT: '5000',
    }
    await run(process.execPath, [program, 'install', 'chromium-headless-shell'], { env, timeout: 240_000 })
  })
  const found = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  return found
    .filter((name) => /(?:headless_shell|headless-shell)$/.test(name))
    .map((name) => plain(join(dir, name)))
}
