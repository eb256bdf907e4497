import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BrowserContext, chromium, type Browser as Driven, type Page } from 'playwright-core'
import type { TestGateway } from '../support/gateway.ts'
import { atEnd } from '../support/suite.ts'
import { BROWSER_ARGS, findBrowser } from './find-browser.ts'

export const PICTURES_DIR = fileURLToPath(new URL('../../test-results/dashboard/', import.meta.url))

export const BUILT_DIR = fileURLToPath(new URL('../../dist/dashboard/', import.meta.url))

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export interface Screen {
  readonly width: number
  readonly scheme: 'light' | 'dark'
}

export const DESKTOP: Screen = { width: 1440, scheme: 'light' }

/** A user of the dashboard: one window after the other, each watched for errors that a user would not see. */
export interface Person {
  open(path: string, screen?: Screen): Promise<Page>
  /** `as`: the cookie of somebody else's session. */
  visit(path: string, screen?: Screen, as?: string): Promise<Page>
  /** The complaints of the windows: errors, warnings and violations of the Content-Security-Policy. */
  complaints(): readonly string[]
  close(): Promise<void>
}

/** `npm ci` builds the dashboard; after a change of its source it must be rebuilt. */
function assertBuilt(): void {
  const source = fileURLToPath(new URL('../../dashboard/', import.meta.url))
  const builtMs = statSync(join(BUILT_DIR, 'index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const newer = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
    (name) => statSync(join(source, name)).mtimeMs > builtMs,
  )
  assert.deepEqual(newer, [], 'the dashboard build is out of date: run npm run build:dashboard')
}

async function launch(): Promise<Driven> {
  assertBuilt()
  const { path: executablePath, env } = await findBrowser()
  return await chromium.launch({
    executablePath,
    env: { ...process.env, ...env } as Record<string, string>,
    args: BROWSER_ARGS,
  })
}

const WINDOWS_MAX = 2

/** One browser for all test files of a process. */
let launched: Promise<Driven> | undefined
atEnd(async () => await (await launched)?.close())

/** `failures` match the failed requests that tests cause; every other failed request is a complaint. */
export async function openBrowser({ url, adminKey }: TestGateway, failures: RegExp = /$^/): Promise<Person> {
  launched ??= launch()
  const browser = await launched
  const contexts = new Set<BrowserContext>()
  const complaints: string[] = []
  let session: Awaited<ReturnType<BrowserContext['storageState']>> | undefined

  async function newPage({ width, scheme }: Screen, isSignedIn: boolean): Promise<Page> {
    // Every open page polls: windows of earlier tests would slow down later ones.
    const [oldest] = contexts
    if (contexts.size >= WINDOWS_MAX) await oldest?.close()
    const context = await browser.newContext({
      viewport: { width, height: width < 700 ? 844 : 900 },
      colorScheme: scheme,
      reducedMotion: 'reduce',
      // Without a configured language some browsers have an invalid locale.
      locale: 'en-US',
      permissions: ['clipboard-read', 'clipboard-write'],
      ...(isSignedIn && session !== undefined ? { storageState: session } : {}),
    })
    contexts.add(context)
    context.on('close', () => contexts.delete(context))
    const page = await context.newPage()
    page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`))
    page.on('console', (message) => {
      // A page finds out whether there is a session by asking for it.
      const asksSession = message.location().url.endsWith('/gateway/v1/session')
      const isExpected =
        message.text().startsWith('Failed to load resource') && (asksSession || failures.test(message.text()))
      if (['error', 'warning'].includes(message.type()) && !isExpected)
        complaints.push(`${page.url()}: ${message.text()}`)
    })
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== url)
        complaints.push(`${page.url()} asks another host: ${request.url()}`)
    })
    return page
  }

  async function open(path: string, screen = DESKTOP): Promise<Page> {
    const page = await newPage(screen, false)
    await page.goto(url + path)
    return page
  }

  return {
    open,
    async visit(path, screen = DESKTOP, as) {
      if (session === undefined && as === undefined) {
        const page = await open('/dashboard')
        await signIn(page, adminKey)
        await page.getByRole('navigation', { name: 'Pages' }).waitFor()
        session = await page.context().storageState()
        await page.context().close()
      }
      const page = await newPage(screen, as === undefined)
      const [name = '', value = ''] = as?.split('=') ?? []
      if (as !== undefined) await page.context().addCookies([{ name, value, url }])
      await page.goto(url + path)
      await untilShown(page)
      return page
    },
    complaints: () => complaints,
    async close() {
      for (const context of contexts) await context.close()
    },
  }
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('Admin key or API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

export async function tabTo(page: Page, name: string): Promise<void> {
  const isThere = () =>
    page.evaluate<boolean>(
      `[document.activeElement.textContent, document.activeElement.ariaLabel].includes('${name}')`,
    )
  for (let presses = 0; presses < 60; presses++) {
    if (await isThere()) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab does not lead to ${name}`)
}

/** Resolves when all parts of the page have loaded for a signed-in user. */
export async function untilShown(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
  for (const plot of await page.locator('.chart_plot').all()) await plot.locator('svg').waitFor()
}

/** The driver evaluates axe, because the page's Content-Security-Policy allows no script. */
export async function violationsOf(page: Page, ...rules: readonly string[]): Promise<readonly string[]> {
  // Table rows are alike, and axe takes ten seconds for a hundred of them.
  const asked = { of: { exclude: ['tbody tr:nth-child(n + 6)'] }, rules }
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe)
  const violations = await page.evaluate(async ({ of, rules }) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(of: object, options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>
      }
    }
    // Selectors of the elements that pass would take most of the time.
    const options = { resultTypes: ['violations'], selectors: false }
    return (await axe.run(of, rules.length === 0 ? options : { ...options, runOnly: rules })).violations
  }, asked)
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ html }) => html.slice(0, 160))
        .join(' | ')}`,
  )
}

export async function takePicture(page: Page, name: string, isWhole = false): Promise<void> {
  mkdirSync(PICTURES_DIR, { recursive: true })
  await page.evaluate('document.fonts.ready.then(() => undefined)')
  await page.screenshot({ path: join(PICTURES_DIR, `${name}.png`), fullPage: isWhole })
}
