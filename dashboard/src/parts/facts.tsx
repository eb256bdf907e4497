import type { ComponentChildren } from 'preact'
import s from './facts.module.css'

export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class={s.facts}>{children}</dl>
}

interface FactProps {
  readonly title: ComponentChildren
  readonly value?: ComponentChildren
  readonly children?: ComponentChildren
}

/** Renders nothing if there is no value. */
export function Fact({ title, value, children }: FactProps) {
  if (value === null || value === false || value === '') return null
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        {value}
        {children}
      </dd>
    </div>
  )
}

export function Metadata({ of: metadata }: { readonly of: Readonly<Record<string, string>> }) {
  const pairs = Object.entries(metadata)
  return <Fact title="Metadata" value={pairs.map(([name, text]) => `${name}: ${text}`).join(', ')} />
}

/** The figures at the top of a page. */
export const Sums = ({ children }: { readonly children: ComponentChildren }) => (
  <ul class={s.sums}>{children}</ul>
)

interface StatProps {
  readonly title: string
  readonly value: ComponentChildren
  readonly note?: ComponentChildren
}

export function Stat({ title, value, note }: StatProps) {
  return (
    <li>
      <span>{title}</span>
      <b>{value}</b>
      {note !== undefined && <span>{note}</span>}
    </li>
  )
}
