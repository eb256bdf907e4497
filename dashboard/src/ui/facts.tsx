import type { ComponentChildren } from 'preact'

/** A list of facts, each with its title; in two columns where there is room. */
export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>
}

export function Fact({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}
