import { useState } from 'preact/hooks'
import { useResource } from '../data.ts'
import type { Bound } from '../forms/use-form.ts'
import s from './fields.module.css'
import { CheckField, Hint } from './fields.tsx'

/** Chooses models and patterns of the price book. No choice means every model. */
export function ModelsField({ value: chosen, problem, onInput }: Bound<readonly string[]>) {
  const [search, setSearch] = useState('')
  const { value: book } = useResource('/gateway/v1/prices', {})
  const models = (book?.models ?? []).filter(({ retired }) => !retired).map(({ id }) => id)
  const matching = (pattern: string) => models.filter((id) => id.startsWith(pattern.slice(0, -1))).length
  const families = [...new Set(models.map((id) => `${id.split('-')[0]}-*`))].filter(
    (pattern) => matching(pattern) > 2,
  )
  const typed = search.trim().toLowerCase()
  const isPattern = typed.length > 1 && typed.endsWith('*')
  const needle = typed.replace(/\*$/, '')
  const offered = [...(isPattern ? [typed] : []), ...families, ...models]
    .filter((name, i, all) => name.includes(needle) && all.indexOf(name) === i)
    .slice(0, 60)
  const toggle = (name: string) =>
    onInput(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name])
  return (
    <fieldset class={s.field}>
      <legend>
        Models <span class="quiet">{chosen.length === 0 && 'all are allowed'}</span>
      </legend>
      <span class="buttons">
        {chosen.map((name) => (
          <button key={name} type="button" aria-label={`Remove ${name}`} onClick={() => toggle(name)}>
            <code>{name}</code> ×
          </button>
        ))}
      </span>
      <input
        type="search"
        aria-label="Find a model"
        placeholder="A model, or a pattern: claude-*"
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || typed === '') return
          event.preventDefault()
          const found = isPattern ? typed : (offered.find((name) => !chosen.includes(name)) ?? typed)
          toggle(found)
          setSearch('')
        }}
      />
      <div class={s.options}>
        {offered.map((name) => (
          <CheckField
            key={name}
            label={
              <>
                <code>{name}</code> {name.endsWith('*') && <span class="quiet">{matching(name)} models</span>}
              </>
            }
            value={chosen.includes(name)}
            onInput={() => toggle(name)}
          />
        ))}
        {offered.length === 0 && <span class="quiet">No model in the price book matches.</span>}
      </div>
      <Hint problem={problem} />
    </fieldset>
  )
}
