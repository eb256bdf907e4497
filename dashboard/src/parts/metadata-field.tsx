import { useState } from 'preact/hooks'
import type { Bound } from '../forms/use-form.ts'
import s from './fields.module.css'
import { Hint } from './fields.tsx'

type Metadata = Readonly<Record<string, string>>

/** A pair without a name stays in this component: the user may still type the name. */
export function MetadataField({ value: metadata, problem, onInput }: Bound<Metadata>) {
  const [pairs, setPairs] = useState(() => Object.entries(metadata))
  const rows = [...pairs, ['', ''] as [string, string]]
  function set(at: number, pair: [string, string]): void {
    const next = rows.with(at, pair).filter(([name, value]) => name !== '' || value !== '')
    setPairs(next)
    onInput(
      Object.fromEntries(next.map(([name, value]) => [name.trim(), value]).filter(([name]) => name !== '')),
    )
  }
  return (
    <fieldset class={s.field}>
      <legend>Metadata</legend>
      {rows.map(([name, value], i) => (
        <span key={i} class={s.pair}>
          <input
            aria-label={`Metadata field ${i + 1}`}
            placeholder="team"
            value={name}
            onInput={(event) => set(i, [event.currentTarget.value, value])}
          />
          <input
            aria-label={`Metadata value ${i + 1}`}
            placeholder="web"
            value={value}
            onInput={(event) => set(i, [name, event.currentTarget.value])}
          />
        </span>
      ))}
      <Hint hint="Search by it, for example metadata.team:web" problem={problem} />
    </fieldset>
  )
}
