import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** The place of the reader is only in the URL: reload and the back button keep every filter. */

export const BASE = '/dashboard'
const MOVED = 'tollgate:moved'

export interface Place {
  /** The path below the base: `/keys`. */
  readonly path: string
  readonly query: URLSearchParams
}

export function usePlace(): Place {
  const [href, setHref] = useState(() => location.pathname + location.search)
  useEffect(() => {
    const moved = () => setHref(location.pathname + location.search)
    addEventListener('popstate', moved)
    addEventListener(MOVED, moved)
    return () => {
      removeEventListener('popstate', moved)
      removeEventListener(MOVED, moved)
    }
  }, [])
  const [pathname = '', search = ''] = href.split('?')
  return { path: pathname.slice(BASE.length).replace(/\/$/, '') || '/', query: new URLSearchParams(search) }
}

/** Adds the account that an operator acts in, which the URL of the page names, unless the path names another. */
export function inAccount(path: string): string {
  const account = new URLSearchParams(location.search).get('account')
  if (account === null || /[?&]account=/.test(path)) return path
  return `${path}${path.includes('?') ? '&' : '?'}account=${encodeURIComponent(account)}`
}

/** The account stays in the URL on every page but those of accounts. */
function hrefOf(to: string): string {
  const href = BASE + (to === '/' ? '' : to.replace(/^\/\?/, '?'))
  return to.startsWith('/accounts') ? href : inAccount(href)
}

/** `to` is below the base, with its query. */
export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  const url = to.startsWith('?') ? location.pathname + to : hrefOf(to)
  if (how === 'push') history.pushState(null, '', url)
  else history.replaceState(null, '', url)
  dispatchEvent(new Event(MOVED))
}

export type Query = Readonly<Record<string, string | number | null | undefined>>

export function withQuery(path: string, query: Query): string {
  const set = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') set.set(name, String(value))
  return set.size === 0 ? path : `${path}?${set}`
}

/** Changes parameters of the present page; null removes a parameter. */
export function setQuery(changes: Query, how: 'push' | 'replace' = 'push'): void {
  const present = Object.fromEntries(new URLSearchParams(location.search))
  go(withQuery('', { ...present, ...changes }) || '?', how)
}

interface LinkProps {
  readonly to: string | undefined
  readonly class?: string | undefined
  readonly title?: string | undefined
  readonly 'aria-current'?: 'page' | undefined
  readonly children?: ComponentChildren
}

/** A real link, so that it opens in a new tab; a plain click stays in this page. Without `to` it is text. */
export function Link({ to, children, ...rest }: LinkProps) {
  if (to === undefined) return <span {...rest}>{children}</span>
  return (
    <a
      {...rest}
      href={hrefOf(to)}
      onClick={(event) => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        go(to)
        scrollTo(0, 0)
      }}
    >
      {children}
    </a>
  )
}
