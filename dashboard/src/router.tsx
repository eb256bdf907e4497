import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** Only the URL stores the page and its filters, so reload and the back button preserve them. */

export const BASE = '/dashboard'
const NAVIGATED = 'tollgate:navigated'

export interface Route {
  /** The path below the base: `/keys`. */
  readonly path: string
  readonly query: URLSearchParams
}

export function useRoute(): Route {
  const [href, setHref] = useState(() => location.pathname + location.search)
  useEffect(() => {
    const update = () => setHref(location.pathname + location.search)
    addEventListener('popstate', update)
    addEventListener(NAVIGATED, update)
    return () => {
      removeEventListener('popstate', update)
      removeEventListener(NAVIGATED, update)
    }
  }, [])
  const [pathname = '', search = ''] = href.split('?')
  return { path: pathname.slice(BASE.length).replace(/\/$/, '') || '/', query: new URLSearchParams(search) }
}

/** Adds the account that an operator acts in, from the URL of the page, unless the path names an account. */
export function withAccount(path: string): string {
  const account = new URLSearchParams(location.search).get('account')
  if (account === null || /[?&]account=/.test(path)) return path
  return `${path}${path.includes('?') ? '&' : '?'}account=${encodeURIComponent(account)}`
}

/** The URL of a page. It names the account that an operator acts in, except on the pages of accounts. */
function hrefOf(to: string): string {
  const href = BASE + (to === '/' ? '' : to.replace(/^\/\?/, '?'))
  return to.startsWith('/accounts') ? href : withAccount(href)
}

/** `to`: a path below the base with its query, or only a query. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  const url = to.startsWith('?') ? location.pathname + to : hrefOf(to)
  if (how === 'push') history.pushState(null, '', url)
  else history.replaceState(null, '', url)
  dispatchEvent(new Event(NAVIGATED))
}

export type Query = Readonly<Record<string, string | number | null | undefined>>

export function withQuery(path: string, query: Query): string {
  const set = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') set.set(name, String(value))
  return set.size === 0 ? path : `${path}?${set}`
}

/** Changes parameters in the URL of the page. Null removes a parameter. */
export function setQuery(changes: Query, how: 'push' | 'replace' = 'push'): void {
  const present = Object.fromEntries(new URLSearchParams(location.search))
  navigate(withQuery('', { ...present, ...changes }) || '?', how)
}

interface LinkProps {
  readonly to: string | undefined
  readonly class?: string | undefined
  readonly title?: string | undefined
  readonly 'aria-current'?: 'page' | undefined
  readonly children?: ComponentChildren
}

/** A link that can be opened in a new tab. A plain click does not reload the page. Without `to`, only text. */
export function Link({ to, children, ...rest }: LinkProps) {
  if (to === undefined) return <span {...rest}>{children}</span>
  return (
    <a
      {...rest}
      href={hrefOf(to)}
      onClick={(event) => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        navigate(to)
        scrollTo(0, 0)
      }}
    >
      {children}
    </a>
  )
}
