import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Exchange, sendWhole } from '../http/exchange.ts'
import { weightsOf } from '../http/raw-headers.ts'
import type { Target } from '../http/validate-head.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { shapeError } from '../providers/surfaces.ts'
import { refuseMethod } from './route.ts'

/** The dashboard's build directory, relative to the source or to the published build of this file. */
export const DASHBOARD_DIR = new URL(
  import.meta.url.endsWith('.ts') ? '../../dist/dashboard/' : '../../dashboard/',
  import.meta.url,
)

/** The files by their path in the build. Compressed forms have another ending. */
export type DashboardFiles = ReadonlyMap<string, Buffer>

const PAGE = 'index.html'

const CODINGS = { br: '.br', gzip: '.gz' } as const

/** Files of other types are not served. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
}

/** Reads all files into memory, so that no path from a client reaches the file system. Throws if none were built. */
export async function readDashboard(dir: URL): Promise<DashboardFiles> {
  const root = fileURLToPath(dir)
  const names = (await readdir(root, { recursive: true })).filter((name) => extname(name) !== '')
  const read = names.map(async (name) => [name, await readFile(join(root, name))] as const)
  const files = new Map(await Promise.all(read))
  if (!files.has(PAGE)) throw new Error(`There is no ${PAGE} in ${root}.`)
  return files
}

const PAGE_PATH = '/dashboard'
const ASSETS_PATH = '/dashboard/assets/'

export const isDashboardPath = ({ path }: Target): boolean =>
  path === PAGE_PATH || path.startsWith(`${PAGE_PATH}/`) || path === '/'

/** Everything comes from this origin, and no inline script runs: injected markup can neither run nor send data. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const SAFE_HEADERS = [
  ...['content-security-policy', POLICY],
  ...['referrer-policy', 'no-referrer'],
  ...['x-content-type-options', 'nosniff'],
  ...['cross-origin-opener-policy', 'same-origin'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
] as const

/** The cache header of assets, whose names change with their content. The page itself is not cached. */
const CACHED_FOREVER = 'public, max-age=31536000, immutable'
const REVALIDATED = 'no-cache'

/** Serves the dashboard's files without a credential, because nothing in them is secret. The data needs a session. */
export async function answerDashboard(
  exchange: Exchange,
  { path }: Target,
  files: () => Promise<DashboardFiles>,
): Promise<void> {
  if (path === '/') return redirectToDashboard(exchange)
  const { method } = exchange
  if (method !== 'GET' && method !== 'HEAD') {
    return deny(exchange, refuseMethod(exchange, ['GET', 'HEAD']))
  }
  const found = await files().catch(() => null)
  if (found === null) return deny(exchange, refuse('not_found', UNBUILT))
  if (!path.startsWith(ASSETS_PATH)) return sendFile(exchange, found, PAGE, REVALIDATED)
  sendFile(exchange, found, path.slice(`${PAGE_PATH}/`.length), CACHED_FOREVER)
}

function sendFile(exchange: Exchange, files: DashboardFiles, name: string, caching: string): void {
  const plain = files.get(name)
  const contentType = CONTENT_TYPES[extname(name)]
  if (plain === undefined || contentType === undefined) {
    deny(exchange, refuse('not_found', 'The dashboard has no such file. Reload the page.'))
    return
  }
  const weights = weightsOf(exchange.headers, 'accept-encoding')
  const accepted = Object.entries(CODINGS).filter(
    ([coding, ending]) => files.has(name + ending) && (weights.get(coding) ?? weights.get('*') ?? 0) > 0,
  )
  const [coding, ending = ''] = accepted[0] ?? []
  const body = files.get(name + ending) ?? plain
  const coded = coding === undefined ? [] : ['content-encoding', coding]
  const described = ['content-type', contentType, 'content-length', String(body.length), ...coded]
  const headers = [...described, 'cache-control', caching, 'vary', 'accept-encoding', ...SAFE_HEADERS]
  sendWhole(exchange, { status: 200, headers, body })
}

function redirectToDashboard(exchange: Exchange): void {
  const headers = ['location', PAGE_PATH, 'content-length', '0', 'cache-control', 'no-store']
  sendWhole(exchange, { status: 302, headers, body: Buffer.alloc(0) })
}

function deny(exchange: Exchange, refusal: Refusal): void {
  sendWhole(exchange, shapeError('own', refusal, exchange.requestId))
}

const UNBUILT =
  'The dashboard is not built. Run `npm run build:dashboard` in the checkout, and reload. The API works without the dashboard.'
