import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { type Exchange, sendWhole } from '../http/exchange.ts'
import type { Target } from '../http/judge-head.ts'
import { type RawHeaders, weightsOf } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { shapeError } from '../providers/surfaces.ts'

/** The dashboard's build directory, relative to the source or to the published build of this file. */
export const DASHBOARD_DIR = new URL(
  import.meta.url.endsWith('.ts') ? '../../dist/dashboard/' : '../../dashboard/',
  import.meta.url,
)

/** A file of the dashboard, plain and precompressed, best coding first. */
interface Served {
  readonly contentType: string
  readonly plain: Representation
  readonly compressed: readonly Representation[]
}

interface Representation {
  readonly coding: string
  readonly bytes: Buffer
}

export interface DashboardFiles {
  readonly page: Served
  readonly assets: ReadonlyMap<string, Served>
}

/** Content codings, best first, with their file extensions. */
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
}

/**
 * Reads all files of the dashboard into memory, so that no path from a client ever reaches the file system. Fails if
 * the dashboard was not built.
 */
export async function readDashboard(dir: URL): Promise<DashboardFiles> {
  const assetsDir = new URL('assets/', dir)
  const isCompressed = (name: string) => CODINGS.some(([, ending]) => name.endsWith(ending))
  const names = (await readdir(assetsDir)).filter((name) => !isCompressed(name))
  const assets = await Promise.all(names.map(async (name) => [name, await read(assetsDir, name)] as const))
  return { page: await read(dir, 'index.html'), assets: new Map(assets) }
}

async function read(dir: URL, name: string): Promise<Served> {
  const bytes = await readFile(new URL(name, dir))
  const compressed = await Promise.all(
    CODINGS.map(async ([coding, ending]) => {
      const smaller = await readFile(new URL(name + ending, dir)).catch(() => null)
      return smaller === null ? [] : [{ coding, bytes: smaller }]
    }),
  )
  return {
    contentType: CONTENT_TYPES[extname(name)] ?? 'application/octet-stream',
    plain: { coding: 'identity', bytes },
    compressed: compressed.flat(),
  }
}

const PAGE_PATH = '/dashboard'
const ASSETS_PATH = '/dashboard/assets/'

/** A dashboard path, or `/`, to which browsers are admitted. */
export const isDashboardPath = ({ path }: Target): boolean =>
  path === PAGE_PATH || path.startsWith(`${PAGE_PATH}/`) || path === '/'

/**
 * Content security policy: everything comes from this origin, and no inline script runs. So injected markup, for
 * example in a key's name, can neither run nor send data anywhere.
 */
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

/** Asset names change with their content, so assets are cached forever; the page itself is not. */
const KEPT_FOR_EVER = 'public, max-age=31536000, immutable'
const ASKED_ANEW = 'no-cache'

/** Serves the dashboard's files without a credential, because nothing in them is secret. The data needs a session. */
export async function answerDashboard(
  exchange: Exchange,
  { path }: Target,
  files: () => Promise<DashboardFiles>,
): Promise<void> {
  if (path === '/') return redirect(exchange)
  const { method } = exchange
  if (method !== 'GET' && method !== 'HEAD') {
    const message = `The dashboard supports GET and HEAD, not ${method}.`
    return deny(exchange, refuse('method_not_allowed', message, { headers: ['allow', 'GET, HEAD'] }))
  }
  const found = await files().catch(() => null)
  if (found === null) return deny(exchange, refuse('not_found', UNBUILT))
  if (!path.startsWith(ASSETS_PATH)) return sendFile(exchange, found.page, ASKED_ANEW)
  const asset = found.assets.get(path.slice(ASSETS_PATH.length))
  if (asset === undefined) deny(exchange, refuse('not_found', 'The dashboard has no such file.'))
  else sendFile(exchange, asset, KEPT_FOR_EVER)
}

function sendFile(exchange: Exchange, file: Served, caching: string): void {
  const { coding, bytes } = representationFor(exchange.headers, file)
  const headers = ['cache-control', caching, 'vary', 'accept-encoding', ...SAFE_HEADERS]
  const coded = coding === 'identity' ? [] : ['content-encoding', coding]
  const described = ['content-type', file.contentType, 'content-length', String(bytes.length), ...coded]
  sendWhole(exchange, { status: 200, headers: [...described, ...headers], body: bytes })
}

const NOTHING = Buffer.alloc(0)

/** The smallest representation that the client accepts, else the plain file. */
function representationFor(headers: RawHeaders, { plain, compressed }: Served): Representation {
  const weights = weightsOf(headers, 'accept-encoding')
  return compressed.find(({ coding }) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0) ?? plain
}

function redirect(exchange: Exchange): void {
  const headers = ['location', PAGE_PATH, 'content-length', '0', 'cache-control', 'no-store']
  sendWhole(exchange, { status: 302, headers, body: NOTHING })
}

function deny(exchange: Exchange, refusal: Refusal): void {
  sendWhole(exchange, shapeError('own', refusal, exchange.requestId))
}

const UNBUILT =
  'The dashboard is not built. Run `npm run build:dashboard` in the checkout and reload. The API is served all the same.'
